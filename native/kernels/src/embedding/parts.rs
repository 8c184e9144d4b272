//! Gradient of a small table with many draws, without sorting. The source rows are split into a fixed number of parts; each part
//! accumulates its own gradient while a source row stays in registers, and the parts are summed in order.

use super::Contribution;
use super::apply::Job;
use super::sums::{TileRows, Tiles, run_tiles};
use crate::ctx::Ctx;
use crate::exact_sum::ExactSum;
use crate::gathered::prefetch_span;
use crate::mat::Disjoint;
use crate::rows::{Element, load_vector};
use crate::simd::{Kernel, LANES, Simd, dispatch};

/// Entries of a part, of which there are at most `MOST`.
const ENTRIES: usize = 256 * 1024;
const MOST: usize = 16;
/// Minimum entries per row and part, so that summing the parts is comparatively cheap.
const ENTRIES_PER_ROW: usize = 16;
/// Gradient rows prefetched ahead of their use.
const AHEAD: usize = 4;
/// Vectors of a source row held in registers.
const CHUNK: usize = 8;

/// Rows folded by one task.
const TILE: usize = 64;

/// Number of parts for a small table's gradient, if there are enough entries.
pub(super) fn parts(items: usize, entries: usize) -> Option<usize> {
    let parts = entries.div_ceil(ENTRIES).clamp(1, MOST);
    (entries / parts >= items * ENTRIES_PER_ROW).then_some(parts)
}

/// Sums the gradient in parts. Returns the sum of squares, if the rule computes it.
pub(super) fn form(cx: &Ctx, job: &Job, parts: usize) -> ExactSum {
    let Job {
        read, contributions, ..
    } = *job;
    let (items, cols) = (read.rows.rows(), read.rows.cols());
    let width = cols.next_multiple_of(LANES);
    let (mut sums, mut touched) = (
        cx.scratch::<f32>(parts * 2 * items * width),
        cx.scratch::<u8>(parts * items),
    );
    {
        let (sums, touched) = (Disjoint::new(&mut sums), Disjoint::new(&mut touched));
        cx.pool.run(parts, |part, _| {
            // SAFETY: each part has its own share.
            unsafe {
                let share = Share {
                    sums: sums.range(part * 2 * items * width, 2 * items * width),
                    touched: touched.range(part * items, items),
                };
                dispatch(
                    cx.isa,
                    AddPart {
                        contributions,
                        part,
                        parts,
                        cols,
                        share,
                    },
                );
            }
        });
    }
    let (sums, touched) = (&sums[..], &touched[..]);
    let fold = Fold {
        sums,
        touched,
        parts,
        items,
    };
    run_tiles(cx, job, &fold)
}

/// Bits of `touched`.
const PLAIN: u8 = 1;
const UNIT: u8 = 2;
/// Read not only in FP16.
const EXACT: u8 = 4;

/// One part's share of the gradient.
struct Share<'a> {
    /// `[2, V, padded D]`: plain, then of the normalised rows.
    sums: &'a mut [f32],
    /// Which of the two each row has, and whether it was read in f32.
    touched: &'a mut [u8],
}

/// Adds up part `part` of `parts`.
struct AddPart<'a> {
    contributions: &'a [Contribution],
    part: usize,
    parts: usize,
    cols: usize,
    share: Share<'a>,
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
            let flag = if contribution.rounded { flag } else { flag | EXACT };
            let rows = contribution.source.rows;
            for row in rows * self.part / self.parts..rows * (self.part + 1) / self.parts {
                let source = SourceRow {
                    contribution,
                    row,
                    cols: self.cols,
                };
                // SAFETY: shapes and ids were checked; the sums hold a padded row per id.
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
    /// # Safety
    /// This CPU has `V`'s instructions; the row, its ids and coefficients were checked; `sums` holds for every id
    /// a row rounded up to whole vectors, and no other task uses it.
    #[inline(always)]
    unsafe fn add<V: Simd>(&self, sums: *mut f32, touched: &mut [u8], flag: u8) {
        let vectors = self.cols.div_ceil(LANES);
        // SAFETY: guaranteed by the caller.
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
    ///
    /// # Safety
    /// As [`Self::add`]; the row has at least `first + N` vectors.
    #[inline(always)]
    unsafe fn add_chunk<V: Simd, const N: usize>(&self, first: usize, sums: *mut f32, touched: &mut [u8], flag: u8) {
        let SourceRow {
            contribution,
            row,
            cols,
        } = *self;
        let width = cols.next_multiple_of(LANES);
        // SAFETY: guaranteed by the caller.
        unsafe {
            let from = contribution.source.row(row).as_ptr();
            let mut source = [V::zero(); N];
            for (v, x) in source.iter_mut().enumerate() {
                *x = load_vector::<V, f32>(from, first + v, cols);
            }
            let members = contribution.members();
            let (group, member) = (row / members, row % members);
            let ids = contribution.ids.row(group);
            let coef = contribution.coef.map(|coef| coef.row(group));
            for (j, &id) in ids.iter().enumerate() {
                let weight = coef.map_or(1.0, |coef| coef[j * members + member]) * contribution.scale;
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

/// Sums the parts.
struct Fold<'a> {
    /// All parts' sums and flags, one after the other.
    sums: &'a [f32],
    touched: &'a [u8],
    parts: usize,
    items: usize,
}

impl Fold<'_> {
    fn flags(&self, row: usize) -> u8 {
        (0..self.parts).fold(0, |flags, part| flags | self.touched[part * self.items + row])
    }

    fn rows(&self, tile: usize) -> std::ops::Range<usize> {
        tile * TILE..self.items.min((tile + 1) * TILE)
    }

    /// Adds the row of all parts, in order: of their plain gradients (0) or of those of the normalised rows (1).
    #[inline(always)]
    fn add(&self, row: usize, plane: usize, to: &mut [f32]) {
        for part in 0..self.parts {
            let from = ((2 * part + plane) * self.items + row) * to.len();
            let part = &self.sums[from..from + to.len()];
            to.iter_mut().zip(part).for_each(|(to, x)| *to += x);
        }
    }
}

impl Tiles for Fold<'_> {
    fn count(&self) -> usize {
        self.items.div_ceil(TILE)
    }

    fn touched(&self, tile: usize) -> u32 {
        self.rows(tile).filter(|row| self.flags(*row) > 0).count() as u32
    }

    #[inline(always)]
    unsafe fn sum<V: Simd, E: Element>(&self, tile: usize, rows: &mut TileRows<E>) {
        for row in self.rows(tile) {
            let flags = self.flags(row);
            if flags == 0 {
                continue;
            }
            // SAFETY: this task alone has the row.
            unsafe {
                rows.next_lane::<V>(0);
                self.add(row, 0, rows.plain());
                self.add(row, 1, rows.unit());
                if flags & UNIT > 0 {
                    rows.add_through_norm::<V>(row, flags & EXACT == 0);
                }
                rows.finish::<V>(row);
            }
        }
    }
}
