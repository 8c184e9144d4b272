//! Groups the summands of a table's gradient by row: a stable radix sort whose first pass reads the contributions directly. One
//! pass suffices for tables of up to 4,096 rows, two for up to 16 M. Stability fixes the order of every sum.

use super::contribution::{Contribution, MAX_CONTRIBUTIONS};
use super::sums::number;
use crate::arena::{Lease, Pod};
use crate::ctx::Ctx;
use crate::mat::Disjoint;
use crate::simd::{Kernel, Simd, dispatch};

/// Widest digit: 4,096 open write streams of a line each stay within L2.
const DIGIT_BITS: u32 = 12;
/// Entries counted and scattered by one task.
const PART: usize = 32 * 1024;
/// Prefetch distance of coefficients in entries: they are scattered.
const AHEAD: usize = 16;
/// Contributions are numbered in the top bits of [`Entry::source`].
const ROW_BITS: u32 = u32::BITS - MAX_CONTRIBUTIONS.next_power_of_two().ilog2();
pub(super) const MAX_SOURCE_ROWS: usize = 1 << ROW_BITS;

/// `weight * source row` is to be added to the gradient of row `id`. While entries are sorted, one stands for all source rows
/// that share its id: it names their row of ids and, instead of a weight, the column.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub id: u32,
    source: u32,
    pub weight: f32,
}

// SAFETY: three plain numbers without padding.
unsafe impl Pod for Entry {}

impl Entry {
    pub fn contribution(self) -> usize {
        (self.source >> ROW_BITS) as usize
    }
    pub fn row(self) -> usize {
        self.source as usize & (MAX_SOURCE_ROWS - 1)
    }
}

/// All live entries by id, then by contribution, row and column. An id of -1 and a weight of 0 are not live, unless other
/// source rows of the same id have a weight.
pub(super) fn sorted<'a>(cx: &'a Ctx, contributions: &[Contribution], items: usize) -> (Lease<'a, Entry>, usize) {
    let most = contributions.iter().map(|c| c.ids.rows * c.ids.cols).sum();
    let bits = usize::BITS - (items.max(2) - 1).leading_zeros();
    let passes = bits.div_ceil(DIGIT_BITS);
    let digit_bits = bits.div_ceil(passes);
    let mut from = cx.scratch::<Entry>(most);
    let first = Pass {
        shift: 0,
        bits: digit_bits,
    };
    let count = first.run(cx, &Draws::new(contributions), &mut from);
    if passes > 1 {
        let mut to = cx.scratch::<Entry>(count);
        for pass in 1..passes {
            let pass = Pass {
                shift: pass * digit_bits,
                bits: digit_bits,
            };
            pass.run(cx, &Sorted(&from[..count]), &mut to);
            std::mem::swap(&mut from, &mut to);
        }
    }
    match contributions.iter().any(|c| c.members() > 1) {
        true => written_out(cx, contributions, &from[..count]),
        false => (from, count),
    }
}

/// An entry for each source row.
fn written_out<'a>(cx: &'a Ctx, contributions: &[Contribution], entries: &[Entry]) -> (Lease<'a, Entry>, usize) {
    let mut members = [1; MAX_CONTRIBUTIONS];
    for (members, c) in members.iter_mut().zip(contributions) {
        *members = c.members();
    }
    let mut starts = cx.scratch::<u32>(entries.len().div_ceil(PART));
    for (start, part) in starts.iter_mut().zip(entries.chunks(PART)) {
        *start = part.iter().map(|entry| members[entry.contribution()] as u32).sum();
    }
    let count = number(&mut starts);
    let (starts, mut all) = (&starts[..], cx.scratch::<Entry>(count));
    {
        let all = Disjoint::new(&mut all);
        cx.pool.run(starts.len(), |part, _| {
            let from = starts[part] as usize;
            let until = starts.get(part + 1).map_or(count, |start| *start as usize);
            let entries = &entries[part * PART..entries.len().min((part + 1) * PART)];
            // SAFETY: each part begins where the previous one ends; `cx.isa` is this CPU's.
            unsafe {
                let to = all.range(from, until - from);
                let (contributions, members) = (contributions, &members);
                dispatch(
                    cx.isa,
                    WriteOut {
                        contributions,
                        members,
                        entries,
                        to,
                    },
                );
            }
        });
    }
    (all, count)
}

/// A part of what [`written_out`] writes.
struct WriteOut<'a> {
    contributions: &'a [Contribution],
    members: &'a [usize; MAX_CONTRIBUTIONS],
    entries: &'a [Entry],
    /// Capacity for all source rows of the entries.
    to: &'a mut [Entry],
}

impl WriteOut<'_> {
    /// The coefficients of an entry's source rows; `None` if it is already written out, or if they are all 1.
    #[inline(always)]
    fn coef(&self, entry: Entry) -> Option<*const f32> {
        let members = self.members[entry.contribution()];
        let coef = self.contributions[entry.contribution()].coef.filter(|_| members > 1)?;
        let first = entry.weight.to_bits() as usize * members;
        Some(coef.ptr.wrapping_add(entry.row() * coef.stride + first))
    }
}

