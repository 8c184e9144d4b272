//! Gradient of a large table: entries are sorted by row, and each row's run is summed in registers.

use super::Contribution;
use super::apply::Job;
use super::sort::{Entry, sorted};
use super::sums::{TileRows, Tiles, run_tiles};
use crate::ctx::Ctx;
use crate::exact_sum::ExactSum;
use crate::gathered::{Terms, add_weighted};
use crate::mat::Mat;
use crate::rows::Element;
use crate::simd::Simd;

/// Sorted entries per task, which finishes the rows that begin among them.
const TILE: usize = 1024;
/// Source rows prefetched ahead of their use.
const AHEAD: usize = 6;

/// Returns the sum of squares, if the rule forms it.
pub(super) fn form(cx: &Ctx, job: &Job) -> ExactSum {
    let contributions = job.contributions;
    let (entries, count) = sorted(cx, contributions, job.read.rows.rows());
    let entries = &entries[..count];
    run_tiles(cx, job, &Runs { contributions, entries })
}

struct Runs<'a> {
    contributions: &'a [Contribution],
    /// By row, then by contribution.
    entries: &'a [Entry],
}

impl Tiles for Runs<'_> {
    fn count(&self) -> usize {
        self.entries.len().div_ceil(TILE)
    }

    fn touched(&self, tile: usize) -> u32 {
        let end = self.entries.len().min((tile + 1) * TILE);
        let begins = |at: &usize| *at == 0 || self.entries[*at].id != self.entries[*at - 1].id;
        (tile * TILE..end).filter(begins).count() as u32
    }

    #[inline(always)]
    unsafe fn sum<V: Simd, E: Element>(&self, tile: usize, rows: &mut TileRows<E>) {
        let entries = self.entries;
        let end = entries.len().min((tile + 1) * TILE);
        let mut at = tile * TILE;
        if at > 0 {
            at += run_length(&entries[at..], entries[at - 1].id);
        }
        while at < end {
            let id = entries[at].id;
            let last = at + run_length(&entries[at..], id);
            // SAFETY: the row exists, and this task alone has it; sources were checked; gradients hold whole vectors.
            unsafe {
                while at < last {
                    let lane = self.lane(at);
                    let (mut through_norm, mut rounded) = (false, true);
                    rows.next_lane::<V>(lane);
                    while at < last && self.lane(at) == lane {
                        let (run, from) = self.run(at, last);
                        let normalized = from.normalized.is_some();
                        through_norm |= normalized;
                        rounded &= from.rounded;
                        let sum = if normalized { rows.unit() } else { rows.plain() };
                        add_weighted::<V, f32>(&run, run.source.cols, sum.as_mut_ptr());
                        at += run.count;
                    }
                    if through_norm {
                        rows.add_through_norm::<V>(id as usize, rounded);
                    }
                }
                rows.finish::<V>(id as usize);
            }
        }
    }
}

impl<'a> Runs<'a> {
    #[inline(always)]
    fn lane(&self, at: usize) -> u32 {
        self.contributions[self.entries[at].contribution()].lane
    }

    /// The entries from `at` on that come from one contribution, up to `last`, and that contribution.
    #[inline(always)]
    fn run(&self, at: usize, last: usize) -> (Run<'a>, &'a Contribution) {
        let entries = &self.entries[at..];
        let list = entries[0].contribution();
        let same = |entry: &&Entry| entry.contribution() == list;
        let contribution = &self.contributions[list];
        let run = Run {
            source: contribution.source,
            contributions: self.contributions,
            entries,
            count: entries[..last - at].iter().take_while(same).count(),
        };
        (run, contribution)
    }
}

/// Number of leading entries of row `id`.
fn run_length(entries: &[Entry], id: u32) -> usize {
    entries.iter().take_while(|entry| entry.id == id).count()
}

/// Consecutive entries of one row from one contribution. `entries` runs on to the end, through other contributions, for
/// prefetching.
struct Run<'a> {
    source: Mat,
    contributions: &'a [Contribution],
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
        let source = self.contributions[entry.contribution()].source;
        Some(source.ptr.wrapping_add(entry.row() * source.stride))
    }
}
