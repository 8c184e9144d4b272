//! Copies the rows of negatives for some positions of a batch: draws are deduplicated, rows copied in f32 or FP16, each with a
//! factor for dot products.
//!
//! FP16 rows are scaled, see `half_rows`; the factor undoes that exactly. With normalisation it includes 1 / max(|row|, eps), with
//! the norm of the stored row. For f32 rows the factors are those that the losses would compute.
//!
//! P positions with R draws each, V rows of the table, U capacity in rows, D width.

use super::half_rows::scale_of;
use super::route_ids::total;
use super::stage_rows::{IdList, unique};
use crate::ctx::Ctx;
use crate::fault::{FaultKind, Outcome, check_ids, fault};
use crate::mat::{Disjoint, Mat, MatMut};
use crate::rows::{Element, Rows, RowsMut, load_vector, store_vector};
use crate::shape::{check_len, check_table};
use crate::simd::{Kernel, LANES, Simd, dispatch};
use crate::with_rows;
use std::ops::Range;

/// Rows of one task.
const TILE: usize = 256;

pub struct FetchNegatives<'a> {
    pub table: Rows, // [V, D]
    /// -1: no draw.
    pub ids: Mat<i32>, // [P, R]
    /// The positions whose rows are fetched.
    pub positions: Range<usize>,
    /// `Some(eps)`: rows are divided by `max(|row|, eps)`.
    pub normalize: Option<f32>,
    /// Output: the index of each draw's row, -1 for none; the first position's first.
    pub places: MatMut<i32>, // [at least the positions, R]
    /// The distinct rows by ascending id. Row 0 is zero if there are none; the rest is unchanged.
    pub rows: RowsMut, // [U, D]
    /// Factor for products with each row.
    pub factors: &'a mut [f32], // [U]
}

pub fn fetch_negatives(cx: &Ctx, args: FetchNegatives) -> Outcome {
    let op = "fetch_negatives";
    let (cols, room) = (args.table.cols(), args.factors.len());
    let Range { start, end } = args.positions;
    if start > end || end > args.ids.rows || args.places.rows < end - start || room == 0 {
        let expected = format!("positions of 0..{}, places for them and room for a row", args.ids.rows);
        let got = format!("{start}..{end}, {} places, room for {room}", args.places.rows);
        return Err(fault(FaultKind::Range, op, "positions", expected, got));
    }
    check_table(op, "table", args.table, cols)?;
    check_len(op, "rows", args.rows.as_ref().rows(), room)?;
    check_table(op, "rows", args.rows.as_ref(), cols)?;
    let list = IdList {
        ids: args.ids.row_range(start, end - start),
        places: args.places.row_range(0, end - start),
    };
    let mut ids = cx.scratch::<i32>(room);
    let count = unique(op, cx, &[list], args.table.rows(), &mut ids)?;
    if count == 0 {
        // SAFETY: no task runs; there is room for a row.
        with_rows!(RowsMut, args.rows, rows => unsafe { rows.row(0) }.fill(Element::narrow(0.0)));
        args.factors[0] = 1.0;
    }
    copy(cx, (args.table, &ids[..count], args.normalize), args.rows, args.factors);
    Ok(())
}

/// The owner's part of fetching negatives: `rows[k] * factors[k]` is row `ids[k]`, as above. What is beyond the last id is
/// unchanged.
pub struct PickNegatives<'a> {
    pub table: Rows,               // [V, D]
    pub ids: &'a [i32],            // [U], in any order
    pub counts: Option<&'a [i64]>, // how many ids there are, in parts; absent: they end in -1
    pub normalize: Option<f32>,
    pub rows: RowsMut,          // [U, D]
    pub factors: &'a mut [f32], // [U]
}

pub fn pick_negatives(cx: &Ctx, args: PickNegatives) -> Outcome {
    let op = "pick_negatives";
    let (to, cols) = (args.rows.as_ref(), args.table.cols());
    let count = total(op, args.ids, args.counts)?;
    check_table(op, "table", args.table, cols)?;
    check_table(op, "rows", to, cols)?;
    check_ids(op, "ids", &args.ids[..count], args.table.rows(), false)?;
    check_len(op, "factors", args.factors.len(), to.rows())?;
    if to.rows() < count {
        let (expected, got) = (format!("room for {count} rows"), format!("for {}", to.rows()));
        return Err(fault(FaultKind::Shape, op, "rows", expected, got));
    }
    let from = (args.table, &args.ids[..count], args.normalize);
    copy(cx, from, args.rows, args.factors);
    Ok(())
}

