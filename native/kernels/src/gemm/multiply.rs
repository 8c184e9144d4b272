//! `C[m, n] = A[m, k] B[k, n]` for many rows and a weight as right operand: B is packed once by all threads, unless it comes
//! packed; then blocks of rows are the tasks, each packing its rows of A. Used in forward and for data gradients.

pub use super::pack::Right;
use super::pack::{PackPanel, PackRows, even_part};
use super::source::Source;
use super::tile::{Tile, tile};
use crate::ctx::Ctx;
use crate::panels::{PanelView, Panels, Place};
use crate::simd::tile::{MR, NR};
use crate::simd::{Kernel, Simd, dispatch};

/// Rows of a block: with [`DEPTH`] its packed A takes 192 KB of a 512 KB L2 (Zen 3).
const ROWS: usize = 96;
/// Depth of a slice: a packed panel of B takes 32 KB.
const DEPTH: usize = 512;
/// Minimum number of blocks: small batches use fewer rows per block, to occupy all threads.
const BLOCKS: usize = 16;
/// Panels of B packed by one task and multiplied together: a row's results are then written in runs of four cache lines, which
/// memory sustains. Writing one line per row in turn cost a tenth of the rate.
const PANELS: usize = 4;

/// See the module's letters.
#[derive(Clone, Copy)]
pub struct Shape {
    pub m: usize,
    pub n: usize,
    pub k: usize,
}

/// Receives results while they are in cache.
pub trait Finish: Sync {
    /// Whether [`Finish::take`] wants whole rows; otherwise it gets up to 16 columns at a time, which is cheaper.
    fn whole_rows(&self) -> bool {
        false
    }
    /// Announces the next tile, columns from `j` of the six rows from `i` on, to prefetch what [`Finish::take`] accesses.
    ///
    /// # Safety
    /// Called from a SIMD entry point. Rows may be beyond the last.
    #[inline(always)]
    unsafe fn ahead<V: Simd>(&self, _i: usize, _j: usize) {}

    /// Columns `[j, j + n)` of row `i` of the product are in `acc`, which may be used as scratch. Each element comes
    /// once, and no two threads are given the same row at a time.
    ///
    /// # Safety
    /// Called from a SIMD entry point; `acc` is valid for `n` floats rounded up to 16.
    unsafe fn take<V: Simd>(&self, i: usize, j: usize, n: usize, acc: *mut f32);

    /// The same for `rows` rows from `i` on, `stride` floats apart, for work that is shared by all of them.
    ///
    /// # Safety
    /// As [`Finish::take`], for each row.
    #[inline(always)]
    unsafe fn take_rows<V: Simd>(&self, i: usize, rows: usize, j: usize, n: usize, acc: *mut f32, stride: usize) {
        for r in 0..rows {
            // SAFETY: by this function's contract.
            unsafe { self.take::<V>(i + r, j, n, acc.add(r * stride)) };
        }
    }
}

/// Passes rows `[first, first + rows)`, columns `[j, j + n)` of the results to `finish`.
#[derive(Clone, Copy)]
struct Take<'a, F> {
    finish: &'a F,
    first: usize,
    rows: usize,
    j: usize,
    n: usize,
    acc: *mut f32,
    stride: usize,
}

impl<F: Finish> Kernel for Take<'_, F> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        // SAFETY: the block holds `rows` rows `stride` apart, `n` columns of which are ready.
        unsafe {
            let (i, rows, j) = (self.first, self.rows, self.j);
            // The common width as a constant: no tail.
            match self.n {
                NR => self.finish.take_rows::<V>(i, rows, j, NR, self.acc, self.stride),
                n => self.finish.take_rows::<V>(i, rows, j, n, self.acc, self.stride),
            }
        }
    }
}

/// Neighbouring panels of results: packed A times packed panels of B, taken tile by tile if the results are final, so
/// that stores drain while the next tile computes.
struct Neighbours<'a, F> {
    depth: usize,
    a: *const f32,
    b: *const f32,
    /// Floats from one panel of B to the next.
    step: usize,
    accumulate: bool,
    /// Results of the next tile are stored to the right or below, or replace the previous ones.
    keep: bool,
    taken: bool,
    /// Total columns that are passed on.
    take: Take<'a, F>,
}

impl<F: Finish> Kernel for Neighbours<'_, F> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        let Take { rows, n, .. } = self.take;
        for top in (0..rows).step_by(MR) {
            for at in (0..n).step_by(V::ISA.tiles() * NR) {
                // SAFETY: A holds `rows` rounded up to tiles, B `n` columns.
                unsafe {
                    match V::ISA.tiles() == 2 && n - at > NR {
                        true => self.tile::<V, 2>(top, at),
                        false => self.tile::<V, 1>(top, at),
                    }
                }
            }
        }
    }
}

impl<F: Finish> Neighbours<'_, F> {
    /// Rows from `top`, columns of `W` panels from `at`.
    ///
    /// # Safety
    /// This CPU has `V`'s instructions. A holds the rows and B the panels; there is room for all results if they are kept and for those of
    /// two tiles if not.
    #[inline(always)]
    unsafe fn tile<V: Simd, const W: usize>(&self, top: usize, at: usize) {
        let Take {
            finish,
            first,
            rows,
            j,
            n,
            acc,
            stride,
        } = self.take;
        // SAFETY: by this function's contract.
        unsafe {
            let c = if self.keep { acc.add(top * stride + at) } else { acc };
            if self.taken {
                for w in 0..W {
                    finish.ahead::<V>(first + top, j + at + w * NR);
                }
            }
            let part = Tile {
                k: self.depth,
                a: self.a.add(top * self.depth),
                b: std::array::from_fn::<_, W, _>(|w| self.b.wrapping_add((at / NR + w) * self.step)),
                c,
                stride,
                accumulate: self.accumulate,
            };
            tile(V::ISA, part);
            if self.taken {
                for at_panel in (0..W * NR).step_by(NR) {
                    Take {
                        finish,
                        first: first + top,
                        rows: MR.min(rows - top),
                        j: j + at + at_panel,
                        n: NR.min(n - at - at_panel),
                        acc: c.add(at_panel),
                        stride,
                    }
                    .run::<V>();
                }
            }
        }
    }
}

