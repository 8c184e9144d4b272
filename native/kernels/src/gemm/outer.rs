//! `C[m, n] (+)= sum over tokens of A[t, :]^T B[t, :]`: the weight gradient. Tokens come in slices of fixed length; both
//! operands of a slice are packed by all threads, then tiles of C are the tasks. C is summed in the order of the
//! tokens, so there is no private copy of it and nothing to reduce.

use super::pack::{copy_line, even_part};
use super::source::Source;
use super::tile::{MR, NR, Tile, tile};
use crate::ctx::Ctx;
use crate::mat::{Disjoint, Grad, Mat, MatMut};
use crate::reduce::{BLOCK, add_row, sum_rows};
use crate::simd::{Kernel, Simd, dispatch};

/// Tokens packed at a time, all of which a tile adds up in registers: a panel of B takes 32 KB, a task's part of A 192 KB.
const SLICE: usize = 512;
/// Slivers of six rows in a task's part of C.
const SLIVERS: usize = 16;
/// Panels of 16 columns in a task's part of C.
const PANELS: usize = 8;
/// Smaller parts of C rather than fewer than this, so that the threads finish together.
const TASKS: usize = 16;
/// One cache line between packed columns, so that those of a power-of-two depth do not share a cache set.
const GAP: usize = 16;

/// Packs tokens `[first, first + rows)` of a slice at `at` tokens into it, all columns of both operands.
struct PackTokens<'a, A, B> {
    left: &'a A,
    right: &'a B,
    m: usize,
    n: usize,
    first: usize,
    rows: usize,
    at: usize,
    stage: *mut f32,
    slivers: *mut f32,
    sliver_stride: usize,
    panels: *mut f32,
    panel_stride: usize,
    /// Sum of the right operand's rows, if wanted.
    sums: Option<*mut f32>,
}

impl<A: Source, B: Source> Kernel for PackTokens<'_, A, B> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        unsafe {
            if let Some(sums) = self.sums {
                std::slice::from_raw_parts_mut(sums, self.n).fill(0.0);
            }
            for t in 0..self.rows {
                let row = self.left.row::<V>(self.first + t, 0, self.m, self.stage);
                let to = self.slivers.add((self.at + t) * MR);
                // Eight lanes for six: the two beyond are the next token's, written after. Not so for the last.
                let wide = if t + 1 < self.rows {
                    (self.m - 2.min(self.m)) / MR
                } else {
                    0
                };
                for sliver in 0..wide {
                    V::load(row.add(sliver * MR)).store(to.add(sliver * self.sliver_stride));
                }
                for sliver in wide..self.m.div_ceil(MR) {
                    for r in 0..MR {
                        let x = if sliver * MR + r < self.m {
                            *row.add(sliver * MR + r)
                        } else {
                            0.0
                        };
                        *to.add(sliver * self.sliver_stride + r) = x;
                    }
                }
                let row = self.right.row::<V>(self.first + t, 0, self.n, self.stage);
                let to = self.panels.add((self.at + t) * NR);
                for panel in 0..self.n.div_ceil(NR) {
                    copy_line::<V>(
                        row.add(panel * NR),
                        self.n - panel * NR,
                        to.add(panel * self.panel_stride),
                    );
                }
                if let Some(sums) = self.sums {
                    add_row::<V>(sums, row, self.n);
                }
            }
        }
    }
}

