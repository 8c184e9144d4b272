//! Losses over one segment of a batch at a time, with rows of negatives fetched for that segment.
//!
//! P positions: tokens with R draws each, or groups of tokens with the draws of all; U rows fetched, D width.

use crate::fault::{FaultKind, Outcome, check_ids, fault};
use crate::mat::Mat;
use crate::rows::Rows;
use crate::shape::{check_len, check_mat, check_table};
use std::ops::Range;

/// Fetched rows of negatives, see `fetch_negatives`.
#[derive(Clone, Copy)]
pub struct Fetched<'a> {
    pub rows: Rows, // [U, D]
    /// Factor for products with each row.
    pub factors: &'a [f32], // [U]
    /// Index of each negative's row, -1 for none; the segment's positions come first.
    pub places: Mat<i32>, // [at least the segment's positions, R]
}

impl Fetched<'_> {
    /// `negatives` are the ids that the places belong to.
    pub(super) fn check(
        &self,
        op: &'static str,
        cols: usize,
        negatives: Mat<i32>,
        positions: &Range<usize>,
    ) -> Outcome {
        check_table(op, "fetched rows", self.rows, cols)?;
        check_len(op, "fetched factors", self.factors.len(), self.rows.rows())?;
        check_mat(op, "fetched places", self.places, self.places.rows, negatives.cols)?;
        if self.places.rows < positions.len() {
            let (expected, got) = (format!("{}", positions.len()), format!("{}", self.places.rows));
            return Err(fault(FaultKind::Shape, op, "fetched places", expected, got));
        }
        if self.factors.is_empty() {
            return Err(fault(FaultKind::Shape, op, "fetched rows", "a row at least", "none"));
        }
        // SAFETY: positions are rows of the view.
        (0..positions.len()).try_for_each(|row| {
            check_ids(
                op,
                "fetched places",
                // SAFETY: `row` is a row of the places.
                unsafe { self.places.row(row) },
                self.factors.len(),
                true,
            )
        })
    }

    /// The row of a negative; any row if there is none, since it is masked then.
    #[inline(always)]
    pub(super) fn place(place: i32) -> i32 {
        place.max(0)
    }
}

/// Rows of positives, where ids are not rows of the table: every trained token has one.
pub(super) fn check_positive_rows(
    op: &'static str,
    rows: Option<&[i32]>,
    positives: &[i32],
    (fetched, table): (Option<Fetched>, Rows),
) -> Outcome {
    let Some(rows) = rows else { return Ok(()) };
    let input = "positive rows";
    check_len(op, input, rows.len(), positives.len())?;
    check_ids(op, input, rows, table.rows(), true)?;
    let known = positives.iter().zip(rows).all(|(id, row)| *id < 0 || *row >= 0);
    if known && fetched.is_some() {
        return Ok(());
    }
    let expected = "a row for every positive, and fetched rows of negatives";
    Err(fault(FaultKind::Argument, op, input, expected, "none"))
}

/// The positions that a call scores. Segments of a batch are scored in order and give the bits of one call over all.
pub struct Segment<'a> {
    pub positions: Range<usize>,
    /// Bits of the f64 sum of the losses so far; absent when there is one segment.
    pub sum: Option<&'a mut i64>,
}

impl Segment<'_> {
    pub fn whole(positions: usize) -> Segment<'static> {
        Segment {
            positions: 0..positions,
            sum: None,
        }
    }

    pub(super) fn check(&self, op: &'static str, positions: usize) -> Outcome {
        let Range { start, end } = self.positions;
        let whole = start == 0 && end == positions;
        if start <= end && end <= positions && (whole || self.sum.is_some()) {
            return Ok(());
        }
        let expected = format!("0..{positions}, or a part of it and the sum so far");
        Err(fault(
            FaultKind::Range,
            op,
            "segment",
            expected,
            format!("{start}..{end}"),
        ))
    }

    /// The sum of all losses up to the end of this segment, added in order.
    pub(super) fn add(self, losses: &[f64]) -> f64 {
        let Some(bits) = self.sum else {
            return losses.iter().sum();
        };
        // -0 is where `sum` starts too.
        let before = if self.positions.start == 0 {
            -0.0
        } else {
            f64::from_bits(*bits as u64)
        };
        let sum = losses.iter().fold(before, |sum, loss| sum + loss);
        *bits = sum.to_bits() as i64;
        sum
    }
}

#[cfg(test)]
pub(super) mod testing {
    use super::*;
    use crate::Ctx;
    use crate::embedding::{FetchNegatives, fetch_negatives};
    use crate::loss::Logit;
    use crate::loss::naive::Problem;
    use crate::mat::MatMut;
    use crate::rows::RowsMut;
    use crate::testing::Padded;