/// `m` rows in blocks of `rows`, except for the last one to two blocks, which come in quarters. Threads then finish
/// together even if one of them was delayed.
pub(super) struct Blocks {
    m: usize,
    rows: usize,
    /// Blocks that are not cut into quarters.
    whole: usize,
    quarter: usize,
}

impl Blocks {
    pub(super) fn of(m: usize, rows: usize) -> Blocks {
        Blocks {
            m,
            rows,
            whole: (m / rows).saturating_sub(1),
            quarter: (rows / 4).next_multiple_of(MR),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.whole + (self.m - self.whole * self.rows).div_ceil(self.quarter)
    }

    /// First row and number of rows of a block.
    pub(super) fn rows(&self, block: usize) -> (usize, usize) {
        if block < self.whole {
            return (block * self.rows, self.rows);
        }
        let first = self.whole * self.rows + (block - self.whole) * self.quarter;
        (first, self.quarter.min(self.m - first))
    }
}

/// Computes the product and passes it to `finish`.
pub fn multiply<S: Source, F: Finish>(cx: &Ctx, shape: Shape, left: &S, right: Right, finish: &F) {
    let Shape { m, n, k } = shape;
    if m == 0 || n == 0 {
        return;
    }
    let panels = n.div_ceil(NR);
    let depth = even_part(k, DEPTH, 8);
    let slices = k.div_ceil(depth).max(1);

    let mut scratch = cx.scratch::<f32>(match right {
        Right::Packed(_) => 0,
        _ => panels * NR * k,
    });
    if !matches!(right, Right::Packed(_)) {
        let packed = crate::mat::Disjoint::new(&mut scratch);
        cx.pool.run(slices * panels.div_ceil(PANELS), |task, _| {
            let (slice, group) = (task % slices, task / slices);
            let (at, depth) = (slice * depth, depth.min(k - slice * depth));
            for panel in group * PANELS..panels.min((group + 1) * PANELS) {
                // SAFETY: each panel of each slice belongs to one task, and is within the operand.
                unsafe {
                    let to = packed
                        .range(at * panels * NR + panel * NR * depth, NR * depth)
                        .as_mut_ptr();
                    let j = panel * NR;
                    dispatch(
                        cx.isa,
                        PackPanel {
                            right,
                            j,
                            k: at,
                            depth,
                            to,
                        },
                    );
                }
            }
        });
    }
    let scratch = &scratch;
    // Rows [at, at + depth) of the packed operand.
    let slice_of = |at: usize, depth: usize| -> Panels {
        match right {
            Right::Packed(all) => PanelView {
                ptr: all.at(at, 0),
                rows: depth,
                ..all
            },
            _ => PanelView {
                ptr: scratch.as_ptr().wrapping_add(at * panels * NR),
                rows: depth,
                cols: n,
                stride: NR,
                step: NR * depth,
            },
        }
    };

    let whole = finish.whole_rows();
    // A tile's results are taken at once, unless whole rows are wanted or the depth comes in slices.
    let keep = whole || slices > 1;
    let rows = even_part(m, ROWS.min(m.div_ceil(BLOCKS).next_multiple_of(MR)), MR);
    // 16 floats more, so that the rows of a power-of-two width do not share a cache set.
    let stride = if keep { panels * NR + NR } else { cx.isa.tiles() * NR };
    let stage_stride = depth.next_multiple_of(64) + NR;
    let (mut a, mut stage, mut acc) = (
        cx.per_worker::<f32>(rows * depth + 2),
        cx.per_worker::<f32>(MR * stage_stride),
        cx.per_worker::<f32>(if keep { rows } else { MR } * stride),
    );
    let (a, stage, acc) = (a.slots(), stage.slots(), acc.slots());
    let blocks = Blocks::of(m, rows);
    cx.pool.run(blocks.count(), |block, worker| {
        let (first, rows) = blocks.rows(block);
        // SAFETY: the slots are this worker's and sized above; blocks of rows are disjoint.
        unsafe {
            let (a, stage, acc) = (
                a.of(worker).as_mut_ptr(),
                stage.of(worker).as_mut_ptr(),
                acc.of(worker).as_mut_ptr(),
            );
            for slice in 0..slices {
                let (at, depth) = (slice * depth, depth.min(k - slice * depth));
                let source = PackRows {
                    source: left,
                    first,
                    rows,
                    k: at,
                    depth,
                    stage,
                    stage_stride,
                    to: a,
                };
                dispatch(cx.isa, source);
                let weights = slice_of(at, depth);
                for j in (0..n).step_by(PANELS * NR) {
                    let neighbours = Neighbours {
                        depth,
                        a,
                        b: weights.at(0, j),
                        step: weights.step,
                        accumulate: slice > 0,
                        keep,
                        taken: !whole && slice + 1 == slices,
                        take: Take {
                            finish,
                            first,
                            rows,
                            j,
                            n: (PANELS * NR).min(n - j),
                            acc: if keep { acc.add(j) } else { acc },
                            stride,
                        },
                    };
                    dispatch(cx.isa, neighbours);
                }
            }
            if whole {
                dispatch(
                    cx.isa,
                    Take {
                        finish,
                        first,
                        rows,
                        j: 0,
                        n,
                        acc,
                        stride,
                    },
                );
            }
        }
    });
}
