//! The ops by way of their oracle: copies to double precision and back.

use super::naive::{self, Grads};
use super::softmax_attention::{self, dropout_index};
use crate::mat::{Grad, Mat};

pub fn read(mat: Mat) -> Vec<f64> {
    // SAFETY: a kernel's arguments are alive while it runs.
    (0..mat.rows)
        .flat_map(|i| unsafe { mat.row(i) }.iter().map(|x| f64::from(*x)))
        .collect()
}

pub fn write(grad: Grad, from: &[f64]) {
    for i in 0..grad.to.rows {
        // SAFETY: one thread, the caller's own output.
        let row = unsafe { grad.to.row(i) };
        for (to, x) in row.iter_mut().zip(&from[i * grad.to.cols..]) {
            *to = *x as f32 + if grad.accumulate { *to } else { 0.0 };
        }
    }
}

pub fn write_all(qkv: [Grad; 3], bias: [Option<Grad>; 2], grads: &Grads) {
    for (to, from) in qkv.into_iter().zip([&grads.dq, &grads.dk, &grads.dv]) {
        write(to, from);
    }
    for (to, from) in bias.into_iter().zip([&grads.dpos_w, &grads.dts_w]) {
        to.into_iter().for_each(|to| write(to, from));
    }
}

fn widen(x: &[f32]) -> Vec<f64> {
    x.iter().map(|x| f64::from(*x)).collect()
}

pub fn inputs(x: &super::Inputs) -> naive::Inputs {
    let time = x.bias.and_then(|bias| bias.time);
    naive::Inputs {
        q: read(x.q),
        k: read(x.k),
        v: read(x.v),
        heads: x.heads,
        offsets: x.offsets.to_vec(),
        n: x.n,
        pos_w: x.bias.map(|bias| widen(bias.pos_w)),
        time: time.map(|time| (widen(time.ts_w), time.times.to_vec(), time.query_times.to_vec())),
    }
}

pub fn softmax_inputs(x: &softmax_attention::Inputs) -> naive::Inputs {
    let lengths = x.offsets.windows(2).map(|ends| (ends[1] - ends[0]) as usize);
    naive::Inputs {
        q: read(x.q),
        k: read(x.k),
        v: read(x.v),
        heads: x.heads,
        offsets: x.offsets.to_vec(),
        n: lengths.max().unwrap_or(1).max(1),
        pos_w: None,
        time: None,
    }
}

pub fn keep(x: &softmax_attention::Inputs) -> impl Fn(usize, usize, usize) -> f64 {
    let (offsets, heads, dropout) = (x.offsets.to_vec(), x.heads, x.dropout);
    move |i, j, head| {
        let first = offsets
            .iter()
            .rfind(|first| **first as usize <= j)
            .map_or(0, |first| *first as usize);
        f64::from(dropout.factor(dropout_index(i, head, heads, j - first)))
    }
}