impl Kernel for WriteOut<'_> {
    #[inline(always)]
    unsafe fn run<V: Simd>(mut self) {
        let mut to = std::mem::take(&mut self.to).iter_mut();
        for (at, &entry) in self.entries.iter().enumerate() {
            if let Some(coef) = self.entries.get(at + AHEAD).and_then(|&entry| self.coef(entry)) {
                // SAFETY: by the contract of `dispatch`.
                unsafe { V::prefetch(coef) };
            }
            let (number, members) = (entry.contribution(), self.members[entry.contribution()]);
            if members == 1 {
                to.by_ref().take(1).for_each(|to| *to = entry);
                continue;
            }
            let (coef, scale) = (self.coef(entry), self.contributions[number].scale);
            for (member, to) in to.by_ref().take(members).enumerate() {
                // SAFETY: the entry names a row and a column of the ids, which has as many coefficients as members.
                let weight = coef.map_or(1.0, |coef| unsafe { *coef.add(member) });
                *to = Entry {
                    id: entry.id,
                    source: (number as u32) << ROW_BITS | (entry.row() * members + member) as u32,
                    weight: weight * scale,
                };
            }
        }
    }
}

/// Entries in order, cut into parts.
trait Parts: Sync {
    fn parts(&self) -> usize;
    fn visit(&self, part: usize, each: impl FnMut(Entry));
}

struct Sorted<'a>(&'a [Entry]);

impl Parts for Sorted<'_> {
    fn parts(&self) -> usize {
        self.0.len().div_ceil(PART)
    }
    fn visit(&self, part: usize, each: impl FnMut(Entry)) {
        self.0[part * PART..self.0.len().min((part + 1) * PART)]
            .iter()
            .copied()
            .for_each(each);
    }
}

struct Draws<'a> {
    contributions: &'a [Contribution],
}

impl<'a> Draws<'a> {
    fn new(contributions: &'a [Contribution]) -> Draws<'a> {
        Draws { contributions }
    }
    fn rows_per_part(contribution: &Contribution) -> usize {
        (PART / contribution.ids.cols.max(1)).max(1)
    }
}

impl Parts for Draws<'_> {
    fn parts(&self) -> usize {
        self.contributions
            .iter()
            .map(|c| c.ids.rows.div_ceil(Self::rows_per_part(c)))
            .sum()
    }
    fn visit(&self, mut part: usize, mut each: impl FnMut(Entry)) {
        for (number, c) in self.contributions.iter().enumerate() {
            let rows = Self::rows_per_part(c);
            let parts = c.ids.rows.div_ceil(rows);
            if part >= parts {
                part -= parts;
                continue;
            }
            for row in part * rows..c.ids.rows.min((part + 1) * rows) {
                // SAFETY: `row` is a row of both views, which have the same shape.
                let (ids, coef) = unsafe { (c.ids.row(row), c.coef.map(|coef| coef.row(row))) };
                let source = (number as u32) << ROW_BITS | row as u32;
                let mut live = |id: i32, weighs: bool, weight: f32| {
                    if id >= 0 && weighs {
                        let id = id as u32;
                        each(Entry { id, source, weight });
                    }
                };
                match (coef, c.members()) {
                    (Some(coef), 1) => ids.iter().zip(coef).for_each(|(&id, &coef)| {
                        let weight = coef * c.scale;
                        live(id, weight != 0.0, weight);
                    }),
                    (None, 1) => ids.iter().for_each(|&id| live(id, c.scale != 0.0, c.scale)),
                    (Some(coef), members) => {
                        for (j, (&id, coef)) in ids.iter().zip(coef.chunks_exact(members)).enumerate() {
                            let weighs = coef.iter().any(|coef| coef * c.scale != 0.0);
                            live(id, weighs, f32::from_bits(j as u32));
                        }
                    }
                    (None, _) => (0..)
                        .zip(ids)
                        .for_each(|(j, &id)| live(id, c.scale != 0.0, f32::from_bits(j))),
                }
            }
            return;
        }
    }
}

#[derive(Clone, Copy)]
struct Pass {
    shift: u32,
    bits: u32,
}

impl Pass {
    fn digit(self, entry: Entry) -> usize {
        (entry.id >> self.shift) as usize & ((1 << self.bits) - 1)
    }

    /// Counts by (part, digit), computes offsets, scatters. Returns the number of entries.
    fn run(self, cx: &Ctx, from: &impl Parts, to: &mut [Entry]) -> usize {
        let (parts, digits) = (from.parts(), 1usize << self.bits);
        let mut places = cx.scratch::<u32>(parts * digits);
        let by_part = Disjoint::new(&mut places);
        cx.pool.run(parts, |part, _| {
            // SAFETY: each task has its part's counters.
            let counts = unsafe { by_part.range(part * digits, digits) };
            counts.fill(0);
            from.visit(part, |entry| counts[self.digit(entry)] += 1);
        });
        let mut place = 0;
        for digit in 0..digits {
            for part in 0..parts {
                let count = std::mem::replace(&mut places[part * digits + digit], place);
                place += count;
            }
        }
        let (by_part, to) = (Disjoint::new(&mut places), Disjoint::new(to));
        cx.pool.run(parts, |part, _| {
            // SAFETY: each task has its part's places, which are no other part's.
            let places = unsafe { by_part.range(part * digits, digits) };
            from.visit(part, |entry| {
                let place = &mut places[self.digit(entry)];
                // SAFETY: as above.
                unsafe { to.range(*place as usize, 1)[0] = entry };
                *place += 1;
            });
        });
        place as usize
    }
}
