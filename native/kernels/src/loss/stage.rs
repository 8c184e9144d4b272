//! Prepares the item rows of a sampled loss once per call: a small table with many draws is copied, normalised and padded; for a
//! larger one only the norms are precomputed, if that pays. Depends on sizes only.

use super::Logit;
use super::fetched::Fetched;
use super::norm::{UnitRows, unit_factors, unit_rows};
use crate::arena::Lease;
use crate::ctx::Ctx;
use crate::rows::Rows;
use crate::simd::LANES;

/// Minimum draws per row for which a pass over the table pays.
const DRAWS_PER_ROW: usize = 4;
/// Floats of the largest copy: 8 MB, a quarter of the L3 of a Zen 3.
const COPY: usize = 2 << 20;

pub(super) enum Stage<'a> {
    Copy(UnitRows<'a>),
    Table(Rows, Lengths<'a>),
    Fetched(Beside<'a>),
}

/// Fetched rows of negatives, and where the positives are.
#[derive(Clone, Copy)]
pub(super) struct Beside<'a> {
    pub fetched: Fetched<'a>,
    /// The segment's first token.
    pub first: usize,
    pub table: Rows,
    /// Row of each token's positive.
    pub positives: &'a [i32], // [T]
}

/// Factors of the rows.
pub(super) enum Lengths<'a> {
    Unit,
    /// `1 / max(|row|, eps)` of every row.
    Known(Lease<'a, f32>),
    /// The same, computed whenever a row is read.
    Computed,
    /// A factor for every row fetched.
    Given(&'a [f32]),
}

/// Determines the form of the rows: the size of the whole table, and the number of draws.
pub(super) struct Expected {
    pub vocabulary: usize,
    pub draws: usize,
}

impl<'a> Stage<'a> {
    pub fn new(cx: &'a Ctx, table: Rows, logit: Logit, expected: Expected) -> Stage<'a> {
        let Expected { vocabulary, draws } = expected;
        let often = vocabulary * DRAWS_PER_ROW <= draws;
        if often && vocabulary * table.cols().next_multiple_of(LANES) <= COPY {
            return Stage::Copy(unit_rows(cx, table, logit.normalize_item, logit.eps));
        }
        let lengths = match (logit.normalize_item, often) {
            (false, _) => Lengths::Unit,
            (true, true) => Lengths::Known(unit_factors(cx, table, logit.eps)),
            (true, false) => Lengths::Computed,
        };
        Stage::Table(table, lengths)
    }
}
