//! A matrix in panels is the same matrix: every op that takes one gives the bits that it gives for rows.

use super::*;
use crate::Ctx;
use crate::attention::{self, Bias, Inputs, TimeBias, TimeTerm, fuxi_attention, hstu_attention, softmax_attention};
use crate::linear::{Act, gated_norm_linear_residual, norm_linear};
use crate::norm::Norm;
use crate::rng::{Dropout, Key};
use crate::testing::numbers;

/// A matrix in rows or in panels.
struct Laid {
    data: Vec<f32>,
    rows: usize,
    cols: usize,
    panels: bool,
}

impl Laid {
    fn new(seed: u64, [rows, cols]: [usize; 2], panels: bool) -> Laid {
        let floats = match panels {
            true => Panels::size(rows) * cols / Panels::WIDTH,
            false => rows * cols,
        };
        // The padding between panels is arbitrary, and must not affect results.
        let mut laid = Laid {
            data: vec![f32::NAN; floats],
            rows,
            cols,
            panels,
        };
        for (at, x) in numbers(seed, rows * cols).into_iter().enumerate() {
            // SAFETY: an element of the matrix.
            unsafe { *laid.view().at_mut(at / cols, at % cols) = x as f32 };
        }
        laid
    }

    fn view(&mut self) -> PanelsMut {
        match self.panels {
            true => PanelsMut::new(self.data.as_mut_ptr(), self.rows, self.cols),
            false => MatMut::new(&mut self.data, self.rows, self.cols).into(),
        }
    }

    /// Columns `[from, from + cols)`, whole panels.
    fn columns(&mut self, from: usize, cols: usize) -> PanelsMut {
        let whole = self.view();
        PanelsMut {
            ptr: whole.at_mut(0, from),
            cols,
            ..whole
        }
    }

    /// Bits of the elements, row after row.
    fn bits(mut self) -> Vec<u32> {
        let view = self.view();
        (0..self.rows * self.cols)
            // SAFETY: an element of the matrix.
            .map(|at| unsafe { (*view.at(at / self.cols, at % self.cols)).to_bits() })
            .collect()
    }
}

fn plain(seed: u64, rows: usize, cols: usize) -> Laid {
    Laid::new(seed, [rows, cols], false)
}

fn mat(laid: &mut Laid) -> Mat {
    laid.view().plain().expect("rows").as_ref()
}

fn overwrite(laid: &mut Laid) -> Grad {
    Grad::overwrite(laid.view().plain().expect("rows"))
}

fn dropout() -> Dropout {
    Dropout::new(Key::new(1, 2, 3), 0.3)
}

#[test]
fn elements_lie_panel_by_panel() {
    let mut laid = Laid::new(1, [3, 64], true);
    let (base, step) = (laid.data.as_ptr(), (3 + Panels::SPARE) * 16);
    let view = laid.view();
    assert_eq!(view.at(0, 15), base.wrapping_add(15));
    assert_eq!(view.at(2, 16), base.wrapping_add(step + 2 * 16));
    let right = laid.columns(32, 32);
    assert_eq!(right.at(1, 17), base.wrapping_add(3 * step + 16 + 1));
    assert!(view.together(16, 16) && !view.together(15, 2) && view.together(63, 0));
    assert!(plain(1, 3, 64).view().together(0, 64));
}

/// `[y, z, dy made dz, dx, dw, db]`, with y and z in panels or not, and dy.
fn norm_linear_bits(cx: &Ctx, [t, d, n]: [usize; 3], act: Act, [panels, grad_panels]: [bool; 2]) -> Vec<Vec<u32>> {
    let (mut x, mut w, mut stats) = (plain(1, t, d), plain(2, d, n), plain(3, t, 2));
    let (mut y, mut z) = (Laid::new(4, [t, n], panels), Laid::new(5, [t, n], panels));
    let mut dy = Laid::new(6, [t, n], grad_panels);
    let (mut dx, mut dw, mut db) = (plain(7, t, d), plain(8, d, n), plain(9, 1, n));
    let forward = norm_linear::Forward {
        x: mat(&mut x),
        norm: Norm::Layer,
        eps: 1e-6,
        dropout: dropout(),
        w: mat(&mut w).into(),
        bias: None,
        act,
        y: y.view(),
        z: (act == Act::Silu).then(|| z.view()),
        stats: stats.view().plain().expect("rows"),
    };
    norm_linear::forward(cx, forward).unwrap();
    let backward = norm_linear::Backward {
        x: forward.x,
        norm: forward.norm,
        dropout: forward.dropout,
        w: forward.w,
        act,
        saved: match act {
            Act::None => None,
            Act::Silu => Some(z.view().as_ref()),
            Act::Relu => Some(y.view().as_ref()),
        },
        stats: forward.stats.as_ref(),
        dy: dy.view(),
        dx: Some(overwrite(&mut dx)),
        dw: overwrite(&mut dw),
        db: Some(overwrite(&mut db)),
    };
    norm_linear::backward(cx, backward).unwrap();
    [y, z, dy, dx, dw, db].map(Laid::bits).into()
}

