//! Rows of a large table: entries sorted by row, each row's run summed in registers.

use super::Contribution;
use super::apply::{Job, Target};
use super::sort::{Entry, sorted};
use super::sums::{number, total};
use crate::ctx::Ctx;
use crate::exact_sum::ExactSum;
use crate::gathered::{Terms, add_weighted};
use crate::mat::{Disjoint, Mat};
use crate::rows::Element;
use crate::simd::{Kernel, LANES, Simd, dispatch};
use crate::with_rows;

/// Sorted entries of one task, which finishes the rows that begin among them.
const TILE: usize = 1024;
/// Source rows asked for ahead of their use.
const AHEAD: usize = 6;

/// Returns the sum of squares, if the rule forms it.
pub(super) fn form(cx: &Ctx, job: &Job) -> ExactSum {
    let Job {
        read,
        contributions,
        rule,
        eps,
    } = *job;
    let (entries, count) = sorted(cx, contributions, read.rows.rows());
    let entries = &entries[..count];
    let tiles = count.div_ceil(TILE);
    let mut numbers = cx.scratch::<u32>(tiles);
    numbers.fill(0);
    if rule.numbers_rows() {
        let counts = Disjoint::new(&mut numbers);
        cx.pool.run(tiles, |task, _| {
            // SAFETY: each task has its own count.
            unsafe { counts.range(task, 1)[0] = begun(entries, task * TILE) };
        });
        number(&mut numbers);
    }
    let numbers = &numbers[..];
    let mut squares = cx.scratch::<ExactSum>(tiles);
    squares.fill(ExactSum::ZERO);
    let mut buffers = cx.per_worker::<f32>(2 * read.rows.cols().next_multiple_of(LANES));
    {
        let (buffers, squares) = (buffers.slots(), Disjoint::new(&mut squares));
        cx.pool.run(tiles, |task, worker| {
            // SAFETY: a row's entries are finished by one task; a worker's buffer is its own while it runs a task.
            unsafe {
                let (buffer, square) = (buffers.of(worker), &mut squares.range(task, 1)[0]);
                let (from, number) = (task * TILE, numbers[task] as usize);
                with_rows!(Rows, read.rows, rows => {
                    let target = Target { read: rows, ids: read.ids, rule, eps };
                    dispatch(cx.isa, Runs { target, contributions, entries, from, number, buffer, square })
                });
            }
        });
    }
    total(&squares)
}

/// How many rows begin among the entries of a tile.
fn begun(entries: &[Entry], from: usize) -> u32 {
    let end = entries.len().min(from + TILE);
    let begins = |at: &usize| *at == 0 || entries[*at].id != entries[*at - 1].id;
    (from..end).filter(begins).count() as u32
}

/// The rows whose entries begin in `from..from + TILE`.
struct Runs<'a, E> {
    target: Target<'a, E>,
    contributions: &'a [Contribution],
    entries: &'a [Entry],
    from: usize,
    /// Of the first row that begins here, among all touched ones.
    number: usize,
    /// Two padded rows.
    buffer: &'a mut [f32],
    square: &'a mut ExactSum,
}

impl<E: Element> Kernel for Runs<'_, E> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        let entries = self.entries;
        let end = entries.len().min(self.from + TILE);
        let (plain, unit) = self.buffer.split_at_mut(self.target.read.cols.next_multiple_of(LANES));
        let (mut at, mut number) = (self.from, self.number);
        if at > 0 {
            at += run_length(&entries[at..], entries[at - 1].id);
        }
        while at < end {
            let id = entries[at].id;
            let count = run_length(&entries[at..], id);
            plain.fill(0.0);
            unit.fill(0.0);
            let mut through_norm = false;
            let mut done = 0;
            while done < count {
                let run = &entries[at + done..];
                let list = run[0].contribution();
                let same = run[..count - done]
                    .iter()
                    .take_while(|entry| entry.contribution() == list)
                    .count();
                let contribution = &self.contributions[list];
                let normalized = contribution.normalized.is_some();
                through_norm |= normalized;
                let sum = if normalized { &mut *unit } else { &mut *plain };
                let terms = Run {
                    source: contribution.source,
                    entries: run,
                    count: same,
                };
                // SAFETY: sources were checked; buffers hold whole vectors.
                unsafe { add_weighted::<V, f32>(&terms, self.target.read.cols, sum.as_mut_ptr()) };
                done += same;
            }
            // SAFETY: this task alone has the row.
            let square = unsafe {
                self.target
                    .finish::<V>(id as usize, number, plain, through_norm.then_some(&*unit))
            };
            self.square.add(square);
            number += 1;
            at += count;
        }
    }
}

/// How many of the first entries are of row `id`.
fn run_length(entries: &[Entry], id: u32) -> usize {
    entries.iter().take_while(|entry| entry.id == id).count()
}

/// Consecutive entries of one row from one contribution. `entries` runs on to the end, for prefetching.
struct Run<'a> {
    source: Mat,
    entries: &'a [Entry],
    count: usize,
}

impl Terms<f32> for Run<'_> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.count
    }
    #[inline(always)]
    unsafe fn term(&self, j: usize) -> (*const f32, f32) {
        // SAFETY: by this function's contract.
        unsafe {
            let entry = self.entries.get_unchecked(j);
            (self.source.ptr.add(entry.row() * self.source.stride), entry.weight)
        }
    }
    #[inline(always)]
    unsafe fn upcoming(&self, j: usize) -> Option<*const f32> {
        let entry = self.entries.get(j + AHEAD)?;
        Some(self.source.ptr.wrapping_add(entry.row() * self.source.stride))
    }
}
