//! Fused linear layers: `norm_linear`, `gated_norm_linear_residual`, `swiglu_linear_residual`, `linear_residual`; `pack_weight`.

use super::norm::NORMS;
use crate::args::Args;
use crate::fault::Outcome;
use turbogr_kernels::linear::pack_weight::{self, Pass};
use turbogr_kernels::linear::{Act, gated_norm_linear_residual, linear_residual, norm_linear, swiglu_linear_residual};

const ACTS: [Act; 3] = [Act::None, Act::Silu, Act::Relu];
const PASSES: [Pass; 2] = [Pass::Forward, Pass::Backward];

pub fn norm_linear_forward(args: &mut Args) -> Outcome {
    let work = norm_linear::Forward {
        x: args.mat("x")?,
        norm: args.choice("norm", &NORMS)?,
        eps: args.f32("eps")?,
        dropout: args.dropout()?,
        w: args.panels("w")?,
        bias: args.slice_opt("bias")?,
        act: args.choice("act", &ACTS)?,
        y: args.panels_mut("y")?,
        z: args.panels_mut_opt("z")?,
        stats: args.mat_mut("stats")?,
    };
    args.work(move |site| Ok(norm_linear::forward(site.cx, work)?))
}

pub fn norm_linear_backward(args: &mut Args) -> Outcome {
    let work = norm_linear::Backward {
        x: args.mat("x")?,
        norm: args.choice("norm", &NORMS)?,
        dropout: args.dropout()?,
        w: args.panels("w")?,
        act: args.choice("act", &ACTS)?,
        saved: args.panels_opt("saved")?,
        stats: args.mat("stats")?,
        dy: args.panels_mut("dy")?,
        dx: args.grad_opt("dx")?,
        dw: args.grad("dw")?,
        db: args.grad_opt("db")?,
    };
    args.work(move |site| Ok(norm_linear::backward(site.cx, work)?))
}

pub fn gated_norm_linear_residual_forward(args: &mut Args) -> Outcome {
    let work = gated_norm_linear_residual::Forward {
        u: args.panels("u")?,
        o: args.mat("o")?,
        norm: args.choice("norm", &NORMS)?,
        eps: args.f32("eps")?,
        dropout: args.dropout()?,
        mask: args.mat_mut_of_opt("mask")?,
        w: args.panels("w")?,
        bias: args.slice_opt("bias")?,
        x: args.mat("x")?,
        y: args.mat_mut("y")?,
        stats: args.mat_mut("stats")?,
    };
    args.work(move |site| Ok(gated_norm_linear_residual::forward(site.cx, work)?))
}

pub fn gated_norm_linear_residual_backward(args: &mut Args) -> Outcome {
    let work = gated_norm_linear_residual::Backward {
        u: args.panels("u")?,
        o: args.mat("o")?,
        norm: args.choice("norm", &NORMS)?,
        dropout: args.dropout()?,
        mask: args.mat_of_opt("mask")?,
        w: args.panels("w")?,
        stats: args.mat("stats")?,
        dy: args.mat("dy")?,
        du: args.panels_grad("du")?,
        d_o: args.grad("dO")?,
        dw: args.grad("dw")?,
        db: args.grad_opt("db")?,
    };
    args.work(move |site| Ok(gated_norm_linear_residual::backward(site.cx, work)?))
}

pub fn swiglu_linear_residual_forward(args: &mut Args) -> Outcome {
    let work = swiglu_linear_residual::Forward {
        h: args.mat("h")?,
        w: args.panels("w")?,
        x: args.mat("x")?,
        y: args.mat_mut("y")?,
    };
    args.work(move |site| Ok(swiglu_linear_residual::forward(site.cx, work)?))
}

pub fn swiglu_linear_residual_backward(args: &mut Args) -> Outcome {
    let work = swiglu_linear_residual::Backward {
        h: args.mat("h")?,
        w: args.panels("w")?,
        dy: args.mat("dy")?,
        dh: args.grad("dh")?,
        dw: args.grad("dw")?,
    };
    args.work(move |site| Ok(swiglu_linear_residual::backward(site.cx, work)?))
}

pub fn linear_residual_forward(args: &mut Args) -> Outcome {
    let work = linear_residual::Forward {
        x: args.mat("x")?,
        drop_in: args.dropout()?,
        w: args.panels("w")?,
        bias: args.slice_opt("bias")?,
        drop_out: args.dropout()?,
        residual: args.mat("residual")?,
        y: args.mat_mut("y")?,
    };
    args.work(move |site| Ok(linear_residual::forward(site.cx, work)?))
}

pub fn linear_residual_backward(args: &mut Args) -> Outcome {
    let work = linear_residual::Backward {
        x: args.mat("x")?,
        drop_in: args.dropout()?,
        w: args.panels("w")?,
        drop_out: args.dropout()?,
        dy: args.mat("dy")?,
        dx: args.grad("dx")?,
        dw: args.grad("dw")?,
        db: args.grad_opt("db")?,
    };
    args.work(move |site| Ok(linear_residual::backward(site.cx, work)?))
}

pub fn pack_weight(args: &mut Args) -> Outcome {
    let w = args.mat("w")?;
    let pass = args.choice("pass", &PASSES)?;
    let to = args.panels_mut("to")?;
    args.work(move |site| Ok(pack_weight::pack_weight(site.cx, w, pass, to)?))
}
