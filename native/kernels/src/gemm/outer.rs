//! `C[m, n] (+)= sum over tokens of A[t, :]^T B[t, :]`: the weight gradient. Tokens are processed in slices of fixed length. Groups
//! of columns are the tasks of a slice; each packs its columns of B unless they are already in packed form. A of the next
//! slice is packed by small tasks after them, which keep threads busy that finish early. C is summed in the order of the
//! tokens, so there are no private copies and nothing to reduce.

use super::pack::{copy_line, even_part};
use super::source::Source;
use super::tile::{Tile, tile};
use crate::ctx::Ctx;
use crate::mat::{Grad, MatMut};
use crate::reduce::add_row;
use crate::simd::tile::{MR, NR};
use crate::simd::{Kernel, LANES, Simd, dispatch};

/// Tokens of a slice, which a tile sums in registers: a panel of B takes 32 KB, a sliver of A 12 KB.
const SLICE: usize = 512;
/// Tokens of A packed by one task.
const TOKENS: usize = 64;
/// Most panels of 16 columns in a task: their B takes 128 KB of a 512 KB L2 (Zen 3).
const PANELS: usize = 4;
/// Minimum number of tasks: they are made narrower rather than fewer, so that threads finish together.
const TASKS: usize = 6;
/// One cache line between slivers, so that those of a power-of-two depth do not share a cache set.
const GAP: usize = 16;

/// Packs tokens `[first, first + rows)` of A as slivers of six columns, `[token][6]` each, `stride` apart.
struct PackSlivers<'a, A> {
    source: &'a A,
    m: usize,
    first: usize,
    rows: usize,
    stage: *mut f32,
    to: *mut f32,
    stride: usize,
}

impl<A: Source> Kernel for PackSlivers<'_, A> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        for t in 0..self.rows {
            // SAFETY: the token exists, and has its place in every sliver.
            unsafe {
                let row = self.source.row::<V>(self.first + t, 0, self.m, self.stage);
                let to = self.to.add(t * MR);
                // Stores eight lanes for six: the next token overwrites the other two, except for the last token.
                let wide = if t + 1 < self.rows {
                    self.m.saturating_sub(2) / MR
                } else {
                    0
                };
                for sliver in 0..wide {
                    V::load(row.add(sliver * MR)).store(to.add(sliver * self.stride));
                }
                for sliver in wide..self.m.div_ceil(MR) {
                    for r in 0..MR {
                        let x = if sliver * MR + r < self.m {
                            *row.add(sliver * MR + r)
                        } else {
                            0.0
                        };
                        *to.add(sliver * self.stride + r) = x;
                    }
                }
            }
        }
    }
}

/// Columns `[j, j + cols)` of C over one slice: packs them of B, adds up their tiles.
struct OuterTask<'a, B> {
    right: &'a B,
    first: usize,
    rows: usize,
    j: usize,
    cols: usize,
    stage: *mut f32,
    /// Packed A, slivers `stride` apart.
    slivers: *const f32,
    stride: usize,
    /// Room for packed B, panels one after the other.
    panels: *mut f32,
    to: Grad,
    sums: Option<Grad>,
}

impl<B: Source> Kernel for OuterTask<'_, B> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        // SAFETY: by the contract of `dispatch`.
        unsafe {
            let depth = self.rows;
            let mut sums = [0.0f32; PANELS * NR];
            let packed = self.right.panel(self.first, self.j).is_none();
            if packed || self.sums.is_some() {
                for t in 0..depth {
                    let row = self.right.row::<V>(self.first + t, self.j, self.cols, self.stage);
                    if packed {
                        for at in (0..self.cols).step_by(NR) {
                            copy_line::<V>(row.add(at), self.cols - at, self.panels.add(at * depth + t * NR));
                        }
                    }
                    if self.sums.is_some() {
                        add_row::<V>(sums.as_mut_ptr(), row, self.cols);
                    }
                }
            }
            if let Some(to) = self.sums {
                add_part::<V>(
                    sums.as_ptr(),
                    0,
                    1,
                    self.cols,
                    Grad {
                        to: self.columns(to.to, 0),
                        ..to
                    },
                );
            }
            for at in (0..self.cols).step_by(V::ISA.tiles() * NR) {
                match V::ISA.tiles() == 2 && self.cols - at > NR {
                    true => self.panels::<V, 2>(at),
                    false => self.panels::<V, 1>(at),
                }
            }
        }
    }
}

