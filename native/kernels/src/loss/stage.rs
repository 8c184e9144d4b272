//! The item rows as a sampled loss reads them, prepared once per call: a small table that is drawn from often is copied,
//! normalised and padded; of a larger one only the rows' lengths are worth knowing beforehand. Decided by sizes alone.

use super::Logit;
use super::fetched::Fetched;
use super::norm::{UnitRows, unit_factors, unit_rows};
use crate::arena::Lease;
use crate::ctx::Ctx;
use crate::rows::Rows;
use crate::simd::LANES;

/// A table this often drawn from (draws per row) is worth a pass over it before.
const DRAWS_PER_ROW: usize = 4;
/// Floats of the largest copy: 8 MB, a quarter of the L3 of a Zen 3.
const COPY: usize = 2 << 20;

pub(super) enum Stage<'a> {
    Copy(UnitRows<'a>),
    Table(Rows, Lengths<'a>),
    /// Negatives beside the table; positives are rows of the table itself.
    Fetched(Fetched<'a>, Rows),
}

/// What a row is to be multiplied by.
pub(super) enum Lengths<'a> {
    Unit,
    /// `1 / max(|row|, eps)` of every row.
    Known(Lease<'a, f32>),
    /// The same, computed whenever a row is met.
    Computed,
    /// A factor for every row fetched.
    Given(&'a [f32]),
}

/// What decides the form of the rows: the size of the whole table, and how often the call draws from it.
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
