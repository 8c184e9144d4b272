//! The sum over all items of e^(score - bar), in fixed point: each term is rounded to a multiple of 2^-bits and added as an
//! integer, so sums over disjoint parts of a table add up exactly to that of the whole.
//!
//! With a bar that no score exceeds, terms are at most 1; `bits` leaves room for all of them in 63 bits.

use super::scan::{Scan, Scores, Sink};
use crate::ctx::Ctx;
use crate::fault::{FaultKind, Outcome, fault};
use crate::mat::{Disjoint, Mat};
use crate::rows::Rows;
use crate::shape::check_len;
use crate::simd::tile::NR;
use crate::simd::{LANES, Simd};

const OP: &str = "exp_sum";
const LEAST_RANGE: usize = 2048;
const MOST_BITS: usize = 62;

pub struct ExpSum<'a> {
    pub queries: Mat, // [Q, D]
    pub table: Rows,  // [V, D]
    /// At least the maximum score.
    pub bars: &'a [f32], // [Q]
    pub bits: usize,
    pub sums: &'a mut [i64], // [Q]
}

pub fn exp_sum(cx: &Ctx, args: ExpSum) -> Outcome {
    let scan = Scan::new(OP, args.queries, args.table, LEAST_RANGE)?;
    let (queries, items) = (args.queries.rows, args.table.rows());
    check_len(OP, "bars", args.bars.len(), queries)?;
    check_len(OP, "sums", args.sums.len(), queries)?;
    if args.bits > MOST_BITS || items >> (MOST_BITS - args.bits) > 0 {
        let expected = "room for all items";
        return Err(fault(FaultKind::Argument, OP, "bits", expected, args.bits.to_string()));
    }
    let ranges = scan.ranges();
    let mut parts = cx.scratch::<i64>(ranges * queries);
    parts.fill(0);
    let sum = Sum {
        queries,
        bars: args.bars,
        unit: 2.0f32.powi(args.bits as i32),
        parts: Disjoint::new(&mut parts),
    };
    scan.run(cx, &sum)?;
    for (q, sum) in args.sums.iter_mut().enumerate() {
        *sum = (0..ranges).map(|range| parts[range * queries + q]).sum();
    }
    Ok(())
}

struct Sum<'a> {
    queries: usize,
    bars: &'a [f32],
    unit: f32,
    parts: Disjoint<'a, i64>,
}

impl Sink for Sum<'_> {
    #[inline(always)]
    unsafe fn take<V: Simd>(&self, s: &Scores) {
        let mut terms = [0.0f32; NR];
        // SAFETY: a query's scores in a range come from one task; sixteen scores are two vectors.
        unsafe {
            for at in [0, LANES] {
                let lead = V::load(s.scores.as_ptr().add(at)).sub(V::splat(self.bars[s.query]));
                lead.exp().min(V::splat(1.0)).store(terms.as_mut_ptr().add(at));
            }
            let part = &mut self.parts.range(s.range * self.queries + s.query, 1)[0];
            let units = |term: &f32| (term * self.unit).round_ties_even() as i64;
            *part += terms[..s.count].iter().map(units).sum::<i64>();
        }
    }
}
