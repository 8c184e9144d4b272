//! Row normalisation: `norm`, `l2_norm`.

use crate::args::Args;
use crate::fault::Outcome;
use turbogr_kernels::norm::{Norm, l2_norm, norm};

pub const NORMS: [Norm; 3] = [Norm::None, Norm::Layer, Norm::Rms];

pub fn norm_forward(args: &mut Args) -> Outcome {
    let work = norm::Forward {
        x: args.mat("x")?,
        norm: args.choice("norm", &NORMS)?,
        eps: args.f32("eps")?,
        gain: args.slice_opt("gain")?,
        shift: args.slice_opt("shift")?,
        y: args.mat_mut("y")?,
        stats: args.mat_mut("stats")?,
    };
    args.work(move |site| Ok(norm::forward(site.cx, work)?))
}

pub fn norm_backward(args: &mut Args) -> Outcome {
    let work = norm::Backward {
        x: args.mat("x")?,
        norm: args.choice("norm", &NORMS)?,
        gain: args.slice_opt("gain")?,
        stats: args.mat("stats")?,
        dy: args.mat("dy")?,
        dx: args.grad_opt("dx")?,
        dgain: args.grad_opt("dgain")?,
        dshift: args.grad_opt("dshift")?,
    };
    args.work(move |site| Ok(norm::backward(site.cx, work)?))
}

pub fn l2_norm_forward(args: &mut Args) -> Outcome {
    let work = l2_norm::Forward {
        x: args.mat("x")?,
        eps: args.f32("eps")?,
        y: args.mat_mut("y")?,
    };
    args.work(move |site| Ok(l2_norm::forward(site.cx, work)?))
}

pub fn l2_norm_backward(args: &mut Args) -> Outcome {
    let work = l2_norm::Backward {
        x: args.mat("x")?,
        eps: args.f32("eps")?,
        dy: args.mat("dy")?,
        dx: args.grad("dx")?,
    };
    args.work(move |site| Ok(l2_norm::backward(site.cx, work)?))
}
