//! Rows of a small table that is drawn from often: entries are only grouped by slices of rows whose sums fit in L1, and
//! added up in the order they came, so the source rows stream by. A row's sum has the same order as in `runs`.

use super::Contribution;
use super::apply::Target;
use super::sort::Entry;
use crate::mat::Mat;
use crate::rows::{Element, load_vector};
use crate::simd::{Kernel, LANES, Simd};

/// Floats of a slice's sums, plain and normalised ones together: 28 KB of the 32 KB L1.
const FLOATS: usize = 7 * 1024;
/// Most slices: the write streams of the grouping pass stay within L1.
const SLICES: usize = 256;
/// Entries per row that make it worthwhile.
const ENTRIES_PER_ROW: usize = 4;

/// log2 of the rows of a slice, if this table and number of entries are a case for slices.
pub(super) fn slice_bits(items: usize, cols: usize, entries: usize) -> Option<u32> {
    let rows = FLOATS / (2 * cols.next_multiple_of(LANES).max(1));
    let bits = rows.checked_ilog2()?;
    (items.div_ceil(1 << bits) <= SLICES && items * ENTRIES_PER_ROW <= entries).then_some(bits)
}

/// Floats of scratch a worker needs.
pub(super) fn floats(bits: u32, cols: usize) -> usize {
    (2 * cols.next_multiple_of(LANES)) << bits
}

/// The rows of one slice, whose entries are `entries`.
pub(super) struct Slice<'a, E> {
    pub target: Target<'a, E>,
    pub contributions: &'a [Contribution],
    pub entries: &'a [Entry],
    /// First row.
    pub first: usize,
    /// See [`floats`].
    pub sums: &'a mut [f32],
    /// One number a row of the slice.
    pub touched: &'a mut [u32],
    pub square: &'a mut f64,
}

/// Bits of `touched`.
const PLAIN: u32 = 1;
const UNIT: u32 = 2;

impl<E: Element> Kernel for Slice<'_, E> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        let cols = self.target.table.cols;
        let width = cols.next_multiple_of(LANES);
        let (plain, unit) = self.sums.split_at_mut(self.sums.len() / 2);
        plain.fill(0.0);
        unit.fill(0.0);
        self.touched.fill(0);
        let mut rest = self.entries;
        while let Some(first) = rest.first() {
            let number = first.contribution();
            let count = rest.iter().take_while(|entry| entry.contribution() == number).count();
            let contribution = &self.contributions[number];
            let (sums, flag) = match contribution.normalized {
                Some(_) => (&mut *unit, UNIT),
                None => (&mut *plain, PLAIN),
            };
            for entry in &rest[..count] {
                let row = entry.id as usize - self.first;
                self.touched[row] |= flag;
                // SAFETY: the entry's row lies in the slice, its source in the contribution.
                unsafe {
                    add_row::<V>(
                        contribution.source,
                        *entry,
                        cols,
                        &mut sums[row * width..(row + 1) * width],
                    )
                };
            }
            rest = &rest[count..];
        }
        for (row, &touched) in self.touched.iter().enumerate() {
            if touched == 0 {
                continue;
            }
            let sums = row * width..(row + 1) * width;
            let unit = (touched & UNIT > 0).then(|| &unit[sums.clone()]);
            // SAFETY: this task alone has the row.
            *self.square += unsafe { self.target.finish::<V>(self.first + row, &mut plain[sums], unit) };
        }
    }
}

#[inline(always)]
unsafe fn add_row<V: Simd>(source: Mat, entry: Entry, cols: usize, to: &mut [f32]) {
    unsafe {
        let from = source.ptr.add(entry.row() * source.stride);
        let weight = V::splat(entry.weight);
        for k in 0..cols.div_ceil(LANES) {
            let sum = to.as_mut_ptr().add(k * LANES);
            load_vector::<V, f32>(from, k, cols)
                .fma(weight, V::load(sum))
                .store(sum);
        }
    }
}
