//! The losses against their oracle, staged and unstaged tables, f32 and FP16 rows; the oracle against finite differences.

use super::fetched::testing::{EXACT, OwnRows, SOURCES, Source, in_segments};
use super::naive::{Gradients, Objective, Problem};
use super::testing::{ids, logit, table_gradient};
use super::*;
use crate::Ctx;
use crate::embedding::Contribution;
use crate::half::{float_to_half, half_to_float};
use crate::mat::{Mat, MatMut};
use crate::rows::{Rows, RowsMut};
use crate::testing::*;

/// Logits reach 20 at a temperature of 0.05, so an f32 logit is off by about 2e-6 and gradients by as much again.
const TOLERANCE: f64 = 2e-5;

pub(super) fn problem([t, d, r, v]: [usize; 4], objective: Objective, normalize: (bool, bool)) -> Problem {
    // As an FP16 table holds them, so that both storages have one oracle.
    let halves = numbers(2, v * d)
        .iter()
        .map(|x| f64::from(half_to_float(float_to_half(*x as f32))))
        .collect();
    Problem {
        shape: [t, d, r, v],
        u: numbers(1, t * d),
        table: halves,
        positives: ids(3, t, v),
        negatives: ids(4, t * r, v),
        temperature: if normalize.0 && normalize.1 { 0.05 } else { 0.7 },
        normalize_user: normalize.0,
        normalize_item: normalize.1,
        eps: 1e-6,
        objective,
    }
}

/// Rows three numbers wider than they need be, in FP16.
struct Halves(Vec<u16>, usize, usize);

impl Halves {
    fn from(values: &[f64], rows: usize, cols: usize) -> Halves {
        let mut data = vec![0x7e00; rows * (cols + 3)];
        for (row, from) in data.chunks_mut(cols + 3).zip(values.chunks(cols.max(1))) {
            row.iter_mut()
                .zip(from)
                .for_each(|(to, x)| *to = float_to_half(*x as f32));
        }
        Halves(data, rows, cols)
    }
    fn mat_mut(&mut self) -> MatMut<u16> {
        MatMut {
            ptr: self.0.as_mut_ptr(),
            rows: self.1,
            cols: self.2,
            stride: self.2 + 3,
        }
    }
}

/// `[loss, du, coef, uhat, dtable]` of the kernel; dtable through `embedding_update` for the sampled losses.
pub(super) fn run(cx: &Ctx, p: &Problem, half: bool) -> Result<Vec<Padded>, crate::Fault> {
    run_from(cx, p, half, Source::Table)
}

/// The same with negatives from a source.
fn run_from(cx: &Ctx, p: &Problem, half: bool, source: Source) -> Result<Vec<Padded>, crate::Fault> {
    let [t, d, r, v] = p.shape;
    let u = Padded::from(&p.u, t, d);
    let (mut table, mut halves) = (Padded::from(&p.table, v, d), Halves::from(&p.table, v, d));
    let table = if half {
        RowsMut::F16(halves.mat_mut())
    } else {
        RowsMut::F32(table.mat_mut())
    };
    let (mut du, mut coef, mut uhat) = (Padded::unset(t, d), Padded::unset(t, 1 + r), Padded::unset(t, d));
    let mut dtable = Padded::unset(v, d);
    let mut loss = f32::NAN;
    let negatives = Mat::new(&p.negatives, t, r);
    if let Objective::FullSoftmax { smoothing } = p.objective {
        let args = FullSoftmax {
            u: u.mat(),
            table: table.as_ref(),
            positives: &p.positives,
            logit: logit(p),
            smoothing: smoothing as f32,
            mean_over: None,
            loss: &mut loss,
            du: du.overwrite(),
            dtable: dtable.overwrite(),
        };
        full_softmax(cx, args)?;
        return Ok(vec![Padded::from(&[f64::from(loss)], 1, 1), du, dtable]);
    }
    let own = OwnRows::new(p);
    let (positive_table, positive_rows) = own.of(source, table.as_ref());
    in_segments(cx, (source, logit(p)), table.as_ref(), negatives, |fetched, segment| {
        let args = Sampled {
            u: u.mat(),
            table: positive_table,
            vocabulary: table.as_ref().rows(),
            positives: &p.positives,
            negatives,
            fetched,
            positive_rows,
            segment,
            logit: logit(p),
            mean_over: None,
            loss: &mut loss,
            du: du.overwrite(),
            coef: coef.mat_mut(),
            uhat: uhat.mat_mut(),
        };
        match &p.objective {
            Objective::SampledSoftmax { logq } => {
                let logq: Option<Vec<f32>> = logq.as_ref().map(|q| q.iter().map(|x| *x as f32).collect());
                sampled_softmax(cx, args, logq.as_deref())
            }
            Objective::Bce => bce(cx, args),
            Objective::Gbce { t } => gbce(cx, args, *t as f32),
            Objective::FullSoftmax { .. } => unreachable!("returned above"),
        }
    })?;
    let part = |ids, from, count| Contribution {
        lane: 0,
        ids,
        source: uhat.mat(),
        coef: Some(coef.mat().columns(from, count)),
        scale: 1.0,
        normalized: p.normalize_item.then_some(p.eps as f32),
        rounded: false,
    };
    let contributions = [part(Mat::new(&p.positives, t, 1), 0, 1), part(negatives, 1, r)];
    table_gradient(cx, table, &contributions, dtable.overwrite())?;
    Ok(vec![Padded::from(&[f64::from(loss)], 1, 1), du, dtable, coef, uhat])
}