/// Adds the product over `tokens` tokens to `to` (or overwrites it), and the right operand's column sums to `sums`.
pub fn outer<A: Source, B: Source>(cx: &Ctx, tokens: usize, left: &A, right: &B, to: Grad, sums: Option<Grad>) {
    let (m, n) = (to.to.rows, to.to.cols);
    let slice = even_part(tokens, SLICE, BLOCK);
    let (slivers, panels) = (m.div_ceil(MR), n.div_ceil(NR));
    let (sliver_stride, panel_stride) = (slice * MR + GAP, slice * NR + GAP);
    let mut a = cx.scratch::<f32>(slivers * sliver_stride);
    let mut b = cx.scratch::<f32>(panels * panel_stride);
    let mut stage = cx.per_worker::<f32>(m.max(n).next_multiple_of(64));
    let blocks = tokens.div_ceil(BLOCK);
    let mut partial = cx.scratch::<f32>(if sums.is_some() { blocks * n } else { 0 });
    let all_sums = Disjoint::new(&mut partial);

    // C in tasks of `tall` slivers x `wide` panels.
    let wide = even_part(panels, (slivers.div_ceil(SLIVERS) * panels / TASKS).clamp(1, PANELS), 1);
    let across = panels.div_ceil(wide);
    let tall = even_part(slivers, (slivers * across / TASKS).clamp(1, SLIVERS), 1);
    let down = slivers.div_ceil(tall);

    for from in (0..tokens.max(1)).step_by(slice) {
        let rows = slice.min(tokens - from);
        {
            let a = MatMut::new(&mut a, slivers, sliver_stride);
            let b = MatMut::new(&mut b, panels, panel_stride);
            let stage = stage.slots();
            cx.pool.run(rows.div_ceil(BLOCK), |task, worker| {
                let at = task * BLOCK;
                // SAFETY: a task's tokens are its own, so are their places in the packed slices and its row of sums.
                unsafe {
                    let pack = PackTokens {
                        left,
                        right,
                        m,
                        n,
                        first: from + at,
                        rows: BLOCK.min(rows - at),
                        at,
                        stage: stage.of(worker).as_mut_ptr(),
                        slivers: a.at(0, 0),
                        sliver_stride,
                        panels: b.at(0, 0),
                        panel_stride,
                        sums: sums.map(|_| all_sums.range((from + at) / BLOCK * n, n).as_mut_ptr()),
                    };
                    dispatch(cx.isa, pack);
                }
            });
        }
        let (a, b) = (&a, &b);
        cx.pool.run(down * across, |task, _| {
            let (top, left) = (task / across * tall, task % across * wide);
            for panel in left..panels.min(left + wide) {
                for sliver in top..slivers.min(top + tall) {
                    // SAFETY: the packed slices hold `rows` tokens; each tile of C is one task's.
                    unsafe {
                        let part = Part {
                            k: rows,
                            a: a.as_ptr().add(sliver * sliver_stride),
                            b: b.as_ptr().add(panel * panel_stride),
                            row: sliver * MR,
                            column: panel * NR,
                        };
                        add_tile(
                            cx,
                            part,
                            Grad {
                                accumulate: to.accumulate || from > 0,
                                ..to
                            },
                        );
                    }
                }
            }
        });
    }
    if let Some(sums) = sums {
        sum_rows(cx, Mat::new(&partial, blocks, n), sums);
    }
}

struct Part {
    k: usize,
    a: *const f32,
    b: *const f32,
    row: usize,
    column: usize,
}

/// One tile straight into C, or through a small buffer where C ends inside it.
unsafe fn add_tile(cx: &Ctx, part: Part, to: Grad) {
    let Part { k, a, b, row, column } = part;
    let c = to.to;
    let (rows, cols) = (MR.min(c.rows - row), NR.min(c.cols - column));
    // SAFETY: the caller's operands; the tile lies in C or in the buffer.
    unsafe {
        let at = c.at(row, column);
        if rows == MR && cols == NR {
            tile(
                cx.isa,
                &Tile {
                    k,
                    a,
                    b,
                    c: at,
                    stride: c.stride,
                    accumulate: to.accumulate,
                },
            );
            return;
        }
        let mut edge = [0.0f32; MR * NR];
        tile(
            cx.isa,
            &Tile {
                k,
                a,
                b,
                c: edge.as_mut_ptr(),
                stride: NR,
                accumulate: false,
            },
        );
        for (r, line) in edge.chunks_exact(NR).enumerate().take(rows) {
            let out = std::slice::from_raw_parts_mut(at.add(r * c.stride), cols);
            for (out, x) in out.iter_mut().zip(line) {
                *out = if to.accumulate { *out + x } else { *x };
            }
        }
    }
}
