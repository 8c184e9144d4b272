//! Sharing against the plain loss with the group's draws written out, and scalars against finite differences.

use super::*;
use crate::embedding::Contribution;
use crate::half::{float_to_half, half_to_float};
use crate::loss::fetched::testing::{EXACT, OwnRows, SOURCES, Source, in_segments};
use crate::loss::history::{Counted, Events, count_negatives, mask_negatives};
use crate::loss::naive::{Objective as NaiveObjective, Problem};
use crate::loss::share_negatives::share_negatives;
use crate::loss::testing::{ids, logit, logq, shared_objective, table_gradient};
use crate::rng::Key;
use crate::rows::RowsMut;
use crate::testing::*;

mod draws;

const TOLERANCE: f64 = 2e-5;

/// T, D, R, V and k of a case.
type Sizes = [usize; 5];

struct Case {
    sizes: Sizes,
    problem: Problem,
    members: Vec<i32>,
    negatives: Vec<i32>,
    offsets: Vec<i32>,
    items: Vec<i32>,
}

fn case(sizes: Sizes, objective: NaiveObjective, normalize: (bool, bool)) -> Case {
    let [t, d, r, v, k] = sizes;
    let positives = ids(3, t, v);
    let drawn = ids(4, t * r, v);
    let groups = t.div_ceil(k);
    let (mut members, mut negatives) = (vec![7; groups * k], vec![7; groups * k * r]);
    let to = (
        MatMut::new(&mut members, groups, k),
        MatMut::new(&mut negatives, groups, k * r),
    );
    share_negatives(&Ctx::new(1), Key::new(5, 6, 7), &positives, Mat::new(&drawn, t, r), to).expect("groups");
    let problem = Problem {
        shape: [t, d, r, v],
        u: numbers(1, t * d),
        table: numbers(2, v * d)
            .iter()
            .map(|x| f64::from(half_to_float(float_to_half(*x as f32))))
            .collect(),
        positives,
        negatives: drawn,
        temperature: if normalize.0 && normalize.1 { 0.05 } else { 0.7 },
        normalize_user: normalize.0,
        normalize_item: normalize.1,
        eps: 1e-6,
        objective,
    };
    let half = t as i32 / 2;
    Case {
        sizes,
        problem,
        members,
        negatives,
        offsets: vec![0, half, half, t as i32],
        items: ids(8, t, v),
    }
}

impl Case {
    fn events(&self) -> Events<'_> {
        Events {
            items: &self.items,
            targets: &self.problem.positives,
            offsets: &self.offsets,
        }
    }

    /// The plain problem in which every token has its group's draws, masked ones left out.
    fn written_out(&self, history: bool) -> Problem {
        let [t, _, r, _, k] = self.sizes;
        let mut negatives = vec![-1; t * k * r];
        for (place, &member) in self.members.iter().enumerate().filter(|(_, member)| **member >= 0) {
            let token = member as usize;
            let shared = &self.negatives[place / k * k * r..][..k * r];
            let (from, to) = if (member) < self.offsets[1] {
                (0, self.offsets[1] as usize)
            } else {
                (self.offsets[2] as usize, t)
            };
            for (to_id, &id) in negatives[token * k * r..][..k * r].iter_mut().zip(shared) {
                let met = self.items[from..to].contains(&id) || self.problem.positives[from..to].contains(&id);
                *to_id = if history && met { -1 } else { id };
            }
        }
        Problem {
            shape: [t, self.sizes[1], k * r, self.sizes[3]],
            negatives,
            ..self.problem.clone()
        }
    }

    fn run(&self, cx: &Ctx, share: Share, mask: Mask) -> Result<Vec<Padded>, crate::Fault> {
        self.run_from(cx, share, mask, Source::Table)
    }

    /// `[loss, du, dtable]` of the kernel.
    fn run_from(&self, cx: &Ctx, share: Share, mask: Mask, source: Source) -> Result<Vec<Padded>, crate::Fault> {
        let [t, d, r, v, k] = self.sizes;
        let p = &self.problem;
        let groups = t.div_ceil(k);
        let (u, mut table) = (Padded::from(&p.u, t, d), Padded::from(&p.table, v, d));
        let (mut du, mut dtable) = (Padded::unset(t, d), Padded::unset(v, d));
        let (mut coef, mut uhat) = (Padded::unset(groups, k * r * k), Padded::unset(groups * k, d));
        let (mut own_ids, mut own_coef) = (vec![7; groups * k], vec![f32::NAN; groups * k]);
        let mut loss = f32::NAN;
        let logq = logq(p);
        let (objective, logit) = (shared_objective(p, logq.as_deref()), logit(p));
        let rows = Rows::F32(table.mat());
        let negatives = Mat::new(&self.negatives, groups, k * r);
        let own = OwnRows::new(p);
        let (positive_table, positive_rows) = own.of(source, rows);
        in_segments(cx, (source, logit), rows, negatives, |fetched, segment| {
            let args = Shared {
                u: u.mat(),
                table: positive_table,
                vocabulary: v,
                positives: &p.positives,
                members: Mat::new(&self.members, groups, k),
                negatives,
                fetched,
                positive_rows,
                segment,
                mask,
                share,
                objective,
                logit,
                mean_over: None,
                loss: &mut loss,
                du: du.overwrite(),
                coef: coef.mat_mut(),
                uhat: uhat.mat_mut(),
                own: (&mut own_ids, &mut own_coef),
            };
            shared_loss(cx, args)
        })?;
        let part = |ids, coef| Contribution {
            lane: 0,
            ids,
            source: uhat.mat(),
            coef: Some(coef),
            scale: 1.0,
            normalized: p.normalize_item.then_some(p.eps as f32),
            rounded: false,
        };
        let own = part(Mat::new(&own_ids, groups * k, 1), Mat::new(&own_coef, groups * k, 1));
        let parts = [own, part(negatives, coef.mat())];
        table_gradient(cx, RowsMut::F32(table.mat_mut()), &parts, dtable.overwrite())?;
        Ok(vec![Padded::from(&[f64::from(loss)], 1, 1), du, dtable])
    }
}

