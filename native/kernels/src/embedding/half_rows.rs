//! Rows in FP16. A row is scaled by a power of two that brings its largest element, rounded, into [2^14, 2^15), so that small
//! rows keep eleven bits like large ones. A factor undoes it exactly. Rounding is idempotent, so it does not matter who rounds:
//! the owner before sending, or the lane that reads the row.
//!
//! U rows of a list, D width.

use super::contribution::check_ascending;
use crate::ctx::Ctx;
use crate::fault::Outcome;
use crate::mat::{Mat, MatMut};
use crate::rows::{Element, Rows, load_vector, store_vector};
use crate::shape::{check_len, check_table};
use crate::simd::{Kernel, LANES, Simd, dispatch};
use crate::with_rows;

/// Exponent of the largest element after scaling.
const TOP: i32 = 14;
/// Half a unit in the last of an f32's first eleven bits.
const HALF_UNIT: u32 = 1 << 12;
/// Rows of one task.
const TILE: usize = 256;

/// The power of two that scales a row; 1 for zero or non-finite rows.
///
/// # Safety
/// The row holds `cols` numbers; target features as for [`Simd`].
#[inline(always)]
pub(super) unsafe fn scale_of<V: Simd, E: Element>(row: *const E, cols: usize) -> f32 {
    // SAFETY: by this function's contract.
    unsafe {
        let mut largest = V::zero();
        for k in 0..cols.div_ceil(LANES) {
            let x = load_vector::<V, E>(row, k, cols);
            largest = largest.max(x).max(V::zero().sub(x));
        }
        scale_for(largest.lanes_max())
    }
}

fn scale_for(largest: f32) -> f32 {
    if !(largest > 0.0 && largest.is_finite()) {
        return 1.0;
    }
    let exponent = (largest.to_bits().saturating_add(HALF_UNIT) >> 23) as i32 - 127;
    f32::from_bits(((TOP - exponent).min(126) + 127) as u32 * (1 << 23))
}

/// `to[places[k]] = factors[k] * rows[k]`, without factors as they are; places ascend, and end in -1.
pub fn spread_rows(cx: &Ctx, rows: Rows, factors: Option<&[f32]>, places: &[i32], to: MatMut) -> Outcome {
    let op = "spread_rows";
    check_table(op, "rows", rows, to.cols)?;
    check_len(op, "places", places.len(), rows.rows())?;
    check_len(op, "factors", factors.map_or(places.len(), <[f32]>::len), places.len())?;
    let count = check_ascending(op, "places", places, to.rows)?;
    cx.pool.run(count.div_ceil(TILE), |task, _| {
        let range = (task * TILE, count.min((task + 1) * TILE));
        // SAFETY: places differ, so tasks write different rows.
        unsafe { with_rows!(Rows, rows, rows => dispatch(cx.isa, Widen { rows, factors, places, range, to })) };
    });
    Ok(())
}

struct Widen<'a, E> {
    rows: Mat<E>,
    factors: Option<&'a [f32]>,
    places: &'a [i32],
    range: (usize, usize),
    to: MatMut,
}

impl<E: Element> Kernel for Widen<'_, E> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        let cols = self.to.cols;
        for i in self.range.0..self.range.1 {
            let factor = self.factors.map_or(1.0, |factors| factors[i]);
            // SAFETY: both have the row, and this task alone writes it.
            unsafe {
                let (from, to) = (
                    self.rows.row(i).as_ptr(),
                    self.to.row(self.places[i] as usize).as_mut_ptr(),
                );
                for k in 0..cols.div_ceil(LANES) {
                    store_vector::<V, f32>(load_vector::<V, E>(from, k, cols).mul(V::splat(factor)), to, k, cols);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedding::{PickNegatives, pick_negatives};
    use crate::rows::RowsMut;
    use crate::testing::*;

    #[test]
    fn scales_are_powers_of_two_that_bring_rounded_rows_to_one_size() {
        for x in [1e-30f32, 3e-8, 0.02, 1.0, 1.999, 1.9999, 2.0, 3e38] {
            let rounded = f32::from_bits((x.to_bits() + HALF_UNIT) & !(2 * HALF_UNIT - 1));
            let scaled = rounded * scale_for(x);
            assert!((2f32.powi(TOP)..2f32.powi(TOP + 1)).contains(&scaled), "{x}: {scaled}");
        }
        assert_eq!([0.0, f32::NAN, f32::INFINITY].map(scale_for), [1.0; 3]);
    }

    #[test]
    fn rows_that_were_rounded_stay_what_they_are() {
        let (v, d) = (300, 37);
        let size = |row: usize| 2f64.powi(row as i32 % 60 - 45) * if row % 11 == 7 { 0.0 } else { 1.0 };
        // Some rows have a largest number that is rounded up to the next power of two, and numbers far below it.
        let value = |(i, x): (usize, f64)| match i % d {
            0 if i / d % 3 == 0 => 0.9999 * size(i / d),
            5 => x * 1e-8 * size(i / d),
            _ => x * 0.9 * size(i / d),
        };
        let values: Vec<f64> = numbers(3, v * d).into_iter().enumerate().map(value).collect();
        let table = Padded::from(&values, v, d);
        let ids: Vec<i32> = (0..v as i32).collect();
        for contexts in contexts() {
            let round = |cx: &Ctx, table: &Padded| {
                let (mut halves, mut factors) = (vec![0; v * d], vec![f32::NAN; v]);
                let args = PickNegatives {
                    table: Rows::F32(table.mat()),
                    ids: &ids,
                    counts: None,
                    normalize: None,
                    rows: RowsMut::F16(MatMut::new(&mut halves, v, d)),
                    factors: &mut factors,
                };
                pick_negatives(cx, args).expect("rows");
                let mut wide = Padded::unset(v, d);
                let halves_of = Rows::F16(Mat::new(&halves, v, d));
                spread_rows(cx, halves_of, Some(&factors), &ids, wide.mat_mut()).expect("rows");
                (halves, factors, wide)
            };
            let (halves, factors, wide) = round(&contexts[0], &table);
            for cx in &contexts {
                let (again, same_factors, same) = round(cx, &wide);
                assert_eq!((again, same_factors), (halves.clone(), factors.clone()));
                assert_eq!(same.bits(), wide.bits());
            }
            assert_ne!(wide.bits(), table.bits());
        }
    }

    #[test]
    fn rows_go_to_their_places_and_others_stay() {
        let (rows, places) = ([1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [1, 3, -1]);
        let mut to = [0.0; 10];
        let of = |to: &mut [f32; 10], places: &[i32]| {
            let rows = Rows::F32(Mat::new(&rows, 3, 2));
            spread_rows(
                &Ctx::new(2),
                rows,
                Some(&[2.0, 1.0, 1.0]),
                places,
                MatMut::new(to, 5, 2),
            )
        };
        of(&mut to, &places).expect("rows");
        assert_eq!(to, [0.0, 0.0, 2.0, 4.0, 0.0, 0.0, 3.0, 4.0, 0.0, 0.0]);
        for bad in [[1, 1, -1], [0, 5, -1], [-1, 0, 1]] {
            assert_eq!(of(&mut to, &bad).expect_err("a fault").input, "places");
        }
    }
}
