//! A pool against the plain loss in which every token drew all of it.

use super::*;
use crate::embedding::Contribution;
use crate::half::{float_to_half, half_to_float};
use crate::loss::fetched::testing::{SOURCES, Source, in_segments};
use crate::loss::naive::{Objective as NaiveObjective, Problem};
use crate::loss::testing::{ids, logit, logq, shared_objective, table_gradient};
use crate::rows::RowsMut;
use crate::testing::*;

const TOLERANCE: f64 = 2e-5;

fn run(cx: &Ctx, p: &Problem, pool: &[i32], mask: Mask) -> Result<Vec<Padded>, crate::Fault> {
    run_from(cx, p, pool, mask, Source::Table)
}

/// `[loss, du, dtable]` of the kernel.
fn run_from(cx: &Ctx, p: &Problem, pool: &[i32], mask: Mask, source: Source) -> Result<Vec<Padded>, crate::Fault> {
    let [t, d, _, v] = p.shape;
    let (u, mut table) = (Padded::from(&p.u, t, d), Padded::from(&p.table, v, d));
    let (mut du, mut dtable) = (Padded::unset(t, d), Padded::unset(v, d));
    let (mut dpool, mut coef, mut uhat) = (Padded::unset(pool.len(), d), Padded::unset(t, 1), Padded::unset(t, d));
    let mut loss = f32::NAN;
    let logq = logq(p);
    let (objective, logit) = (shared_objective(p, logq.as_deref()), logit(p));
    let rows = Rows::F32(table.mat());
    in_segments(
        cx,
        (source, logit),
        rows,
        Mat::new(pool, 1, pool.len()),
        |fetched, segment| {
            if segment.positions.is_empty() {
                return Ok(());
            }
            let args = Pooled {
                u: u.mat(),
                table: rows,
                vocabulary: v,
                positives: &p.positives,
                pool,
                fetched,
                mask,
                objective,
                logit,
                mean_over: None,
                loss: &mut loss,
                du: du.overwrite(),
                dpool: dpool.mat_mut(),
                coef: coef.mat_mut(),
                uhat: uhat.mat_mut(),
            };
            pooled_loss(cx, args)
        },
    )?;
    let part = |ids, source, coef| Contribution {
        lane: 0,
        ids,
        source,
        coef,
        scale: 1.0,
        normalized: p.normalize_item.then_some(p.eps as f32),
        rounded: false,
    };
    let contributions = [
        part(Mat::new(&p.positives, t, 1), uhat.mat(), Some(coef.mat())),
        part(Mat::new(pool, pool.len(), 1), dpool.mat(), None),
    ];
    table_gradient(cx, RowsMut::F32(table.mat_mut()), &contributions, dtable.overwrite())?;
    Ok(vec![Padded::from(&[f64::from(loss)], 1, 1), du, dtable])
}

fn problem([t, d, v]: [usize; 3], pool: &[i32], objective: NaiveObjective, normalize: (bool, bool)) -> Problem {
    Problem {
        shape: [t, d, pool.len(), v],
        u: numbers(1, t * d),
        table: numbers(2, v * d)
            .iter()
            .map(|x| f64::from(half_to_float(float_to_half(*x as f32))))
            .collect(),
        positives: ids(3, t, v),
        negatives: pool.repeat(t),
        temperature: if normalize.0 && normalize.1 { 0.05 } else { 0.7 },
        normalize_user: normalize.0,
        normalize_item: normalize.1,
        eps: 1e-6,
        objective,
    }
}

#[test]
fn a_pool_is_the_plain_loss_with_all_of_it_drawn() {
    let contexts = contexts();
    for (i, (shape, size)) in [
        ([0, 8, 9], 4),
        ([7, 3, 20], 1),
        ([97, 50, 60], 33),
        ([33, 65, 200], 127),
    ]
    .into_iter()
    .enumerate()
    {
        let pool: Vec<i32> = (0..size).map(|i| (i * shape[2] / size) as i32).collect();
        let logq = numbers(9, shape[2]).iter().map(|x| x - 2.0).collect();
        let objectives = [
            NaiveObjective::SampledSoftmax { logq: None },
            NaiveObjective::SampledSoftmax { logq: Some(logq) },
            NaiveObjective::Bce,
            NaiveObjective::Gbce { t: 0.75 },
        ];
        for (j, objective) in objectives.into_iter().enumerate() {
            let normalize = (j == 0 || (i + j) & 1 == 0, j == 0 || (i + j) & 2 == 0);
            let p = problem(shape, &pool, objective, normalize);
            let half = shape[0] as i32 / 2;
            let (offsets, items) = (vec![0, half, shape[0] as i32], ids(8, shape[0], shape[2]));
            for history in [false, true] {
                let mask = match history {
                    true => Mask::History(Events {
                        items: &items,
                        targets: &p.positives,
                        offsets: &offsets,
                    }),
                    false => Mask::Positive,
                };
                let mut masked = p.clone();
                for (place, id) in masked.negatives.iter_mut().enumerate().filter(|_| history) {
                    let token = place / size;
                    let range = if (token as i32) < half {
                        0..half as usize
                    } else {
                        half as usize..shape[0]
                    };
                    if items[range.clone()].contains(id) || p.positives[range].contains(id) {
                        *id = -1;
                    }
                }
                let want = masked.solve();
                let what = format!("{shape:?} objective {j} history {history}");
                for source in SOURCES.into_iter().filter(|source| *source != Source::Apart) {
                    let run = |cx: &Ctx| run_from(cx, &p, &pool, mask, source).expect("a clean run");
                    for got in on_every_context(&contexts, run) {
                        got[0].assert_close(&[want.loss], TOLERANCE, &format!("{what} {source:?} loss"));
                        got[1].assert_close(&want.du, TOLERANCE, &format!("{what} {source:?} du"));
                        got[2].assert_close(&want.dtable, TOLERANCE, &format!("{what} {source:?} dtable"));
                    }
                }
                let cx = Ctx::new(2);
                let fetched = run_from(&cx, &p, &pool, mask, Source::Fetched { half: false });
                for (a, b) in fetched
                    .expect("a clean run")
                    .iter()
                    .zip(run(&cx, &p, &pool, mask).expect("a clean run"))
                {
                    assert_eq!(a.bits(), b.bits(), "{what}");
                }
            }
        }
    }
}

#[test]
fn a_short_pool_ends_in_minus_one_and_a_disordered_one_is_refused() {
    let p = problem([5, 8, 30], &[2, 9, 20], NaiveObjective::Bce, (true, false));
    let got = run(&Ctx::new(2), &p, &[2, 9, 20, -1], Mask::Positive);
    let want = run(&Ctx::new(2), &p, &[2, 9, 20], Mask::Positive);
    assert_eq!(got.expect("a clean run"), want.expect("a clean run"));
    for bad in [&[9, 2][..], &[2, 2], &[-1, 2]] {
        let fault = run(&Ctx::new(1), &p, bad, Mask::Positive).expect_err("a fault");
        assert_eq!((fault.kind, fault.input), (FaultKind::Argument, "pool"));
    }
}