impl<B: Source> OuterTask<'_, B> {
    /// The columns of `W` panels from `at`. One panel of B stays in L1 while the slivers, a third as wide, are streamed.
    ///
    /// # Safety
    /// This CPU has `V`'s instructions; B is packed, the slivers hold A, and this task owns its columns of `to`.
    #[inline(always)]
    unsafe fn panels<V: Simd, const W: usize>(&self, at: usize) {
        let b: [*const f32; W] = std::array::from_fn(|w| {
            let at = at + w * NR;
            let panel = self.right.panel(self.first, self.j + at);
            panel.unwrap_or(self.panels.wrapping_add(at * self.rows))
        });
        let cols = (W * NR).min(self.cols - at);
        for i in (0..self.to.to.rows).step_by(MR) {
            let rows = MR.min(self.to.to.rows - i);
            let c = self.columns(self.to.to, i);
            let to = Grad {
                to: MatMut { ptr: c.at(0, at), ..c },
                ..self.to
            };
            let whole = Tile {
                k: self.rows,
                a: self.slivers.wrapping_add(i / MR * self.stride),
                b,
                c: to.to.ptr,
                stride: to.to.stride,
                accumulate: to.accumulate,
            };
            // SAFETY: by this function's contract.
            unsafe {
                if rows == MR && cols == W * NR {
                    tile(V::ISA, whole);
                } else {
                    let mut edge = [[[0.0f32; NR]; W]; MR];
                    let (c, stride, accumulate) = (edge.as_mut_ptr().cast(), W * NR, false);
                    let part = Tile {
                        c,
                        stride,
                        accumulate,
                        ..whole
                    };
                    tile(V::ISA, part);
                    add_part::<V>(c, stride, rows, cols, to);
                }
            }
        }
    }
}

impl<B> OuterTask<'_, B> {
    /// This task's columns of `c`, from row `i` on.
    #[inline(always)]
    fn columns(&self, c: MatMut, i: usize) -> MatMut {
        MatMut {
            ptr: c.at(i, self.j),
            ..c
        }
    }
}

/// `to (+)= x[rows, cols]`, rows of `x` `stride` apart.
///
/// # Safety
/// This CPU has `V`'s instructions; `x` holds the rows, and this task owns the part of `to`.
#[inline(always)]
unsafe fn add_part<V: Simd>(x: *const f32, stride: usize, rows: usize, cols: usize, to: Grad) {
    for r in 0..rows {
        for at in (0..cols).step_by(LANES) {
            // SAFETY: the caller's rows and columns lie in `x`, rounded up to eight, and in `to`.
            unsafe {
                let (x, c) = (V::load(x.add(r * stride + at)), to.to.at(r, at));
                let sum = if to.accumulate {
                    V::load_upto(c, cols - at).add(x)
                } else {
                    x
                };
                sum.store_upto(c, cols - at);
            }
        }
    }
}

/// Adds the product over `tokens` tokens to `to` (or overwrites it), and the right operand's column sums to `sums`.
pub fn outer<A: Source, B: Source>(cx: &Ctx, tokens: usize, left: &A, right: &B, to: Grad, sums: Option<Grad>) {
    let (m, n) = (to.to.rows, to.to.cols);
    let slice = even_part(tokens, SLICE, TOKENS);
    let stride = slice * MR + GAP;
    let wide = NR * even_part(n.div_ceil(NR), (n / (NR * TASKS)).clamp(1, PANELS), 1);
    let mut slivers = [0, 1].map(|_| cx.scratch::<f32>(m.div_ceil(MR) * stride));
    let slivers = slivers.each_mut().map(|half| MatMut::new(half, m.div_ceil(MR), stride));
    let mut panels = cx.per_worker::<f32>(slice * wide);
    let mut stage = cx.per_worker::<f32>(m.max(wide).next_multiple_of(64));
    let (panels, stage) = (panels.slots(), stage.slots());

    let rows = |at: usize| slice.min(tokens.saturating_sub(at * slice));
    let pack = |at: usize, task: usize, worker: usize| {
        let token = task * TOKENS;
        // SAFETY: a task's tokens are its own, and so are their places in the slivers; columns read the other half.
        unsafe {
            let pack = PackSlivers {
                source: left,
                m,
                first: at * slice + token,
                rows: TOKENS.min(rows(at) - token),
                stage: stage.of(worker).as_mut_ptr(),
                to: slivers[at % 2].at(0, token * MR),
                stride,
            };
            dispatch(cx.isa, pack);
        }
    };
    let columns = |at: usize, task: usize, worker: usize| {
        let j = task * wide;
        let also = |grad: Grad| Grad {
            accumulate: grad.accumulate || at > 0,
            ..grad
        };
        // SAFETY: a task's columns of C and of the sums are its own; the slivers hold the tokens of the slice.
        unsafe {
            let columns = OuterTask {
                right,
                first: at * slice,
                rows: rows(at),
                j,
                cols: wide.min(n - j),
                stage: stage.of(worker).as_mut_ptr(),
                slivers: slivers[at % 2].at(0, 0),
                stride,
                panels: panels.of(worker).as_mut_ptr(),
                to: also(to),
                sums: sums.map(also),
            };
            dispatch(cx.isa, columns);
        }
    };

    let tasks = n.div_ceil(wide);
    cx.pool
        .run(rows(0).div_ceil(TOKENS), |task, worker| pack(0, task, worker));
    // At least one slice: no tokens still means zeros.
    for at in 0..tokens.div_ceil(slice).max(1) {
        cx.pool.run(tasks + rows(at + 1).div_ceil(TOKENS), |task, worker| {
            match task < tasks {
                true => columns(at, task, worker),
                false => pack(at + 1, task - tasks, worker),
            }
        });
    }
}