#[test]
fn norm_linear_gives_the_bits_of_rows() {
    let cx = Ctx::new(2);
    // The depth of the data gradient within a slice and over several.
    for shape in [[7, 20, 64], [200, 33, 128], [13, 16, 1536]] {
        for act in [Act::Silu, Act::Relu, Act::None] {
            let rows = norm_linear_bits(&cx, shape, act, [false, false]);
            for panels in [[true, true], [true, false], [false, true]] {
                assert!(
                    rows == norm_linear_bits(&cx, shape, act, panels),
                    "{shape:?} {act:?} {panels:?}"
                );
            }
        }
    }
}

fn gated_bits(cx: &Ctx, [t, m, d]: [usize; 3], accumulate: bool, panels: [bool; 2]) -> Vec<Vec<u32>> {
    let (mut u, mut o, mut w) = (Laid::new(1, [t, m], panels[0]), plain(2, t, m), plain(3, m, d));
    let (mut x, mut y, mut stats, mut dy) = (plain(4, t, d), plain(5, t, d), plain(6, t, 2), plain(7, t, d));
    let (mut du, mut d_o, mut dw, mut db) = (
        Laid::new(8, [t, m], panels[1]),
        plain(9, t, m),
        plain(10, m, d),
        plain(11, 1, d),
    );
    let forward = gated_norm_linear_residual::Forward {
        u: u.view().as_ref(),
        o: mat(&mut o),
        norm: Norm::Layer,
        eps: 1e-6,
        dropout: dropout(),
        mask: None,
        w: mat(&mut w).into(),
        bias: None,
        x: mat(&mut x),
        y: y.view().plain().expect("rows"),
        stats: stats.view().plain().expect("rows"),
    };
    gated_norm_linear_residual::forward(cx, forward).unwrap();
    let backward = gated_norm_linear_residual::Backward {
        u: forward.u,
        o: forward.o,
        norm: forward.norm,
        dropout: forward.dropout,
        mask: None,
        w: forward.w,
        stats: forward.stats.as_ref(),
        dy: mat(&mut dy),
        du: Grad {
            to: du.view(),
            accumulate,
        },
        d_o: overwrite(&mut d_o),
        dw: overwrite(&mut dw),
        db: Some(overwrite(&mut db)),
    };
    gated_norm_linear_residual::backward(cx, backward).unwrap();
    [y, du, d_o, dw, db].map(Laid::bits).into()
}

#[test]
fn gated_norm_linear_residual_gives_the_bits_of_rows() {
    let cx = Ctx::new(2);
    for shape in [[7, 64, 20], [200, 128, 33], [13, 1536, 16]] {
        for accumulate in [false, true] {
            let rows = gated_bits(&cx, shape, accumulate, [false, false]);
            for panels in [[true, true], [true, false], [false, true]] {
                assert!(
                    rows == gated_bits(&cx, shape, accumulate, panels),
                    "{shape:?} {panels:?}"
                );
            }
        }
    }
}

/// The last sequence ends within six rows, at the end of the panels.
const OFFSETS: [i32; 5] = [0, 1, 1, 300, 421];
const TOKENS: usize = OFFSETS[OFFSETS.len() - 1] as usize;

