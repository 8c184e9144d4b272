//! The gradient of a table as a list: contributions summed by row, in the order in which `embedding_update` sums them,
//! and stored by ascending id. Two such lists add up to one (`sparse_add`).
//!
//! D width, U capacity of a list in rows; ids beyond its last row are -1, and rows there are unspecified.

use super::apply::{Job, Rule};
use super::contribution::{Contribution, ReadRows, check_ascending, check_contributions, live};
use super::sums;
use crate::arena::Pod;
use crate::ctx::Ctx;
use crate::fault::{FaultKind, Outcome, fault};
use crate::mat::{Disjoint, Mat, MatMut};
use crate::rows::{load_vector, store_vector};
use crate::shape::{check_len, check_mat, check_mut};
use crate::simd::{Kernel, LANES, Simd, dispatch};

/// Rows added by one task.
const TILE: usize = 256;

/// A list to write.
pub struct RowListMut<'a> {
    pub ids: &'a mut [i32], // [U]
    pub rows: MatMut,       // [U, D]
}

/// A list to read.
#[derive(Clone, Copy)]
pub struct RowList<'a> {
    pub ids: &'a [i32], // [U]
    pub rows: Mat,      // [U, D]
}

/// Sufficient capacity of a list for any ids: one row per entry, at most all rows of the table.
fn room(entries: usize, vocabulary: usize) -> usize {
    entries.min(vocabulary)
}

fn check_room(op: &'static str, has: usize, needs: usize) -> Outcome {
    if has >= needs {
        return Ok(());
    }
    let (expected, got) = (format!("room for {needs} rows"), format!("for {has}"));
    Err(fault(FaultKind::Shape, op, "to", expected, got))
}

pub fn embedding_reduce(cx: &Ctx, read: ReadRows, contributions: &[Contribution], to: RowListMut) -> Outcome {
    let op = "embedding_reduce";
    let eps = check_contributions(op, &read, contributions)?;
    let entries = contributions.iter().map(|c| c.ids.rows * c.ids.cols).sum();
    check_room(op, to.ids.len(), room(entries, read.vocabulary))?;
    check_mut(op, "to", to.rows, to.ids.len(), read.rows.cols())?;
    to.ids.fill(-1);
    let rule = Rule::List {
        ids: Disjoint::new(to.ids),
        rows: to.rows,
    };
    sums::form(
        cx,
        &Job {
            read,
            contributions,
            rule: &rule,
            eps,
        },
    );
    Ok(())
}

/// Origin of a row of the sum: its index in the two lists, `NONE` if a list does not have it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Pair {
    left: u32,
    right: u32,
}

// SAFETY: two plain numbers without padding.
unsafe impl Pod for Pair {}

const NONE: u32 = u32::MAX;

/// `to = left + right` by id; rows in only one list are copied, those in the list `without` are left out.
pub fn sparse_add(cx: &Ctx, left: RowList, right: RowList, without: &[i32], to: RowListMut) -> Outcome {
    let op = "sparse_add";
    check_ascending(op, "without", without, i32::MAX as usize)?;
    let cols = to.rows.cols;
    for (input, list) in [("left", left), ("right", right)] {
        check_mat(op, input, list.rows, list.ids.len(), cols)?;
        check_ascending(op, input, list.ids, i32::MAX as usize)?;
    }
    check_len(op, "to", to.ids.len(), to.rows.rows)?;
    let most = live(left.ids) + live(right.ids);
    let mut pairs = cx.scratch::<Pair>(most);
    let count = merge(left.ids, right.ids, without, &mut pairs);
    check_room(op, to.ids.len(), count)?;
    check_mut(op, "to", to.rows, to.ids.len(), cols)?;
    let RowListMut { ids, rows } = to;
    ids.fill(-1);
    let pairs = &pairs[..count];
    for (id, pair) in ids.iter_mut().zip(pairs) {
        *id = match pair.left {
            NONE => right.ids[pair.right as usize],
            place => left.ids[place as usize],
        };
    }
    cx.pool.run(count.div_ceil(TILE), |task, _| {
        let from = task * TILE;
        let pairs = &pairs[from..count.min(from + TILE)];
        // SAFETY: tasks own disjoint rows of `to`; places are rows of their lists.
        unsafe {
            dispatch(
                cx.isa,
                AddRows {
                    left: left.rows,
                    right: right.rows,
                    pairs,
                    from,
                    to: rows,
                },
            )
        };
    });
    Ok(())
}

/// Merges the ids, ascending, with their indices; returns their number.
fn merge(left: &[i32], right: &[i32], without: &[i32], pairs: &mut [Pair]) -> usize {
    let (left, right) = (&left[..live(left)], &right[..live(right)]);
    let mut without = without[..live(without)].iter().copied().peekable();
    let (mut l, mut r, mut count) = (0, 0, 0);
    while l < left.len() || r < right.len() {
        let id_left = left.get(l).copied().unwrap_or(i32::MAX);
        let id_right = right.get(r).copied().unwrap_or(i32::MAX);
        let mut pair = Pair {
            left: NONE,
            right: NONE,
        };
        if id_left <= id_right {
            pair.left = l as u32;
            l += 1;
        }
        if id_right <= id_left {
            pair.right = r as u32;
            r += 1;
        }
        let id = id_left.min(id_right);
        while without.next_if(|other| *other < id).is_some() {}
        if without.peek() != Some(&id) {
            pairs[count] = pair;
            count += 1;
        }
    }
    count
}

struct AddRows<'a> {
    left: Mat,
    right: Mat,
    pairs: &'a [Pair],
    from: usize,
    to: MatMut,
}

impl Kernel for AddRows<'_> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        let cols = self.to.cols;
        for (i, pair) in self.pairs.iter().enumerate() {
            // SAFETY: places were found in the lists; row `from + i` is this task's.
            unsafe {
                let to = self.to.row(self.from + i).as_mut_ptr();
                let (only, both) = match (pair.left, pair.right) {
                    (NONE, r) => (self.right.row(r as usize).as_ptr(), None),
                    (l, NONE) => (self.left.row(l as usize).as_ptr(), None),
                    (l, r) => (
                        self.left.row(l as usize).as_ptr(),
                        Some(self.right.row(r as usize).as_ptr()),
                    ),
                };
                for k in 0..cols.div_ceil(LANES) {
                    let mut x = load_vector::<V, f32>(only, k, cols);
                    if let Some(other) = both {
                        x = x.add(load_vector::<V, f32>(other, k, cols));
                    }
                    store_vector::<V, f32>(x, to, k, cols);
                }
            }
        }
    }
}