#[test]
fn shared_outputs_are_the_plain_loss_with_the_groups_draws() {
    let contexts = contexts();
    let logq = |v| numbers(9, v).iter().map(|x| x - 2.0).collect();
    for (i, sizes) in [
        [0, 8, 4, 9, 2],
        [1, 3, 2, 4, 4],
        [33, 50, 7, 40, 2],
        [65, 63, 8, 300, 4],
        [20, 130, 5, 30, 3],
    ]
    .into_iter()
    .enumerate()
    {
        let objectives = [
            NaiveObjective::SampledSoftmax { logq: None },
            NaiveObjective::SampledSoftmax {
                logq: Some(logq(sizes[3])),
            },
            NaiveObjective::Bce,
            NaiveObjective::Gbce { t: 0.75 },
        ];
        for (j, objective) in objectives.into_iter().enumerate() {
            let case = case(
                sizes,
                objective,
                (j == 0 || (i + j) & 1 == 0, j == 0 || (i + j) & 2 == 0),
            );
            for history in [false, true] {
                let mask = if history {
                    Mask::History(case.events())
                } else {
                    Mask::Positive
                };
                let want = case.written_out(history).solve();
                let what = format!("{sizes:?} objective {j} history {history}");
                for source in SOURCES {
                    let run = |cx: &Ctx| case.run_from(cx, Share::Outputs, mask, source).expect("a clean run");
                    for got in on_every_context(&contexts, run) {
                        got[0].assert_close(&[want.loss], TOLERANCE, &format!("{what} {source:?} loss"));
                        got[1].assert_close(&want.du, TOLERANCE, &format!("{what} {source:?} du"));
                        got[2].assert_close(&want.dtable, TOLERANCE, &format!("{what} {source:?} dtable"));
                    }
                }
                for share in [Share::Outputs, Share::Scalars] {
                    let cx = Ctx::new(2);
                    let table = case.run(&cx, share, mask).expect("a clean run");
                    for source in EXACT {
                        let fetched = case.run_from(&cx, share, mask, source).expect("a clean run");
                        for (a, b) in fetched.iter().zip(&table) {
                            assert_eq!(a.bits(), b.bits(), "{what} {source:?}");
                        }
                    }
                }
            }
        }
    }
}

/// The loss that shares scalars, number by number.
fn scalars(case: &Case, u: &[f64], table: &[f64]) -> f64 {
    let [_, d, r, _, k] = case.sizes;
    let p = &case.problem;
    let unit = |x: &[f64], normalize: bool| {
        let length = if normalize {
            x.iter().map(|x| x * x).sum::<f64>().sqrt().max(p.eps)
        } else {
            1.0
        };
        x.iter().map(|x| x / length).collect::<Vec<_>>()
    };
    let logit = |token: i32, id: i32| {
        let a = unit(&u[token as usize * d..][..d], p.normalize_user);
        let b = unit(&table[id as usize * d..][..d], p.normalize_item);
        a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>() / p.temperature
    };
    let trained = p.positives.iter().filter(|id| **id >= 0).count().max(1) as f64;
    let mut total = 0.0;
    for (place, &member) in case.members.iter().enumerate().filter(|(_, member)| **member >= 0) {
        let positive = p.positives[member as usize];
        let group = place / k;
        let own = logit(member, positive);
        let mut sum = own.exp();
        for j in 0..k * r {
            let (id, owner) = (case.negatives[group * k * r + j], case.members[group * k + j / r]);
            if id >= 0 && id != positive && owner >= 0 {
                sum += logit(owner, id).exp();
            }
        }
        total += sum.ln() - own;
    }
    total / trained
}

#[test]
fn shared_scalars_match_finite_differences_of_their_loss() {
    for (sizes, normalize) in [([9, 4, 3, 8, 2], (true, true)), ([11, 3, 2, 7, 4], (false, false))] {
        let mut case = case(sizes, NaiveObjective::SampledSoftmax { logq: None }, normalize);
        case.problem.temperature = 0.5;
        let p = &case.problem;
        let du = finite_differences(&p.u, |u| scalars(&case, u, &p.table));
        let dtable = finite_differences(&p.table, |table| scalars(&case, &p.u, table));
        for got in on_every_context(&contexts(), |cx| {
            case.run(cx, Share::Scalars, Mask::Positive).expect("a clean run")
        }) {
            got[0].assert_close(&[scalars(&case, &p.u, &p.table)], TOLERANCE, "loss");
            got[1].assert_close(&du, TOLERANCE, "du");
            got[2].assert_close(&dtable, TOLERANCE, "dtable");
        }
    }
}

#[test]
fn a_token_in_two_groups_is_refused() {
    let mut case = case([6, 2, 3, 50, 2], NaiveObjective::Bce, (false, false));
    case.problem.positives.fill(3);
    case.members = vec![0, 1, 2, 0, 4, 5];
    let fault = case
        .run(&Ctx::new(1), Share::Outputs, Mask::Positive)
        .expect_err("a fault");
    assert_eq!((fault.kind, fault.input), (FaultKind::Argument, "members"));
}