    /// Source of a test's negatives: the table in one call, or rows fetched for each of three segments.
    #[derive(Clone, Copy, PartialEq, Debug)]
    pub enum Source {
        Table,
        Fetched {
            half: bool,
        },
        /// Fetched, and the positives in rows of their own, as on several ranks.
        Apart,
    }

    pub const SOURCES: [Source; 4] = [
        Source::Table,
        Source::Fetched { half: false },
        Source::Fetched { half: true },
        Source::Apart,
    ];
    /// Those that give the bits of the table.
    pub const EXACT: [Source; 2] = [Source::Fetched { half: false }, Source::Apart];

    /// The positives of a problem: a row for each token, the last token's first.
    pub struct OwnRows {
        rows: Padded,
        places: Vec<i32>,
    }

    impl OwnRows {
        pub fn new(p: &Problem) -> OwnRows {
            let [t, d, ..] = p.shape;
            let row = |id: i32| p.table[id.max(0) as usize * d..].iter().take(d);
            let rows: Vec<f64> = p.positives.iter().rev().flat_map(|id| row(*id)).copied().collect();
            let place = |(token, id): (usize, &i32)| if *id < 0 { -1 } else { (t - 1 - token) as i32 };
            OwnRows {
                rows: Padded::from(&rows, t, d),
                places: p.positives.iter().enumerate().map(place).collect(),
            }
        }

        /// The table and the positives' rows that a loss is called with.
        pub fn of(&self, source: Source, table: Rows) -> (Rows, Option<&[i32]>) {
            match source {
                Source::Apart => (Rows::F32(self.rows.mat()), Some(&self.places)),
                _ => (table, None),
            }
        }
    }

    /// Rows fetched for a segment.
    pub struct Beside {
        half: bool,
        halves: Vec<u16>,
        floats: Vec<f32>,
        factors: Vec<f32>,
        places: Vec<i32>,
        ids: Mat<i32>,
        cols: usize,
    }

    impl Beside {
        fn fetch(
            cx: &Ctx,
            table: Rows,
            ids: Mat<i32>,
            positions: Range<usize>,
            (half, logit): (bool, Logit),
        ) -> Beside {
            let (room, cols) = ((ids.rows * ids.cols).max(1), table.cols());
            let (mut halves, mut floats) = (vec![0x7e00; room * cols], vec![f32::NAN; room * cols]);
            let (mut factors, mut places) = (vec![f32::NAN; room], vec![-1; ids.rows * ids.cols]);
            let rows = match half {
                true => RowsMut::F16(MatMut::new(&mut halves, room, cols)),
                false => RowsMut::F32(MatMut::new(&mut floats, room, cols)),
            };
            let args = FetchNegatives {
                table,
                ids,
                positions,
                normalize: logit.normalize_item.then_some(logit.eps),
                places: MatMut::new(&mut places, ids.rows, ids.cols),
                rows,
                factors: &mut factors,
            };
            fetch_negatives(cx, args).expect("rows");
            Beside {
                half,
                halves,
                floats,
                factors,
                places,
                ids,
                cols,
            }
        }

        pub fn rows(&self) -> Fetched<'_> {
            let room = self.factors.len();
            Fetched {
                rows: match self.half {
                    true => Rows::F16(Mat::new(&self.halves, room, self.cols)),
                    false => Rows::F32(Mat::new(&self.floats, room, self.cols)),
                },
                factors: &self.factors,
                places: Mat::new(&self.places, self.ids.rows, self.ids.cols),
            }
        }
    }

    /// Calls `score` once for the table, or for each segment with its rows.
    pub fn in_segments<E>(
        cx: &Ctx,
        (source, logit): (Source, Logit),
        table: Rows,
        ids: Mat<i32>,
        mut score: impl FnMut(Option<Fetched>, Segment) -> Result<(), E>,
    ) -> Result<(), E> {
        let half = match source {
            Source::Table => return score(None, Segment::whole(ids.rows)),
            Source::Fetched { half } => half,
            Source::Apart => false,
        };
        let mut sum = 0;
        let ends = [ids.rows / 3, ids.rows / 2, ids.rows];
        let mut from = 0;
        for end in ends {
            let beside = Beside::fetch(cx, table, ids, from..end, (half, logit));
            let segment = Segment {
                positions: from..end,
                sum: Some(&mut sum),
            };
            score(Some(beside.rows()), segment)?;
            from = end;
        }
        Ok(())
    }
}