pub(super) fn assert_matches(got: &[Padded], want: &Gradients, what: &str) {
    let loss = [want.loss];
    let wanted: [(&str, &[f64]); 5] = [
        ("loss", &loss),
        ("du", &want.du),
        ("dtable", &want.dtable),
        ("coef", &want.coef),
        ("uhat", &want.uhat),
    ];
    for (got, (name, want)) in got.iter().zip(wanted) {
        got.assert_close(want, TOLERANCE, &format!("{what} {name}"));
    }
}

pub(super) fn assert_on_every_context(p: &Problem, contexts: &[Vec<Ctx>], what: &str) {
    let want = p.solve();
    for half in [false, true] {
        for source in SOURCES {
            if source != Source::Table && matches!(p.objective, Objective::FullSoftmax { .. }) {
                continue;
            }
            for got in on_every_context(contexts, |cx| run_from(cx, p, half, source).expect("a clean run")) {
                assert_matches(&got, &want, &format!("{what} half {half} {source:?}"));
            }
        }
    }
}

#[test]
fn segments_of_fetched_rows_give_the_bits_of_the_table() {
    // Tables too large to be copied, drawn from seldom and often.
    for shape in [[65, 63, 16, 2000], [17, 1030, 511, 2100]] {
        let logq = numbers(9, shape[3]).iter().map(|x| x - 2.0).collect();
        for objective in [
            Objective::SampledSoftmax { logq: Some(logq) },
            Objective::Gbce { t: 0.5 },
        ] {
            for normalize in [(true, true), (true, false)] {
                let p = problem(shape, objective.clone(), normalize);
                let cx = Ctx::new(2);
                let table = run(&cx, &p, false).expect("a clean run");
                for source in EXACT {
                    let fetched = run_from(&cx, &p, false, source).expect("a clean run");
                    for (a, b) in fetched.iter().zip(&table) {
                        assert_eq!(a.bits(), b.bits(), "{source:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn sampled_losses_match_their_oracle() {
    let contexts = contexts();
    // The last of a shape is the table: small ones are copied, large ones read in place.
    let shapes = [
        [0, 8, 4, 9],
        [1, 1, 1, 2],
        [31, 7, 7, 11],
        [32, 8, 8, 300],
        [33, 50, 15, 40],
        [65, 63, 16, 2000],
        [20, 64, 17, 30],
        [9, 65, 128, 500],
        [7, 130, 3, 1],
        [5, 16, 0, 4],
    ];
    for (i, shape) in shapes.into_iter().enumerate() {
        let logq = numbers(9, shape[3]).iter().map(|x| x - 2.0).collect();
        let objectives = [
            Objective::SampledSoftmax { logq: None },
            Objective::SampledSoftmax { logq: Some(logq) },
            Objective::Bce,
            Objective::Gbce { t: 0.75 },
        ];
        for (j, objective) in objectives.into_iter().enumerate() {
            let bits = i + j;
            let normalize = if j == 0 {
                (true, true)
            } else {
                (bits & 1 == 0, bits & 2 == 0)
            };
            let p = problem(shape, objective, normalize);
            assert_on_every_context(&p, &contexts, &format!("{shape:?} objective {j} {normalize:?}"));
        }
    }
}

#[test]
fn a_large_table_drawn_from_often_is_read_in_place_with_lengths_prepared() {
    let p = problem([17, 1030, 511, 2100], Objective::Bce, (true, true));
    assert_on_every_context(&p, &contexts(), "prepared lengths");
}

#[test]
fn the_oracle_agrees_with_finite_differences() {
    let logq = numbers(9, 9).iter().map(|x| x - 2.0).collect();
    let objectives = [
        Objective::SampledSoftmax { logq: None },
        Objective::SampledSoftmax { logq: Some(logq) },
        Objective::Bce,
        Objective::Gbce { t: 0.5 },
        Objective::FullSoftmax { smoothing: 0.0 },
        Objective::FullSoftmax { smoothing: 0.1 },
    ];
    for objective in objectives {
        for normalize in [(true, true), (false, false)] {
            let p = Problem {
                temperature: 0.5,
                ..problem([5, 3, 6, 9], objective.clone(), normalize)
            };
            let solved = p.solve();
            let du = finite_differences(&p.u, |u| {
                Problem {
                    u: u.to_vec(),
                    ..p.clone()
                }
                .solve()
                .loss
            });
            assert_gradient(&solved.du, &du, "du");
            let dtable = finite_differences(&p.table, |table| {
                Problem {
                    table: table.to_vec(),
                    ..p.clone()
                }
                .solve()
                .loss
            });
            assert_gradient(&solved.dtable, &dtable, "dtable");
        }
    }
}

#[test]
fn gbce_has_the_papers_exponent() {
    // 256 of 3,415 negatives, t = 0.75: alpha = 0.07496..., beta = alpha (t (1 - 1/alpha) + 1/alpha)
    let alpha = 256.0 / 3415.0;
    let beta = sampled::gbce_beta(256, 3416, 0.75);
    assert!((beta - alpha * (0.75 * (1.0 - 1.0 / alpha) + 1.0 / alpha)).abs() < 1e-12);
    assert!((sampled::gbce_beta(256, 3416, 0.0) - 1.0).abs() < 1e-12, "t = 0 is BCE");
    assert!(
        (sampled::gbce_beta(256, 3416, 1.0) - alpha).abs() < 1e-12,
        "t = 1 is the sampling rate"
    );
}

#[test]
fn a_token_whose_draws_are_all_masked_adds_nothing() {
    let mut p = problem([3, 8, 9, 5], Objective::SampledSoftmax { logq: None }, (true, true));
    p.positives = vec![2, -1, 4];
    p.negatives = [[2; 9], [3; 9], [-1; 9]].concat();
    for out in run(&Ctx::new(2), &p, false).expect("a clean run").iter().take(4) {
        let mat = out.mat();
        // SAFETY: rows of the test's own matrix.
        assert!((0..mat.rows).all(|i| unsafe { mat.row(i) }.iter().all(|x| *x == 0.0)));
    }
}

#[test]
fn gradients_add_to_what_is_there_and_the_mean_is_over_what_was_asked() {
    let p = problem([6, 10, 4, 20], Objective::Bce, (true, false));
    let want = p.solve();
    let trained = p.positives.iter().filter(|&&id| id >= 0).count() as f64;
    let (u, table) = (Padded::from(&p.u, 6, 10), Padded::from(&p.table, 20, 10));
    let before = numbers(8, 60);
    let (mut du, mut coef, mut uhat) = (Padded::from(&before, 6, 10), Padded::unset(6, 5), Padded::unset(6, 10));
    let mut loss = 0.0;
    let args = Sampled {
        u: u.mat(),
        table: Rows::F32(table.mat()),
        vocabulary: table.mat().rows,
        positives: &p.positives,
        negatives: Mat::new(&p.negatives, 6, 4),
        fetched: None,
        positive_rows: None,
        segment: Segment::whole(6),
        logit: logit(&p),
        mean_over: Some(trained as f32 * 4.0),
        loss: &mut loss,
        du: du.accumulate(),
        coef: coef.mat_mut(),
        uhat: uhat.mat_mut(),
    };
    bce(&Ctx::new(2), args).expect("a clean run");
    let sum: Vec<f64> = before.iter().zip(&want.du).map(|(a, b)| a + b / 4.0).collect();
    du.assert_close(&sum, TOLERANCE, "accumulated du");
    assert!((f64::from(loss) - want.loss / 4.0).abs() < 1e-6);
}

#[test]
fn a_second_step_asks_the_system_for_no_memory() {
    let objectives = [
        Objective::SampledSoftmax { logq: None },
        Objective::FullSoftmax { smoothing: 0.1 },
    ];
    for (p, cx) in objectives.map(|o| (problem([60, 20, 30, 300], o, (true, true)), Ctx::new(2))) {
        run(&cx, &p, false).expect("a clean run");
        let before = cx.arena.system_allocations();
        run(&cx, &p, false).expect("a clean run");
        assert_eq!(cx.arena.system_allocations(), before);
        assert_eq!(cx.arena.live_bytes(), 0);
    }
}
