//! Copies a range of rows between matrices of any storage type: used to read, write and convert large tables in pieces.

use crate::ctx::Ctx;
use crate::fault::{FaultKind, Outcome, fault};
use crate::mat::{Mat, MatMut};
use crate::rows::{Element, Rows, RowsMut, load_vector, store_vector};
use crate::shape::check_table;
use crate::simd::{Kernel, LANES, Simd, dispatch};
use crate::with_rows;

/// Rows of one task.
const TILE: usize = 256;

pub struct CopyRows {
    pub rows: Rows,
    /// First row to copy.
    pub from: usize,
    pub to: RowsMut,
    /// First destination row.
    pub at: usize,
    pub count: usize,
}

/// `to[at + i] = rows[from + i]`, rounded to nearest if `to` has fewer bits.
pub fn copy_rows(cx: &Ctx, args: CopyRows) -> Outcome {
    let op = "copy_rows";
    let CopyRows {
        rows,
        from,
        to,
        at,
        count,
    } = args;
    check_table(op, "to", to.as_ref(), rows.cols())?;
    check_table(op, "rows", rows, rows.cols())?;
    let room = rows
        .rows()
        .saturating_sub(from)
        .min(to.as_ref().rows().saturating_sub(at));
    if count > room {
        let expected = format!("at most {room} rows");
        return Err(fault(FaultKind::Range, op, "count", expected, format!("{count}")));
    }
    cx.pool.run(count.div_ceil(TILE), |task, _| {
        let range = task * TILE..count.min((task + 1) * TILE);
        let (from, at, count) = (from + range.start, at + range.start, range.len());
        // SAFETY: tasks own disjoint rows of `to`; ranges were checked.
        with_rows!(Rows, rows, rows => with_rows!(RowsMut, to, to => unsafe {
            dispatch(cx.isa, Copy { rows: rows.row_range(from, count), to: to.row_range(at, count) })
        }));
    });
    Ok(())
}

struct Copy<E, F> {
    rows: Mat<E>,
    to: MatMut<F>,
}

impl<E: Element, F: Element> Kernel for Copy<E, F> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        let cols = self.rows.cols;
        for i in 0..self.rows.rows {
            // SAFETY: both have the row; this task alone writes it.
            unsafe {
                let (from, to) = (self.rows.row(i).as_ptr(), self.to.row(i).as_mut_ptr());
                for k in 0..cols.div_ceil(LANES) {
                    store_vector::<V, F>(load_vector::<V, E>(from, k, cols), to, k, cols);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Bf16;
    use crate::testing::*;

    /// Rows `from..from + count` of `[rows, cols]`, there and back through another storage.
    fn there_and_back<E: Element>(cx: &Ctx, [rows, cols, from, count]: [usize; 4], wrap: fn(MatMut<E>) -> RowsMut) {
        let values: Vec<f32> = (0..rows * cols).map(|i| (i as f32 * 0.37).sin()).collect();
        let mut between = vec![E::narrow(9.0); (count + 2) * cols];
        let mut back = vec![7f32; rows * cols];
        let middle = MatMut::new(&mut between, count + 2, cols);
        let first = CopyRows {
            rows: Rows::F32(Mat::new(&values, rows, cols)),
            from,
            to: wrap(middle),
            at: 1,
            count,
        };
        copy_rows(cx, first).expect("rows");
        let second = CopyRows {
            rows: wrap(middle).as_ref(),
            from: 1,
            to: RowsMut::F32(MatMut::new(&mut back, rows, cols)),
            at: from,
            count,
        };
        copy_rows(cx, second).expect("rows");
        for (i, (got, x)) in back.iter().zip(&values).enumerate() {
            let copied = (from * cols..(from + count) * cols).contains(&i);
            assert_eq!(*got, if copied { E::narrow(*x).widen() } else { 7.0 }, "element {i}");
        }
        assert!(
            between[..cols]
                .iter()
                .chain(&between[(count + 1) * cols..])
                .all(|x| x.widen() == 9.0)
        );
    }

    #[test]
    fn ranges_of_rows_are_converted_and_nothing_else_is_touched() {
        for cx in contexts().iter().flatten() {
            for shape in [[1, 1, 0, 1], [9, 17, 3, 4], [700, 8, 100, 600], [5, 24, 5, 0]] {
                there_and_back::<f32>(cx, shape, RowsMut::F32);
                there_and_back::<u16>(cx, shape, RowsMut::F16);
                there_and_back::<Bf16>(cx, shape, RowsMut::Bf16);
            }
        }
    }

    #[test]
    fn rows_beyond_the_end_are_refused() {
        let (values, mut to) = (vec![0f32; 12], vec![0f32; 12]);
        let args = CopyRows {
            rows: Rows::F32(Mat::new(&values, 4, 3)),
            from: 2,
            to: RowsMut::F32(MatMut::new(&mut to, 4, 3)),
            at: 0,
            count: 3,
        };
        assert_eq!(copy_rows(&Ctx::new(1), args).expect_err("a fault").input, "count");
    }
}
