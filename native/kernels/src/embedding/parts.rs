//! Rows of a small table that is drawn from often: nothing is sorted. The source rows are cut into a fixed number of
//! parts, each adds into a gradient of its own while a source row stays in registers, and the parts are summed in order.

use super::Contribution;
use super::apply::Target;
use crate::gathered::prefetch_span;
use crate::rows::{Element, load_vector};
use crate::simd::{Kernel, LANES, Simd};

/// Floats of the largest gradient treated so, 1 MB: about two thirds of its rows are found in a 512 KB L2.
const FLOATS: usize = 256 * 1024;
/// Entries of a part, of which there are at most `MOST`.
const ENTRIES: usize = 256 * 1024;
const MOST: usize = 16;
/// Entries per row and part that make adding up the parts cheap beside the rest.
const ENTRIES_PER_ROW: usize = 16;
/// Gradient rows asked for ahead of their use.
const AHEAD: usize = 4;
/// Vectors of a source row held in registers.
const CHUNK: usize = 8;

/// Rows folded by one task.
pub(super) const TILE: usize = 64;

/// Into how many parts to cut, if this table and number of entries are a case for it.
pub(super) fn parts(items: usize, cols: usize, entries: usize) -> Option<usize> {
    let parts = entries.div_ceil(ENTRIES).clamp(1, MOST);
    let small = items * cols.next_multiple_of(LANES) <= FLOATS;
    (small && entries / parts >= items * ENTRIES_PER_ROW).then_some(parts)
}

/// Bits of `touched`.
const PLAIN: u8 = 1;
const UNIT: u8 = 2;

/// One part's share of the gradient.
pub(super) struct Share<'a> {
    /// `[2, V, padded D]`: plain, then of the normalised rows.
    pub sums: &'a mut [f32],
    /// Which of the two each row has.
    pub touched: &'a mut [u8],
}

/// Adds up part `part` of `parts`.
pub(super) struct AddPart<'a> {
    pub contributions: &'a [Contribution],
    pub part: usize,
    pub parts: usize,
    pub cols: usize,
    pub share: Share<'a>,
}

impl Kernel for AddPart<'_> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        let Share { sums, touched } = self.share;
        sums.fill(0.0);
        touched.fill(0);
        let (plain, unit) = sums.split_at_mut(sums.len() / 2);
        for contribution in self.contributions {
            let (sums, flag) = match contribution.normalized {
                Some(_) => (&mut *unit, UNIT),
                None => (&mut *plain, PLAIN),
            };
            let rows = contribution.ids.rows;
            for row in rows * self.part / self.parts..rows * (self.part + 1) / self.parts {
                let source = SourceRow {
                    contribution,
                    row,
                    cols: self.cols,
                };
                // SAFETY: shapes and ids were checked; the sums hold a padded row an id.
                unsafe { source.add::<V>(sums.as_mut_ptr(), touched, flag) };
            }
        }
    }
}

struct SourceRow<'a> {
    contribution: &'a Contribution,
    row: usize,
    cols: usize,
}

impl SourceRow<'_> {
    #[inline(always)]
    unsafe fn add<V: Simd>(&self, sums: *mut f32, touched: &mut [u8], flag: u8) {
        let vectors = self.cols.div_ceil(LANES);
        // SAFETY: the caller's.
        unsafe {
            let mut first = 0;
            while first < vectors {
                match vectors - first {
                    1 => self.add_chunk::<V, 1>(first, sums, touched, flag),
                    2 => self.add_chunk::<V, 2>(first, sums, touched, flag),
                    3 => self.add_chunk::<V, 3>(first, sums, touched, flag),
                    4 => self.add_chunk::<V, 4>(first, sums, touched, flag),
                    5 => self.add_chunk::<V, 5>(first, sums, touched, flag),
                    6 => self.add_chunk::<V, 6>(first, sums, touched, flag),
                    7 => self.add_chunk::<V, 7>(first, sums, touched, flag),
                    _ => self.add_chunk::<V, CHUNK>(first, sums, touched, flag),
                }
                first += CHUNK;
            }
        }
    }

    /// Vectors `first..first + N` of the row, to every id it goes to.
    #[inline(always)]
    unsafe fn add_chunk<V: Simd, const N: usize>(&self, first: usize, sums: *mut f32, touched: &mut [u8], flag: u8) {
        let SourceRow {
            contribution,
            row,
            cols,
        } = *self;
        let width = cols.next_multiple_of(LANES);
        // SAFETY: the caller's.
        unsafe {
            let from = contribution.source.row(row).as_ptr();
            let mut source = [V::zero(); N];
            for (v, x) in source.iter_mut().enumerate() {
                *x = load_vector::<V, f32>(from, first + v, cols);
            }
            let ids = contribution.ids.row(row);
            let coef = contribution.coef.map(|coef| coef.row(row));
            for (j, &id) in ids.iter().enumerate() {
                let weight = coef.map_or(1.0, |coef| coef[j]) * contribution.scale;
                if let Some(&ahead) = ids.get(j + AHEAD) {
                    let to = sums.wrapping_add(ahead.max(0) as usize * width + first * LANES);
                    prefetch_span::<V, f32>(to, N * LANES);
                }
                if id < 0 || weight == 0.0 {
                    continue;
                }
                touched[id as usize] |= flag;
                let weight = V::splat(weight);
                let to = sums.add(id as usize * width + first * LANES);
                for (v, x) in source.iter().enumerate() {
                    let sum = to.add(v * LANES);
                    x.fma(weight, V::load(sum)).store(sum);
                }
            }
        }
    }
}

/// Sums the parts of rows `first..first + TILE` and finishes them.
pub(super) struct Fold<'a, E> {
    pub target: Target<'a, E>,
    /// All parts' sums and flags, one after the other.
    pub sums: &'a [f32],
    pub touched: &'a [u8],
    pub parts: usize,
    pub first: usize,
    /// Two padded rows.
    pub buffer: &'a mut [f32],
    pub square: &'a mut f64,
}

impl<E: Element> Kernel for Fold<'_, E> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        let items = self.target.table.rows;
        let width = self.target.table.cols.next_multiple_of(LANES);
        for row in self.first..items.min(self.first + TILE) {
            let flags = (0..self.parts).fold(0, |flags, part| flags | self.touched[part * items + row]);
            if flags == 0 {
                continue;
            }
            for (plane, sum) in self.buffer.chunks_exact_mut(width).enumerate() {
                sum.fill(0.0);
                for part in 0..self.parts {
                    let from = ((2 * part + plane) * items + row) * width;
                    sum.iter_mut()
                        .zip(&self.sums[from..from + width])
                        .for_each(|(to, x)| *to += x);
                }
            }
            let (plain, unit) = self.buffer.split_at_mut(width);
            // SAFETY: this task alone has the row; buffers hold whole vectors.
            *self.square += unsafe {
                self.target
                    .finish::<V>(row, plain, (flags & UNIT > 0).then_some(&*unit))
            };
        }
    }
}
