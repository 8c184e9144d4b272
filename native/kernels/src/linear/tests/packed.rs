//! Weights packed in advance give the bits of weights in rows, in every layer and pass.

use super::pack_weight::{Pass, pack_weight};
use super::*;
use crate::fault::FaultKind;
use crate::panels::{PanelView, Panels};

/// A weight in panels, and the memory behind it.
struct Packed {
    memory: Vec<f32>,
    rows: usize,
    cols: usize,
}

impl Packed {
    fn of(cx: &Ctx, w: &Padded, pass: Pass) -> Packed {
        let w = w.mat();
        let (rows, cols) = match pass {
            Pass::Forward => (w.rows, w.cols),
            Pass::Backward => (w.cols, w.rows),
        };
        let mut memory = vec![f32::NAN; Panels::size(rows) * cols / Panels::WIDTH];
        pack_weight(cx, w, pass, PanelView::new(memory.as_mut_ptr(), rows, cols)).unwrap();
        Packed { memory, rows, cols }
    }

    fn view(&self) -> Panels {
        PanelView::new(self.memory.as_ptr(), self.rows, self.cols)
    }
}

/// `[T, D, N]`; the last ones have several slices of the depth, in forward and in backward.
const SHAPES: [[usize; 3]; 5] = [[1, 32, 48], [7, 64, 32], [97, 48, 160], [20, 544, 32], [13, 32, 1040]];

#[test]
fn panels_hold_the_weight_and_its_transpose() {
    let cx = Ctx::new(2);
    let [d, n] = [48, 80];
    let values = numbers(1, d * n);
    let w = Padded::from(&values, d, n);
    for pass in [Pass::Forward, Pass::Backward] {
        let packed = Packed::of(&cx, &w, pass);
        let view = packed.view();
        for (i, j) in (0..d).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let (row, col) = if pass == Pass::Forward { (i, j) } else { (j, i) };
            // SAFETY: an element of the view.
            let got = unsafe { *crate::panels::Place::at(view, row, col) };
            assert_eq!(got, values[i * n + j] as f32, "{pass:?} [{i}, {j}]");
        }
    }
}

#[test]
fn norm_linear_has_the_bits_of_weights_in_rows() {
    for [t, d, n] in SHAPES {
        for run in on_every_context(&contexts(), |cx| {
            let (x, w) = (
                Padded::from(&numbers(1, t * d), t, d),
                Padded::from(&numbers(2, d * n), d, n),
            );
            let (ahead, back) = (Packed::of(cx, &w, Pass::Forward), Packed::of(cx, &w, Pass::Backward));
            [[w.mat().into(), w.mat().into()], [ahead.view(), back.view()]]
                .into_iter()
                .flat_map(|[forward, backward]| {
                    let (mut y, mut z, mut stats) = (Padded::unset(t, n), Padded::unset(t, n), Padded::unset(t, 2));
                    let (mut dy, mut dx) = (Padded::from(&numbers(3, t * n), t, n), Padded::unset(t, d));
                    let mut dw = Padded::unset(d, n);
                    let (norm, act, dropout) = (Norm::Layer, Act::Silu, dropout(1));
                    norm_linear::forward(
                        cx,
                        norm_linear::Forward {
                            x: x.mat(),
                            norm,
                            eps: EPS as f32,
                            dropout,
                            w: forward,
                            bias: None,
                            act,
                            y: y.mat_mut().into(),
                            z: Some(z.mat_mut().into()),
                            stats: stats.mat_mut(),
                        },
                    )
                    .unwrap();
                    norm_linear::backward(
                        cx,
                        norm_linear::Backward {
                            x: x.mat(),
                            norm,
                            dropout,
                            w: backward,
                            act,
                            saved: Some(z.mat().into()),
                            stats: stats.mat(),
                            dy: dy.mat_mut().into(),
                            dx: Some(dx.overwrite()),
                            dw: dw.overwrite(),
                            db: None,
                        },
                    )
                    .unwrap();
                    [y, dx, dw]
                })
                .collect()
        }) {
            for (rows, packed) in run[..3].iter().zip(&run[3..]) {
                assert_eq!(rows.bits(), packed.bits(), "T = {t}, D = {d}, N = {n}");
            }
        }
    }
}

#[test]
fn a_weight_packed_for_the_other_pass_is_refused() {
    let cx = Ctx::new(1);
    let [t, d, n] = [4, 32, 48];
    let w = Padded::from(&numbers(1, d * n), d, n);
    let (x, mut y, mut stats) = (Padded::unset(t, d), Padded::unset(t, n), Padded::unset(t, 2));
    let packed = Packed::of(&cx, &w, Pass::Backward);
    let fault = norm_linear::forward(
        &cx,
        norm_linear::Forward {
            x: x.mat(),
            norm: Norm::None,
            eps: EPS as f32,
            dropout: Dropout::off(),
            w: packed.view(),
            bias: None,
            act: Act::None,
            y: y.mat_mut().into(),
            z: None,
            stats: stats.mat_mut(),
        },
    )
    .unwrap_err();
    assert_eq!((fault.kind, fault.input), (FaultKind::Shape, "w"));
}