/// Copies rows of a table and forms their factors; ids were checked, and there is room.
fn copy(cx: &Ctx, (table, ids, normalize): (Rows, &[i32], Option<f32>), rows: RowsMut, factors: &mut [f32]) {
    let scaled = matches!(rows, RowsMut::F16(_));
    let factors = Disjoint::new(factors);
    cx.pool.run(ids.len().div_ceil(TILE), |task, _| {
        let from = task * TILE;
        let ids = &ids[from..ids.len().min(from + TILE)];
        // SAFETY: tasks own disjoint rows and factors; ids were checked.
        unsafe {
            let factors = factors.range(from, ids.len());
            with_rows!(Rows, table, table => with_rows!(RowsMut, rows, rows => {
                dispatch(cx.isa, FetchRows { table, ids, from, rows, factors, scaled, normalize })
            }));
        }
    });
}

struct FetchRows<'a, E, F> {
    table: Mat<E>,
    ids: &'a [i32],
    from: usize,
    rows: MatMut<F>,
    factors: &'a mut [f32],
    scaled: bool,
    normalize: Option<f32>,
}

impl<E: Element, F: Element> Kernel for FetchRows<'_, E, F> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        let cols = self.table.cols;
        let vectors = cols.div_ceil(LANES);
        for (i, (&id, factor)) in self.ids.iter().zip(self.factors).enumerate() {
            // SAFETY: ids are rows of the table; row `from + i` is this task's.
            unsafe {
                let from = self.table.row(id as usize).as_ptr();
                let to = self.rows.row(self.from + i).as_mut_ptr();
                let scale = if self.scaled { scale_of::<V, E>(from, cols) } else { 1.0 };
                let mut square = V::zero();
                for k in 0..vectors {
                    store_vector::<V, F>(load_vector::<V, E>(from, k, cols).mul(V::splat(scale)), to, k, cols);
                    let x = load_vector::<V, F>(to, k, cols);
                    square = x.fma(x, square);
                }
                let back = 1.0 / scale;
                *factor = match self.normalize {
                    Some(eps) => back / (square.sum().sqrt() * back).max(eps),
                    None => back,
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::half::half_to_float;
    use crate::rng::{Key, below, word};
    use crate::testing::*;

    const SHAPES: [[usize; 4]; 6] = [
        [0, 3, 5, 4],
        [1, 1, 1, 1],
        [5, 7, 40, 15],
        [33, 16, 300, 17],
        [9, 128, 2000, 64],
        [4, 31, 9, 130],
    ];

    /// Draws of `[P, R]` below V, some of them none.
    fn draws(p: usize, r: usize, v: usize) -> Vec<i32> {
        let key = Key::new(4, 2, 1);
        let id = |w: u32| if w % 8 == 3 { -1 } else { below(w, v as u32) as i32 };
        (0..p * r).map(|i| id(word(key, i as u64))).collect()
    }

    /// Rows of very different sizes, one of zeros.
    fn table(v: usize, d: usize) -> Vec<f64> {
        let size = |row: usize| {
            if row % 11 == 7 {
                0.0
            } else {
                2f64.powi(row as i32 % 60 - 45)
            }
        };
        let values = numbers(3, v * d).into_iter().enumerate();
        values.map(|(i, x)| f64::from((x * size(i / d)) as f32)).collect()
    }

    #[derive(Clone, PartialEq, Debug)]
    struct Fetched {
        places: Vec<i32>,
        rows: Vec<u32>,
        factors: Vec<u32>,
    }

    fn fetch(
        cx: &Ctx,
        [p, r, v, d]: [usize; 4],
        half: bool,
        normalize: Option<f32>,
        positions: Range<usize>,
    ) -> Fetched {
        let (ids, values) = (draws(p, r, v), Padded::from(&table(v, d), v, d));
        let room = (p * r).min(v).max(1);
        let (mut places, mut factors) = (vec![-5; p * r], vec![-1.0; room]);
        let (mut halves, mut floats) = (vec![0u16; room * d], vec![-1f32; room * d]);
        let rows = match half {
            true => RowsMut::F16(MatMut::new(&mut halves, room, d)),
            false => RowsMut::F32(MatMut::new(&mut floats, room, d)),
        };
        let args = FetchNegatives {
            table: Rows::F32(values.mat()),
            ids: Mat::new(&ids, p, r),
            positions,
            normalize,
            places: MatMut::new(&mut places, p, r),
            rows,
            factors: &mut factors,
        };
        fetch_negatives(cx, args).expect("a clean run");
        let rows = match half {
            true => halves.iter().map(|x| half_to_float(*x).to_bits()).collect(),
            false => floats.iter().map(|x| x.to_bits()).collect(),
        };
        let factors = factors.iter().map(|x| x.to_bits()).collect();
        Fetched { places, rows, factors }
    }

    #[test]
    fn rows_times_factors_are_the_draws_rows_whatever_their_size() {
        for shape in SHAPES {
            let [p, r, v, d] = shape;
            let (ids, values) = (draws(p, r, v), table(v, d));
            for (half, eps) in [(false, None), (true, None), (false, Some(1e-6)), (true, Some(1e-30))] {
                for contexts in contexts() {
                    let got = fetch(&contexts[0], shape, half, eps, 0..p);
                    for cx in &contexts[1..] {
                        assert_eq!(fetch(cx, shape, half, eps, 0..p), got, "threads");
                    }
                    for (&id, &place) in ids.iter().zip(&got.places) {
                        let Ok(id) = usize::try_from(id) else {
                            assert_eq!(place, -1);
                            continue;
                        };
                        let row = &values[id * d..][..d];
                        let length = row.iter().map(|x| x * x).sum::<f64>().sqrt();
                        let largest = row.iter().fold(0f64, |a, x| a.max(x.abs()));
                        let by = eps.map_or(1.0, |eps| length.max(f64::from(eps)));
                        // Half a unit in the last of eleven bits, and f32's own rounding.
                        let allowed = if half { 2f64.powi(-11) } else { 0.0 } + 1e-6;
                        let place = place as usize;
                        let factor = f64::from(f32::from_bits(got.factors[place]));
                        for (want, stored) in row.iter().zip(&got.rows[place * d..]) {
                            let got = f64::from(f32::from_bits(*stored)) * factor;
                            assert!(
                                (got - want / by).abs() <= allowed * largest / by,
                                "{shape:?} {half} {id}: {got}"
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_segment_fills_its_own_places_with_the_same_rows() {
        let shape = [33, 16, 300, 17];
        let cx = Ctx::new(2);
        let whole = fetch(&cx, shape, true, Some(1e-6), 0..33);
        let part = fetch(&cx, shape, true, Some(1e-6), 7..20);
        assert!(part.places[13 * 16..].iter().all(|place| *place == -5));
        for (a, b) in whole.places[7 * 16..20 * 16].iter().zip(&part.places) {
            let Ok(a) = usize::try_from(*a) else { continue };
            let b = *b as usize;
            assert_eq!(whole.rows[a * 17..][..17], part.rows[b * 17..][..17]);
            assert_eq!(whole.factors[a], part.factors[b]);
        }
    }

    /// An owner that is asked for the distinct rows of a segment sends what the segment would fetch itself.
    #[test]
    fn owners_pick_the_rows_that_are_fetched() {
        let shape = [33, 16, 300, 17];
        let [p, r, v, d] = shape;
        let mut ids = draws(p, r, v);
        ids.retain(|id| *id >= 0);
        ids.sort_unstable();
        ids.dedup();
        let table = Padded::from(&table(v, d), v, d);
        for (half, eps) in [(false, None), (true, None), (false, Some(1e-6)), (true, Some(1e-30))] {
            for cx in contexts().iter().flatten() {
                let want = fetch(cx, shape, half, eps, 0..p);
                let (mut halves, mut floats) = (vec![0u16; v * d], vec![-1f32; v * d]);
                let mut factors = vec![-1.0; v];
                let args = PickNegatives {
                    table: Rows::F32(table.mat()),
                    ids: &ids,
                    counts: Some(&[3, ids.len() as i64 - 3]),
                    normalize: eps,
                    rows: match half {
                        true => RowsMut::F16(MatMut::new(&mut halves, v, d)),
                        false => RowsMut::F32(MatMut::new(&mut floats, v, d)),
                    },
                    factors: &mut factors,
                };
                pick_negatives(cx, args).expect("rows");
                let got: Vec<u32> = match half {
                    true => halves.iter().map(|x| half_to_float(*x).to_bits()).collect(),
                    false => floats.iter().map(|x| x.to_bits()).collect(),
                };
                assert_eq!(got[..ids.len() * d], want.rows[..ids.len() * d]);
                let factors: Vec<u32> = factors.iter().map(|x| x.to_bits()).collect();
                assert_eq!(factors[..ids.len()], want.factors[..ids.len()]);
            }
        }
    }

    #[test]
    fn no_draws_leave_a_row_of_zeros() {
        let got = fetch(&Ctx::new(1), [4, 3, 9, 5], true, Some(1e-6), 2..2);
        assert_eq!((&got.rows[..5], got.factors[0]), (&[0u32; 5][..], 1f32.to_bits()));
    }
}
