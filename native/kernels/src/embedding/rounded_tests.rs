//! Gradients of normalised rows that were read in FP16.

use super::*;
use crate::Ctx;
use crate::mat::{Mat, MatMut};
use crate::rng::{Key, below, word};
use crate::rows::{Rows, RowsMut};
use crate::testing::*;

const WIDTH: usize = 19;

fn ids(seed: u64, count: usize, from: usize, until: usize) -> Vec<i32> {
    let id = |i: usize| from as i32 + below(word(Key::new(seed, 1, 1), i as u64), (until - from) as u32) as i32;
    (0..count).map(id).collect()
}

/// As it is after having been sent in FP16.
fn rounded(table: &Padded, items: usize) -> Padded {
    let cx = Ctx::new(1);
    let (mut halves, mut factors) = (vec![0; items * WIDTH], vec![0.0; items]);
    let all: Vec<i32> = (0..items as i32).collect();
    let args = PickNegatives {
        table: Rows::F32(table.mat()),
        ids: &all,
        counts: None,
        normalize: None,
        rows: RowsMut::F16(MatMut::new(&mut halves, items, WIDTH)),
        factors: &mut factors,
    };
    pick_negatives(&cx, args).expect("rows");
    let mut wide = Padded::unset(items, WIDTH);
    let halves = Rows::F16(Mat::new(&halves, items, WIDTH));
    spread_rows(&cx, halves, Some(&factors), &all, wide.mat_mut()).expect("rows");
    wide
}

#[test]
fn a_row_that_only_fp16_ops_read_is_rounded_before_its_gradient_goes_through_its_norm() {
    // Sums that are sorted, and sums in parts.
    for (items, count) in [(5000, 700), (12, 4000)] {
        let table = Padded::from(&numbers(1, items * WIDTH), items, WIDTH);
        let (halved, source) = (
            rounded(&table, items),
            Padded::from(&numbers(2, count * WIDTH), count, WIDTH),
        );
        // Rows below the middle are read as they are too.
        let (all, whole) = (ids(3, count, 0, items), ids(4, count, 0, items / 2));
        let gradient = |cx: &Ctx, table: &Padded, half: bool| {
            let (mut table, mut grad) = (table.clone(), Padded::unset(items, WIDTH));
            let part = |ids, rounded| Contribution {
                lane: 0,
                ids: Mat::new(ids, count, 1),
                source: source.mat(),
                coef: None,
                scale: 1.0,
                normalized: Some(1e-6),
                rounded,
            };
            let args = EmbeddingUpdate {
                table: RowsMut::F32(table.mat_mut()),
                staged: None,
                contributions: &[part(&whole, false), part(&all, half)],
                update: Update::Dense { grad: grad.overwrite() },
                rounding: None,
                grad_scale: None,
            };
            embedding_update(cx, args).expect("a clean run");
            grad.bits()
        };
        for cx in contexts().iter().flatten() {
            let (got, exact, rough) = (
                gradient(cx, &table, true),
                gradient(cx, &table, false),
                gradient(cx, &halved, false),
            );
            // What was read of a row, by row: those that the first list names are exact.
            let per = got.len() / items;
            for row in 0..items {
                let want = if whole.contains(&(row as i32)) { &exact } else { &rough };
                assert_eq!(
                    got[row * per..][..per],
                    want[row * per..][..per],
                    "row {row} of {items}"
                );
            }
            assert_ne!(got, exact);
            assert_eq!(gradient(cx, &halved, true), rough, "rounded before and after");
        }
    }
}
