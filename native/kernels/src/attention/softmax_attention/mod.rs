//! Causal softmax attention, per head: o_i = sum over j <= i of drop(softmax_j(scale * q_i . k_j)) v_j.
//!
//! Dropout counter of the weight of token i (row of the batch), head c and key position j (within its sequence):
//! ((i * h + c) << 32) + j.

mod softmax;

use super::plan::Heads;
use super::{backward, check, forward};
use crate::fault::check_offsets;
use crate::mat::Disjoint;
use crate::rng::Dropout;
use crate::{Ctx, Grad, Mat, MatMut, Outcome, Panels, PanelsMut};
use softmax::{KnownSoftmax, OnlineSoftmax, SoftmaxRule};

pub const OP: &str = "softmax_attention";

/// What softmax attention reads.
#[derive(Clone, Copy)]
pub struct SoftmaxInputs<'a> {
    pub q: Panels, // [T, h*a]
    pub k: Panels, // [T, h*a]
    pub v: Panels, // [T, h*v]
    pub heads: usize,
    pub offsets: &'a [i32], // [B+1]
    pub scale: f32,
    pub dropout: Dropout,
}

pub struct Forward<'a> {
    pub x: SoftmaxInputs<'a>,
    pub o: MatMut,   // [T, h*v], overwritten
    pub lse: MatMut, // [T, h], overwritten: ln of the softmax's normaliser, kept for backward
}

pub struct Backward<'a> {
    pub x: SoftmaxInputs<'a>,
    pub o: Mat,
    pub lse: Mat,
    pub d_o: Mat, // [T, h*v]
    pub dq: Grad<PanelsMut>,
    pub dk: Grad<PanelsMut>,
    pub dv: Grad<PanelsMut>,
}

/// Counter of a weight's dropout draw, see the module header.
pub fn dropout_index(token: usize, head: usize, heads: usize, key: usize) -> u64 {
    (((token * heads + head) as u64) << 32) + key as u64
}

fn check_inputs(x: &SoftmaxInputs) -> Outcome {
    check::heads(OP, [x.q, x.k, x.v], x.heads)?;
    check_offsets(OP, x.offsets, x.q.rows)
}

fn softmax(x: &SoftmaxInputs) -> SoftmaxRule {
    SoftmaxRule {
        scale: x.scale,
        dropout: x.dropout,
        heads: x.heads,
    }
}

pub fn forward(cx: &Ctx, args: &Forward) -> Outcome {
    let Forward { x, o, lse } = args;
    check_inputs(x)?;
    check::view(OP, "o", o.as_ref(), x.v.rows, x.v.cols)?;
    check::view(OP, "lse", lse.as_ref(), x.v.rows, x.heads)?;
    let heads = Heads::new(x.heads, x.q.cols / x.heads, x.v.cols / x.heads, x.q.rows);
    let pass = forward::ForwardPass {
        q: x.q,
        k: x.k,
        v: x.v,
        o: (*o).into(),
        o_step: heads.v,
        heads,
        offsets: x.offsets,
        bias: None,
        weigh: OnlineSoftmax {
            softmax: softmax(x),
            lse: *lse,
        },
    };
    pass.run(cx);
    Ok(())
}

pub fn backward(cx: &Ctx, args: &Backward) -> Outcome {
    let x = &args.x;
    check_inputs(x)?;
    check::view(OP, "o", args.o, x.v.rows, x.v.cols)?;
    check::view(OP, "lse", args.lse, x.v.rows, x.heads)?;
    check::view(OP, "d_o", args.d_o, x.v.rows, x.v.cols)?;
    check::grad(OP, "dq", &args.dq, x.q, x.heads)?;
    check::grad(OP, "dk", &args.dk, x.k, x.heads)?;
    check::grad(OP, "dv", &args.dv, x.v, x.heads)?;
    let heads = Heads::new(x.heads, x.q.cols / x.heads, x.v.cols / x.heads, x.q.rows);
    let mut delta = cx.scratch::<f32>(x.q.rows * x.heads);
    weight_means(cx, args, &mut delta);
    let pass = backward::BackwardPass {
        q: x.q,
        k: x.k,
        v: x.v,
        d_o: args.d_o.into(),
        d_o_step: heads.v,
        scale: 1.0,
        dq: args.dq,
        dk: args.dk,
        dv: args.dv,
        heads,
        offsets: x.offsets,
        bias: None,
        unweigh: KnownSoftmax {
            softmax: softmax(x),
            lse: args.lse,
            delta: Mat::new(&delta, x.q.rows, x.heads),
        },
    };
    pass.run(cx, None);
    Ok(())
}

/// delta[T, h] = dO . O of each query and head: the mean of its weights' gradients.
fn weight_means(cx: &Ctx, args: &Backward, delta: &mut [f32]) {
    /// Tokens of a task.
    const TOKENS: usize = 256;
    let (heads, tokens, width) = (args.x.heads, args.o.rows, args.o.cols / args.x.heads);
    let delta = Disjoint::new(delta);
    cx.pool.run(tokens.div_ceil(TOKENS), |task, _| {
        for token in task * TOKENS..tokens.min((task + 1) * TOKENS) {
            // SAFETY: tokens are divided among the tasks; the op's inputs are alive.
            let (o, d_o, to) = unsafe {
                (
                    args.o.row(token),
                    args.d_o.row(token),
                    delta.range(token * heads, heads),
                )
            };
            for (head, to) in to.iter_mut().enumerate() {
                let at = head * width..(head + 1) * width;
                *to = o[at.clone()].iter().zip(&d_o[at]).map(|(o, g)| o * g).sum();
            }
        }
    });
}
