//! Why a kernel refused its input. Passed to TypeScript as data, where it becomes a typed error.

use std::fmt;

/// What was wrong with the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// Inconsistent sizes.
    Shape,
    /// Offsets that do not start at 0, decrease, or do not end at the number of tokens.
    Offsets,
    /// An id or index outside its table.
    Range,
    /// NaN or infinity where a finite number is needed.
    NotFinite,
    /// A timestamp that is negative or too large.
    Timestamp,
    /// An option outside its domain.
    Argument,
}

impl FaultKind {
    pub fn name(self) -> &'static str {
        match self {
            FaultKind::Shape => "shape",
            FaultKind::Offsets => "offsets",
            FaultKind::Range => "range",
            FaultKind::NotFinite => "not-finite",
            FaultKind::Timestamp => "timestamp",
            FaultKind::Argument => "argument",
        }
    }
}

/// An input error: which op, which of its inputs, what was expected, what was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    pub kind: FaultKind,
    pub op: &'static str,
    pub input: &'static str,
    pub expected: String,
    pub got: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}: expected {}, got {}",
            self.op, self.input, self.expected, self.got
        )
    }
}

impl std::error::Error for Fault {}

/// A kernel's outcome.
pub type Outcome<T = ()> = Result<T, Fault>;

/// Builds a fault in one line.
pub fn fault(
    kind: FaultKind,
    op: &'static str,
    input: &'static str,
    expected: impl Into<String>,
    got: impl Into<String>,
) -> Fault {
    Fault {
        kind,
        op,
        input,
        expected: expected.into(),
        got: got.into(),
    }
}

/// Offsets of a jagged batch: from 0, never decreasing, ending at `tokens`.
pub fn check_offsets(op: &'static str, offsets: &[i32], tokens: usize) -> Outcome {
    let bad = |expected: String, got: String| Err(fault(FaultKind::Offsets, op, "offsets", expected, got));
    match offsets.first() {
        None => return bad("at least one entry".into(), "none".into()),
        Some(0) => {}
        Some(first) => return bad("offsets[0] = 0".into(), format!("{first}")),
    }
    if let Some(i) = offsets.windows(2).position(|pair| pair[1] < pair[0]) {
        return bad(
            "offsets that never decrease".into(),
            format!(
                "offsets[{i}] = {} before offsets[{}] = {}",
                offsets[i],
                i + 1,
                offsets[i + 1]
            ),
        );
    }
    let last = offsets[offsets.len() - 1];
    if last as usize != tokens {
        return bad(
            format!("a last offset of {tokens} (the tokens of the batch)"),
            format!("{last}"),
        );
    }
    Ok(())
}

/// Ids into a table of `rows` rows. `hole` allows -1 for "none".
pub fn check_ids(op: &'static str, input: &'static str, ids: &[i32], rows: usize, hole: bool) -> Outcome {
    let least = if hole { -1 } else { 0 };
    // Branch-free minimum and maximum first: usually all ids are valid.
    let (low, high) = ids
        .iter()
        .fold((i32::MAX, i32::MIN), |(low, high), &id| (low.min(id), high.max(id)));
    if ids.is_empty() || (low >= least && (high as i64) < rows as i64) {
        return Ok(());
    }
    let at = ids
        .iter()
        .position(|&id| id < least || i64::from(id) >= rows as i64)
        .unwrap_or(0);
    Err(fault(
        FaultKind::Range,
        op,
        input,
        format!("ids in {least}..{rows}"),
        format!("{} at index {at}", ids[at]),
    ))
}

/// Largest timestamp accepted: nanoseconds up to the year 2116. Differences of two never overflow.
pub const MAX_TIME: i64 = 1 << 62;

/// Timestamps: not negative, at most [`MAX_TIME`].
pub fn check_times(op: &'static str, input: &'static str, times: &[i64]) -> Outcome {
    let (low, high) = times
        .iter()
        .fold((0, 0), |(low, high): (i64, i64), &t| (low.min(t), high.max(t)));
    if low >= 0 && high <= MAX_TIME {
        return Ok(());
    }
    let at = times.iter().position(|t| !(0..=MAX_TIME).contains(t)).unwrap_or(0);
    let got = format!("{} at index {at}", times[at]);
    Err(fault(
        FaultKind::Timestamp,
        op,
        input,
        format!("timestamps in 0..={MAX_TIME}"),
        got,
    ))
}
