//! The two products against plain loops, at shapes that straddle the tile, the block and the slice.

use super::*;
use crate::mat::MatMut;
use crate::simd::{LANES, Simd};
use crate::testing::*;

/// Stores the product as it comes.
struct Store {
    to: MatMut,
    whole: bool,
}

impl Finish for Store {
    fn whole_rows(&self) -> bool {
        self.whole
    }
    #[inline(always)]
    unsafe fn take<V: Simd>(&self, i: usize, j: usize, n: usize, acc: *mut f32) {
        for at in (0..n).step_by(LANES) {
            // SAFETY: the driver's promise: `n` results of row `i` from column `j` on.
            unsafe { V::load(acc.add(at)).store_upto(self.to.at(i, j + at), n - at) };
        }
    }
}

fn product(m: usize, n: usize, k: usize, a: impl Fn(usize, usize) -> f64, b: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    let element = |at: usize| (0..k).map(|u| a(at / n, u) * b(u, at % n)).sum();
    (0..m * n).map(element).collect()
}

/// Depths: one slice, its ends, and two slices of the driver.
const SHAPES: [(usize, usize, usize); 16] = [
    (0, 16, 8),
    (1, 1, 1),
    (5, 17, 3),
    (6, 16, 4),
    (7, 15, 5),
    (13, 33, 8),
    (95, 16, 17),
    (96, 50, 25),
    (97, 100, 50),
    (200, 64, 64),
    (193, 8, 100),
    (3, 40, 0),
    (20, 18, 511),
    (20, 18, 512),
    (20, 18, 513),
    (100, 35, 1030),
];

#[test]
fn multiply_matches_plain_loops_for_both_layouts_and_both_granularities() {
    let contexts = contexts();
    for (m, n, k) in SHAPES {
        let (a, b) = (numbers(1, m * k), numbers(2, k * n));
        let want = product(m, n, k, |i, u| a[i * k + u], |u, j| b[u * n + j]);
        let transposed: Vec<f64> = (0..n * k).map(|at| b[at % k * n + at / k]).collect();
        for whole in [false, true] {
            let outputs = on_every_context(&contexts, |cx| {
                let left = Padded::from(&a, m, k);
                let (plain, turned) = (Padded::from(&b, k, n), Padded::from(&transposed, n, k));
                [Right::Plain(plain.mat()), Right::Transposed(turned.mat())]
                    .into_iter()
                    .map(|right| {
                        let mut c = Padded::unset(m, n);
                        let finish = Store { to: c.mat_mut(), whole };
                        multiply(cx, Shape { m, n, k }, &left.mat(), right, &finish);
                        c
                    })
                    .collect()
            });
            for run in outputs {
                assert_eq!(run[0].bits(), run[1].bits(), "the layout of B changes nothing");
                run[0].assert_close(&want, 1e-5, &format!("multiply {m} x {n} x {k}"));
            }
        }
    }
}

#[test]
fn outer_matches_plain_loops_overwriting_and_adding() {
    let contexts = contexts();
    for (m, n, t) in SHAPES
        .into_iter()
        .chain([(50, 200, 2100), (1, 1, 1024), (12, 16, 1025)])
    {
        let (a, b, before) = (numbers(1, t * m), numbers(2, t * n), numbers(3, m * n));
        let fresh = product(m, n, t, |i, u| a[u * m + i], |u, j| b[u * n + j]);
        let added: Vec<f64> = fresh.iter().zip(&before).map(|(c, before)| c + before).collect();
        let sums: Vec<f64> = (0..n).map(|j| (0..t).map(|u| b[u * n + j]).sum()).collect();
        let outputs = on_every_context(&contexts, |cx| {
            let (a, b) = (Padded::from(&a, t, m), Padded::from(&b, t, n));
            let (mut over, mut add) = (Padded::unset(m, n), Padded::from(&before, m, n));
            let (mut column, mut more) = (Padded::unset(1, n), Padded::from(&sums, 1, n));
            outer(cx, t, &a.mat(), &b.mat(), over.overwrite(), Some(column.overwrite()));
            outer(cx, t, &a.mat(), &b.mat(), add.accumulate(), Some(more.accumulate()));
            vec![over, add, column, more]
        });
        let twice: Vec<f64> = sums.iter().map(|sum| 2.0 * sum).collect();
        for run in outputs {
            let want = [(&fresh, "C"), (&added, "C +="), (&sums, "sums"), (&twice, "sums +=")];
            for (got, (want, name)) in run.iter().zip(want) {
                got.assert_close(want, 4e-5, &format!("outer {m} x {n} over {t}: {name}"));
            }
        }
    }
}

#[test]
fn blocks_of_rows_cover_them_once_and_end_in_small_ones() {
    for rows in [6, 12, 30, 96] {
        for m in 1..700 {
            let blocks = multiply::Blocks::of(m, rows);
            let mut end = 0;
            for block in 0..blocks.count() {
                let (first, count) = blocks.rows(block);
                assert_eq!(first, end, "{m} rows by {rows}, block {block}");
                assert!(count > 0 && count <= rows && first.is_multiple_of(crate::simd::tile::MR));
                end = first + count;
            }
            assert_eq!(end, m);
            let (_, last) = blocks.rows(blocks.count() - 1);
            assert!(last <= (rows / 4).next_multiple_of(crate::simd::tile::MR));
        }
    }
}
