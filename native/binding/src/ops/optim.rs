//! Optimiser steps, gradient clipping, initial values and elementwise passes.

use crate::args::Args;
use crate::fault::{Outcome, fault};
use turbogr_kernels::optim;
use turbogr_kernels::optim::{Adam, AdamW, EveryRow, TruncNormal};

pub fn adam_hyper(args: &mut Args) -> Outcome<Adam> {
    Ok(Adam {
        lr: args.f32("lr")?,
        beta1: args.f32("beta1")?,
        beta2: args.f32("beta2")?,
        eps: args.f32("eps")?,
        weight_decay: args.f32("weightDecay")?,
        step: args.whole("step")?,
    })
}

pub fn adamw(args: &mut Args) -> Outcome {
    let work = AdamW {
        p: args.slice_mut("p")?,
        g: args.slice("g")?,
        m: args.slice_mut("m")?,
        v: args.slice_mut("v")?,
        hyper: adam_hyper(args)?,
        grad_scale: args.scalar_opt("gradScale")?,
    };
    args.work(move |site| Ok(optim::adamw(site.cx, work)?))
}

pub fn square_sum(args: &mut Args) -> Outcome {
    let x = args.slice::<f32>("x")?;
    let to = args.exact_sum_mut("to")?;
    let accumulate = args.flag("accumulate")?;
    args.work(move |site| Ok(optim::square_sum(site.cx, x, to, accumulate)?))
}

pub fn clip_scale(args: &mut Args) -> Outcome {
    let parts = args.exact_sums("squareSum")?;
    let max_norm = args.f32("maxNorm")?;
    let scale = args.scalar_mut("scale")?;
    args.work(move |_| Ok(optim::clip_scale(parts, max_norm, scale)?))
}

pub fn fill_constant(args: &mut Args) -> Outcome {
    let value = args.f32("value")?;
    let to = args.unordered_floats_mut("to")?;
    args.work(move |site| {
        if to.is_contiguous() {
            return Ok(optim::fill_constant(site.cx, value, to.slice_mut())?);
        }
        Ok(to
            .rows_mut()
            .try_for_each(|row| optim::fill_constant(site.cx, value, row))?)
    })
}

pub fn fill_uniform(args: &mut Args) -> Outcome {
    let key = args.key()?;
    let (low, high) = (args.f32("low")?, args.f32("high")?);
    let to = args.slice_mut("to")?;
    args.work(move |site| Ok(optim::fill_uniform(site.cx, key, low, high, to)?))
}

pub fn fill_normal(args: &mut Args) -> Outcome {
    let key = args.key()?;
    let (mean, std) = (args.f32("mean")?, args.f32("std")?);
    let to = args.slice_mut("to")?;
    args.work(move |site| Ok(optim::fill_normal(site.cx, key, mean, std, to)?))
}

pub fn fill_trunc_normal(args: &mut Args) -> Outcome {
    let key = args.key()?;
    let shape = TruncNormal {
        mean: args.f32("mean")?,
        std: args.f32("std")?,
        low: args.f32("low")?,
        high: args.f32("high")?,
    };
    let rows = EveryRow {
        first: args.usize("first")?,
        step: args.usize("step")?,
    };
    let to = args.rows_mut("to")?;
    args.work(move |site| Ok(optim::fill_trunc_normal(site.cx, key, shape, rows, to)?))
}

pub fn add(args: &mut Args) -> Outcome {
    let a = args.f32("a")?;
    let (x, y) = (args.floats("x")?, args.floats_mut("y")?);
    let flat = x.is_contiguous() && y.is_contiguous();
    if !flat && x.shape() != y.shape() {
        let [expected, got] = [y.shape(), x.shape()].map(|shape| format!("{shape:?}"));
        return Err(fault("shape", args.op, "x", expected, got));
    }
    args.work(move |site| {
        if flat {
            return Ok(optim::add(site.cx, a, x.slice(), y.slice_mut())?);
        }
        let mut rows = y.rows_mut().enumerate();
        Ok(rows.try_for_each(|(i, y)| optim::add(site.cx, a, x.row(i), y))?)
    })
}

pub fn lerp(args: &mut Args) -> Outcome {
    let w = args.f32("w")?;
    let (x, y) = (args.slice("x")?, args.slice_mut("y")?);
    args.work(move |site| Ok(optim::lerp(site.cx, w, x, y)?))
}

pub fn cast_to_f16(args: &mut Args) -> Outcome {
    let (x, y) = (args.slice("x")?, args.slice_mut("y")?);
    args.work(move |site| Ok(optim::cast_to_f16(site.cx, x, y)?))
}

pub fn cast_to_f32(args: &mut Args) -> Outcome {
    let (x, y) = (args.slice("x")?, args.slice_mut("y")?);
    args.work(move |site| Ok(optim::cast_to_f32(site.cx, x, y)?))
}