/// Results and gradients of an attention op with two heads, `[V|Q|K]` in one tensor.
fn attention_bits(cx: &Ctx, op: &str, head: usize, panels: bool) -> Vec<Vec<u32>> {
    let (heads, wide, channels) = (2, 2 * head, if op == "fuxi" { 3 } else { 1 });
    let mut vqk = Laid::new(1, [TOKENS, 3 * wide], panels);
    let mut grads = Laid::new(2, [TOKENS, 3 * wide], panels);
    let (mut o, mut d_o, mut lse) = (
        plain(3, TOKENS, channels * wide),
        plain(4, TOKENS, channels * wide),
        plain(5, TOKENS, heads),
    );
    let (pos_w, ts_w) = (plain(6, 1, 2 * TOKENS - 1), plain(7, 1, 129));
    let (mut dpos_w, mut dts_w) = (plain(8, 1, 2 * TOKENS - 1), plain(9, 1, 129));
    let times: Vec<i64> = (0..TOKENS as i64).map(|i| i * i).collect();
    let [v, q, k] = [0, wide, 2 * wide].map(|from| vqk.columns(from, wide).as_ref());
    let [dv, dq, dk] = [0, wide, 2 * wide].map(|from| Grad::overwrite(grads.columns(from, wide)));
    let (to, d_o) = (o.view().plain().expect("rows"), mat(&mut d_o));
    if op == "softmax" {
        let x = softmax_attention::SoftmaxInputs {
            q,
            k,
            v,
            heads,
            offsets: &OFFSETS,
            scale: 0.3,
            dropout: dropout(),
        };
        let lse = lse.view().plain().expect("rows");
        softmax_attention::forward(cx, &softmax_attention::Forward { x, o: to, lse }).unwrap();
        let (o, lse) = (to.as_ref(), lse.as_ref());
        let back = softmax_attention::Backward {
            x,
            o,
            lse,
            d_o,
            dq,
            dk,
            dv,
        };
        softmax_attention::backward(cx, &back).unwrap();
    } else {
        let time = Some(TimeBias {
            term: TimeTerm::Buckets(&ts_w.data),
            times: &times,
            query_times: &times,
        });
        let x = Inputs {
            q,
            k,
            v,
            heads,
            offsets: &OFFSETS,
            n: TOKENS,
            bias: Some(Bias {
                pos_w: &pos_w.data,
                time,
            }),
        };
        let there = attention::Forward { x, o: to };
        let back = attention::Backward {
            x,
            d_o,
            dq,
            dk,
            dv,
            dpos_w: Some(overwrite(&mut dpos_w)),
            dts_w: Some(overwrite(&mut dts_w)),
        };
        match op {
            "hstu" => {
                hstu_attention::forward(cx, &there).unwrap();
                hstu_attention::backward(cx, &back).unwrap();
            }
            _ => {
                fuxi_attention::forward(cx, &there).unwrap();
                fuxi_attention::backward(cx, &back).unwrap();
            }
        }
    }
    [o, grads, dpos_w, dts_w].map(Laid::bits).into()
}

#[test]
fn attention_gives_the_bits_of_rows() {
    let cx = Ctx::new(2);
    for op in ["hstu", "fuxi", "softmax"] {
        for head in [16, 48] {
            let rows = attention_bits(&cx, op, head, false);
            assert!(rows == attention_bits(&cx, op, head, true), "{op} {head}");
        }
    }
}

#[test]
fn a_panel_of_two_heads_is_refused() {
    let mut q = Laid::new(1, [4, 48], true);
    let mut o = plain(2, 4, 48);
    let x = softmax_attention::SoftmaxInputs {
        q: q.view().as_ref(),
        k: q.view().as_ref(),
        v: q.view().as_ref(),
        heads: 2,
        offsets: &[0, 4],
        scale: 1.0,
        dropout: Dropout::off(),
    };
    let mut lse = plain(3, 4, 2);
    let args = softmax_attention::Forward {
        x,
        o: o.view().plain().expect("rows"),
        lse: lse.view().plain().expect("rows"),
    };
    let fault = softmax_attention::forward(&Ctx::new(1), &args).unwrap_err();
    assert_eq!((fault.op, fault.input), ("softmax_attention", "q"));
    assert_eq!(fault.expected, "rows, or heads of whole panels of 16 columns");
    assert_eq!(fault.got, "panels and heads of 24");
}
