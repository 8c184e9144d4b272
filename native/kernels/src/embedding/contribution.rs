//! An op's contribution to the gradient of an embedding table: factors, not rows. The ids index what the op read: the whole
//! table, or rows staged from it.

use super::sort::MAX_SOURCE_ROWS;
use crate::fault::{FaultKind, Outcome, fault};
use crate::mat::Mat;
use crate::rows::Rows;
use crate::shape::{check_id_mat, check_len, check_mat, check_table};
use crate::simd::LANES;

/// Maximum contributions per call: eight lanes of three.
pub const MAX_CONTRIBUTIONS: usize = 24;

/// Tables of up to this many floats are small: 1 MB of gradient, half of which fits in the L2 of a Zen 3.
const SMALL: usize = 256 * 1024;

/// Whether a table is so small that how a lane's gradient is summed depends on how many entries the lane has.
pub(super) fn is_small(items: usize, cols: usize) -> bool {
    items * cols.next_multiple_of(LANES) <= SMALL
}

/// Maximum source rows that share their ids.
pub const MAX_MEMBERS: usize = 16;

/// `scale * sum coef[r, j k + i] * source[r k + i]` over all (r, j) with `ids[r, j]` = row, and all i below k, is the row's
/// gradient. k is 1 but for tokens that share their draws.
#[derive(Clone, Copy)]
pub struct Contribution {
    /// -1, or a coefficient of 0, touches nothing.
    pub ids: Mat<i32>, // [rows, per]
    pub source: Mat,       // [rows k, D]
    pub coef: Option<Mat>, // [rows, per k], 1 when absent
    pub scale: f32,
    /// Which lane of the step it comes from; lanes ascend. Each is summed for itself, then they are added as the lanes of a
    /// step are. A small table takes one lane per call.
    pub lane: u32,
    /// `Some(eps)`: the gradient is that of the row divided by `max(|row|, eps)`, and is taken through it after summing.
    pub normalized: Option<f32>,
    /// The op read the rows in FP16, see `half_rows`. A row that only such ops read is rounded before the gradient is taken
    /// through its normalisation: then a lane needs no other value of it.
    pub rounded: bool,
}

impl Contribution {
    /// k.
    #[inline(always)]
    pub fn members(&self) -> usize {
        (self.source.rows / self.ids.rows.max(1)).max(1)
    }

    /// Number of summed products.
    pub fn summands(&self) -> usize {
        self.source.rows * self.ids.cols
    }
}

/// The rows that contributions refer to, as read by the ops.
#[derive(Clone, Copy)]
pub struct ReadRows<'a> {
    pub rows: Rows, // [V, D], or [U, D] when staged
    /// Of staged rows: the table's row that each one is, ascending, padded with -1.
    pub ids: Option<&'a [i32]>, // [U]
    /// V. Determines the order of sums, so that staged rows give the bits of the whole table.
    pub vocabulary: usize,
}

/// Validates everything and returns the eps of the normalised contributions.
pub(super) fn check_contributions(op: &'static str, read: &ReadRows, contributions: &[Contribution]) -> Outcome<f32> {
    let (items, cols) = (read.rows.rows(), read.rows.cols());
    check_table(op, "rows", read.rows, cols)?;
    if let Some(ids) = read.ids {
        check_len(op, "staged ids", ids.len(), items)?;
        check_ascending(op, "staged ids", ids, read.vocabulary)?;
    }
    let number = contributions.len();
    if number > MAX_CONTRIBUTIONS {
        let expected = format!("at most {MAX_CONTRIBUTIONS}");
        let got = format!("{number}");
        return Err(fault(FaultKind::Argument, op, "contributions", expected, got));
    }
    let lanes = || contributions.windows(2).map(|pair| (pair[0].lane, pair[1].lane));
    if lanes().any(|(lane, next)| lane > next) {
        return Err(fault(
            FaultKind::Argument,
            op,
            "lane",
            "ascending lanes",
            "another order",
        ));
    }
    if is_small(read.vocabulary, cols) && lanes().any(|(lane, next)| lane != next) {
        let got = format!("several for {} rows of {cols}", read.vocabulary);
        return Err(fault(
            FaultKind::Argument,
            op,
            "lane",
            "one lane for a small table",
            got,
        ));
    }
    let mut eps = None;
    for c in contributions {
        let members = c.members();
        check_mat(op, "source", c.source, c.ids.rows * members, cols)?;
        if let Some(coef) = c.coef.filter(|_| c.ids.rows > 0) {
            check_mat(op, "coef", coef, c.ids.rows, c.ids.cols * members)?;
        }
        if c.source.rows >= MAX_SOURCE_ROWS || members > MAX_MEMBERS {
            let expected = format!("fewer than {MAX_SOURCE_ROWS} rows, at most {MAX_MEMBERS} to an id");
            let got = format!("{}, {members}", c.source.rows);
            return Err(fault(FaultKind::Shape, op, "source", expected, got));
        }
        if let (Some(first), Some(this)) = (eps, c.normalized)
            && first != this
        {
            let expected = format!("one eps, {first}");
            let got = format!("{this}");
            return Err(fault(FaultKind::Argument, op, "normalized", expected, got));
        }
        eps = eps.or(c.normalized);
        check_id_mat(op, "ids", c.ids, items)?;
    }
    Ok(eps.unwrap_or(0.0))
}

/// Number of ids before a list's padding of -1.
pub(super) fn live(ids: &[i32]) -> usize {
    ids.partition_point(|&id| id >= 0)
}

/// Ids of a row list: ascending, each once, below `rows`, then -1 to the end. Returns how many there are.
pub(super) fn check_ascending(op: &'static str, input: &'static str, ids: &[i32], rows: usize) -> Outcome<usize> {
    let count = live(ids);
    let sound = ids[..count].first().is_none_or(|&first| first >= 0)
        && ids[..count].windows(2).all(|pair| pair[0] < pair[1])
        && ids[..count].last().is_none_or(|&last| (last as usize) < rows)
        && ids[count..].iter().all(|&id| id == -1);
    if sound {
        return Ok(count);
    }
    let expected = format!("ascending ids below {rows}, then -1");
    Err(fault(FaultKind::Range, op, input, expected, "another order or range"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_lists_ascend_and_end_in_minus_one() {
        let check = |ids: &[i32]| check_ascending("op", "ids", ids, 9).ok();
        assert_eq!(check(&[0, 3, 8, -1, -1]), Some(3));
        assert_eq!(check(&[-1]), Some(0));
        assert_eq!(check(&[]), Some(0));
        for bad in [&[3, 3][..], &[3, 2], &[2, 9], &[-1, 2], &[1, -1, 2]] {
            assert_eq!(check(bad), None, "{bad:?}");
        }
    }
}
