//! Sums every touched row of a gradient and passes it to the update rule. Rows are summed by sorting (`runs`) or in parts
//! (`parts`), depending on sizes only; the rest is shared.

use super::Contribution;
use super::apply::{Job, Target, Unit};
use super::contribution::is_small;
use super::lane_rows::LaneRows;
use super::{parts, runs};
use crate::ctx::Ctx;
use crate::exact_sum::ExactSum;
use crate::mat::Disjoint;
use crate::rows::Element;
use crate::simd::{Kernel, LANES, Simd, dispatch};
use crate::with_rows;

/// Returns the sum of squares, if the rule forms it.
pub(super) fn form(cx: &Ctx, job: &Job) -> ExactSum {
    let entries = job.contributions.iter().map(Contribution::summands).sum();
    let (items, cols) = (job.read.vocabulary, job.read.rows.cols());
    match parts::parts(items, entries).filter(|_| is_small(items, cols)) {
        Some(parts) => parts::form(cx, job, parts),
        None => runs::form(cx, job),
    }
}

/// Touched rows, split into tiles: one task each.
pub(super) trait Tiles: Sync {
    fn count(&self) -> usize;
    /// Number of rows that a tile finishes.
    fn touched(&self, tile: usize) -> u32;
    /// Sums the rows of a tile, by ascending id.
    ///
    /// # Safety
    /// Target features as for [`Simd`]; no other task has this tile.
    unsafe fn sum<V: Simd, E: Element>(&self, tile: usize, rows: &mut TileRows<E>);
}

/// Runs all tiles. Returns the sum of squares, if the rule forms it.
pub(super) fn run_tiles(cx: &Ctx, job: &Job, tiles: &impl Tiles) -> ExactSum {
    let Job {
        read,
        contributions,
        rule,
        eps,
    } = *job;
    let mut numbers = cx.scratch::<u32>(tiles.count());
    numbers.fill(0);
    if rule.numbers_rows() {
        let counts = Disjoint::new(&mut numbers);
        cx.pool.run(tiles.count(), |tile, _| {
            // SAFETY: each task has its own count.
            unsafe { counts.range(tile, 1)[0] = tiles.touched(tile) };
        });
        number(&mut numbers);
    }
    let numbers = &numbers[..];
    let mut squares = cx.scratch::<ExactSum>(tiles.count());
    squares.fill(ExactSum::ZERO);
    let width = read.rows.cols().next_multiple_of(LANES);
    let mut buffers = cx.per_worker::<f32>((1 + contributions.len().max(1)) * width);
    {
        let (buffers, squares) = (buffers.slots(), Disjoint::new(&mut squares));
        cx.pool.run(tiles.count(), |tile, worker| {
            // SAFETY: a tile's rows are one task's; each worker has its own buffer while it runs a task.
            unsafe {
                let (unit, lanes) = buffers.of(worker).split_at_mut(width);
                let square = &mut squares.range(tile, 1)[0];
                let (number, lanes) = (numbers[tile] as usize, LaneRows::new(lanes, width));
                with_rows!(Rows, read.rows, rows => {
                    let target = Target { read: rows, ids: read.ids, rule, eps };
                    let rows = TileRows { target, number, lanes, unit, square };
                    dispatch(cx.isa, Tile { tiles, tile, rows })
                });
            }
        });
    }
    total(&squares)
}

struct Tile<'a, T, E> {
    tiles: &'a T,
    tile: usize,
    rows: TileRows<'a, E>,
}

impl<T: Tiles, E: Element> Kernel for Tile<'_, T, E> {
    #[inline(always)]
    unsafe fn run<V: Simd>(mut self) {
        // SAFETY: by the contract of `dispatch`; the tile is this task's.
        unsafe { self.tiles.sum::<V, E>(self.tile, &mut self.rows) };
    }
}

/// The row that a tile is summing, lane by lane.
pub(super) struct TileRows<'a, E> {
    target: Target<'a, E>,
    /// Of that row, among all touched ones.
    number: usize,
    lanes: LaneRows<'a>,
    unit: &'a mut [f32],
    square: &'a mut ExactSum,
}

impl<E: Element> TileRows<'_, E> {
    /// Starts the next lane of the row. Its gradients, [`Self::plain`] and [`Self::unit`], are zero.
    ///
    /// # Safety
    /// Target features as for [`Simd`].
    #[inline(always)]
    pub unsafe fn next_lane<V: Simd>(&mut self, lane: u32) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.lanes.next::<V>(lane) };
        self.unit.fill(0.0);
    }

    /// The lane's gradient of the row, padded to whole vectors.
    #[inline(always)]
    pub fn plain(&mut self) -> &mut [f32] {
        self.lanes.row()
    }

    /// The lane's gradient of the normalised row.
    #[inline(always)]
    pub fn unit(&mut self) -> &mut [f32] {
        self.unit
    }

    /// Adds the gradient of the normalised row to that of the row. `rounded`: the row was read in FP16 alone.
    ///
    /// # Safety
    /// `id` is a row of what was read; target features as for [`Simd`].
    #[inline(always)]
    pub unsafe fn add_through_norm<V: Simd>(&mut self, id: usize, rounded: bool) {
        let unit = Unit {
            gradient: self.unit,
            rounded,
        };
        // SAFETY: guaranteed by the caller.
        unsafe { self.target.add_through_norm::<V>(id, unit, self.lanes.row()) };
    }

    /// Finishes row `id` after its last lane.
    ///
    /// # Safety
    /// As [`Self::add_through_norm`]; this task alone has the row.
    #[inline(always)]
    pub unsafe fn finish<V: Simd>(&mut self, id: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let gradient = self.lanes.total::<V>();
            let square = self.target.apply::<V>(id, self.number, gradient);
            self.square.add(square);
            self.number += 1;
        }
    }
}

/// The sum over tiles.
pub(super) fn total(tiles: &[ExactSum]) -> ExactSum {
    let mut total = ExactSum::ZERO;
    tiles.iter().for_each(|tile| total.merge(tile));
    total.carry();
    total
}

/// Exclusive prefix sum of the counts. Returns the total.
pub(super) fn number(counts: &mut [u32]) -> usize {
    let mut total = 0;
    for count in counts {
        total += std::mem::replace(count, total);
    }
    total as usize
}
