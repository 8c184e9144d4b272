//! The three ops behind one face: forward and backward of the kernel, and of its oracle.

use super::cases::Data;
use crate::Ctx;
use crate::attention::*;
use crate::mat::{Grad, MatMut};
use crate::rng::Dropout;

/// What an op computed: the result (and lse), then dq, dk, dv, dpos_w, dts_w.
#[derive(Clone, PartialEq)]
pub struct Results {
    pub o: Vec<f32>,
    pub lse: Vec<f32>,
    pub grads: [Vec<f32>; 5],
}

#[derive(Clone, Copy, Debug)]
pub enum Op {
    Hstu,
    Fuxi,
    Softmax(Dropout),
}

impl Op {
    pub fn channels(self) -> usize {
        if matches!(self, Op::Fuxi) { 3 } else { 1 }
    }

    /// Forward and backward; gradients start as `before` and are overwritten, or added to if `accumulate`.
    pub fn run(self, cx: &Ctx, data: &Data, d_o: &[f32], before: f32, accumulate: bool) -> Results {
        let (tokens, wide_a, wide_v) = (
            data.tokens(),
            data.case.heads * data.case.a,
            data.case.heads * data.case.v,
        );
        let wide_o = wide_v * self.channels();
        let (mut o, mut lse) = (vec![f32::NAN; tokens * wide_o], vec![0.0; tokens * data.case.heads]);
        let mut grads = [
            tokens * wide_a,
            tokens * wide_a,
            tokens * wide_v,
            data.pos_w.len(),
            data.ts_w.len(),
        ]
        .map(|len| vec![before; len]);
        {
            let [dq, dk, dv, dpos, dts] = &mut grads;
            let grad = |to: &mut Vec<f32>, rows, cols| Grad {
                to: MatMut::new(to, rows, cols),
                accumulate,
            };
            let (dq, dk) = (grad(dq, tokens, wide_a).into(), grad(dk, tokens, wide_a).into());
            let dv = grad(dv, tokens, wide_v).into();
            let (pos_len, ts_len) = (data.pos_w.len(), data.ts_w.len());
            let dpos_w = data.case.position.then(|| grad(dpos, 1, pos_len));
            let dts_w = (data.case.position && data.case.clock.is_some()).then(|| grad(dts, 1, ts_len));
            let (d_o, x) = (Mat::new(d_o, tokens, wide_o), data.inputs());
            let (o, lse) = (
                MatMut::new(&mut o, tokens, wide_o),
                MatMut::new(&mut lse, tokens, data.case.heads),
            );
            match self {
                Op::Hstu | Op::Fuxi => {
                    let (there, back) = (
                        Forward { x, o },
                        Backward {
                            x,
                            d_o,
                            dq,
                            dk,
                            dv,
                            dpos_w,
                            dts_w,
                        },
                    );
                    if let Op::Hstu = self {
                        hstu_attention::forward(cx, &there).unwrap();
                        hstu_attention::backward(cx, &back).unwrap();
                    } else {
                        fuxi_attention::forward(cx, &there).unwrap();
                        fuxi_attention::backward(cx, &back).unwrap();
                    }
                }
                Op::Softmax(dropout) => {
                    let x = data.softmax_inputs(dropout);
                    softmax_attention::forward(cx, &softmax_attention::Forward { x, o, lse }).unwrap();
                    let (o, lse) = (o.as_ref(), lse.as_ref());
                    let args = softmax_attention::Backward {
                        x,
                        o,
                        lse,
                        d_o,
                        dq,
                        dk,
                        dv,
                    };
                    softmax_attention::backward(cx, &args).unwrap();
                }
            }
        }
        Results { o, lse, grads }
    }

    pub fn naive(self, data: &Data, d_o: &[f64]) -> (Vec<f64>, Vec<f64>, naive::Grads) {
        let x = data.naive();
        match self {
            Op::Hstu => (naive::hstu_forward(&x), vec![], naive::hstu_backward(&x, d_o)),
            Op::Fuxi => (naive::fuxi_forward(&x), vec![], naive::fuxi_backward(&x, d_o)),
            Op::Softmax(dropout) => {
                let scale = f64::from(0.8f32);
                let (o, lse) = naive::softmax_forward(&x, scale, data.keep(dropout));
                (o, lse, naive::softmax_backward(&x, scale, data.keep(dropout), d_o))
            }
        }
    }
}
