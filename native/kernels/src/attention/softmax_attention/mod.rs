//! Causal softmax attention, per head: o_i = sum over j <= i of drop(softmax_j(scale * q_i . k_j)) v_j.
//!
//! Dropout counter of the weight of token i (row of the batch), head c and key position j (within its sequence):
//! ((i * h + c) << 32) + j.

use super::{check, plain};
use crate::fault::check_offsets;
use crate::rng::Dropout;
use crate::{Ctx, Grad, Mat, MatMut, Outcome};

pub const OP: &str = "softmax_attention";

/// What softmax attention reads.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    pub q: Mat, // [T, h*a]
    pub k: Mat, // [T, h*a]
    pub v: Mat, // [T, h*v]
    pub heads: usize,
    pub offsets: &'a [i32], // [B+1]
    pub scale: f32,
    pub dropout: Dropout,
}

pub struct Forward<'a> {
    pub x: Inputs<'a>,
    pub o: MatMut,   // [T, h*v], overwritten
    pub lse: MatMut, // [T, h], overwritten: ln of the softmax's normaliser, kept for backward
}

pub struct Backward<'a> {
    pub x: Inputs<'a>,
    pub o: Mat,
    pub lse: Mat,
    pub d_o: Mat, // [T, h*v]
    pub dq: Grad,
    pub dk: Grad,
    pub dv: Grad,
}

/// Counter of a weight's dropout draw, see the module header.
pub fn dropout_index(token: usize, head: usize, heads: usize, key: usize) -> u64 {
    (((token * heads + head) as u64) << 32) + key as u64
}

fn check_inputs(x: &Inputs) -> Outcome {
    check::heads(OP, [x.q, x.k, x.v], x.heads)?;
    check_offsets(OP, x.offsets, x.q.rows)
}

pub fn forward(_cx: &Ctx, args: &Forward) -> Outcome {
    let Forward { x, o, lse } = args;
    check_inputs(x)?;
    check::view(OP, "o", o.as_ref(), x.v.rows, x.v.cols)?;
    check::view(OP, "lse", lse.as_ref(), x.v.rows, x.heads)?;
    let keep = plain::keep(x);
    let (to, ln) = super::naive::softmax_forward(&plain::softmax_inputs(x), f64::from(x.scale), keep);
    plain::write(Grad::overwrite(*o), &to);
    plain::write(Grad::overwrite(*lse), &ln);
    Ok(())
}

pub fn backward(_cx: &Ctx, args: &Backward) -> Outcome {
    let x = &args.x;
    check_inputs(x)?;
    check::view(OP, "o", args.o, x.v.rows, x.v.cols)?;
    check::view(OP, "lse", args.lse, x.v.rows, x.heads)?;
    check::view(OP, "d_o", args.d_o, x.v.rows, x.v.cols)?;
    check::grad(OP, "dq", &args.dq, x.q)?;
    check::grad(OP, "dk", &args.dk, x.k)?;
    check::grad(OP, "dv", &args.dv, x.v)?;
    let d_o = plain::read(args.d_o);
    let grads = super::naive::softmax_backward(&plain::softmax_inputs(x), f64::from(x.scale), plain::keep(x), &d_o);
    plain::write_all([args.dq, args.dk, args.dv], [None, None], &grads);
    Ok(())
}
