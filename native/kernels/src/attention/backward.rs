//! The backward pass shared by the ops: one block of queries against one block of keys. The bias is computed once; then, per
//! head, over strips of queries and tiles of keys: scores are recomputed, gradients of weights, dQ of the strip, dK and dV of
//! the block. The plan decides which blocks run concurrently, so that no two tasks add to the same gradient.

use super::bias::{BlockPair, Kept, SQUARE, Tables, Term};
use super::pack::{ColumnForm, Part};
use super::plan::{BLOCK, Blocks, Direction, Heads, Plan, Task};
use super::scratch::{Parts, with_scratch};
use super::table_grads::{Partial, TableGrads};
use super::tile::{Product, Scores, Slope};
use super::weigh::{Strip, Unweigh};
use crate::ctx::Ctx;
use crate::mat::Grad;
use crate::panels::{Panels, PanelsMut};
use crate::simd::tile::{MR, NR};
use crate::simd::{Kernel, LANES, Simd, dispatch};
use std::ops::Range;

/// Queries whose weights against a tile of keys are kept for dK and dV.
const STRIP: usize = 96;
/// Keys of a tile.
const KEYS: usize = 96;
/// Row stride of a tile's weights, in floats.
const ROW: usize = KEYS + LANES;

/// What the pass reads and writes.
#[derive(Clone, Copy)]
pub struct BackwardPass<'a, U> {
    pub q: Panels,
    pub k: Panels,
    pub v: Panels,
    pub d_o: Panels,
    /// Column stride of `d_o` between heads.
    pub d_o_step: usize,
    /// Factor of `d_o`.
    pub scale: f32,
    pub dq: Grad<PanelsMut>,
    pub dk: Grad<PanelsMut>,
    pub dv: Grad<PanelsMut>,
    pub heads: Heads,
    pub offsets: &'a [i32],
    pub bias: Option<&'a Tables<'a>>,
    pub unweigh: U,
}

/// Scratch of one worker; everything except the squares is for one head.
#[derive(Clone, Copy)]
struct BackwardScratch {
    q: *mut f32,       // [a/16][BLOCK][16]
    d_o: *mut f32,     // [v/16][BLOCK][16]
    k: *mut f32,       // [a/16][BLOCK][16]
    k_t: *mut f32,     // [BLOCK/16][a][16]
    v_t: *mut f32,     // [BLOCK/16][v][16]
    dq: *mut f32,      // [STRIP][a]
    dk: *mut f32,      // [BLOCK][a]
    dv: *mut f32,      // [BLOCK][v]
    bias: *mut f32,    // [BLOCK][BLOCK]
    total: *mut f32,   // [BLOCK][BLOCK]: gradients of scores, summed over the heads of the group
    kept: Kept,        // from the bias to its gradient
    weights: *mut f32, // [STRIP][ROW]
    grads: *mut f32,   // [STRIP][ROW]
}

impl<U: Unweigh> BackwardPass<'_, U> {
    /// `tables` receives the gradients of the bias tables, if needed.
    pub fn run(&self, cx: &Ctx, tables: Option<&mut TableGrads>) {
        let plan = Plan::new(cx, Direction::Backward, self.offsets, &self.heads);
        let lay_out = |parts: &mut Parts| self.lay_out(parts);
        with_scratch(cx, lay_out, |scratch| {
            TableGrads::over_waves(tables, cx, &plan, self.offsets, |task, worker, partial| {
                let task = BackwardTask {
                    pass: self,
                    task,
                    scratch: scratch(worker),
                    partial,
                };
                // SAFETY: the plan keeps tasks of a wave apart, and each worker has its own scratch; `cx.isa` is this CPU's.
                unsafe { dispatch(cx.isa, task) };
            });
        });
    }

    /// Widths padded to whole panels (queries, values).
    fn padded(&self) -> (usize, usize) {
        (self.heads.a.next_multiple_of(NR), self.heads.v.next_multiple_of(NR))
    }

    fn lay_out(&self, parts: &mut Parts) -> BackwardScratch {
        let (a, v) = self.padded();
        let square = if self.bias.is_some() { SQUARE } else { 0 };
        BackwardScratch {
            q: parts.take(a * BLOCK),
            d_o: parts.take(v * BLOCK),
            k: parts.take(a * BLOCK),
            k_t: parts.take(a * BLOCK),
            v_t: parts.take(v * BLOCK),
            dq: parts.take(STRIP * a),
            dk: parts.take(a * BLOCK),
            dv: parts.take(v * BLOCK),
            bias: parts.take(square),
            total: parts.take(square),
            kept: parts.take(self.bias.map_or(0, Tables::room_to_keep)),
            weights: parts.take(STRIP * ROW + LANES),
            grads: parts.take(STRIP * ROW + LANES),
        }
    }
}

struct BackwardTask<'a, U> {
    pass: &'a BackwardPass<'a, U>,
    task: Task,
    scratch: BackwardScratch,
    partial: Option<Partial>,
}

/// A head's queries and keys in column form.
struct BackwardOperands {
    q: ColumnForm,
    k: ColumnForm,
}

/// Whether the gradients of a block are touched for the first time.
#[derive(Clone, Copy)]
struct First {
    queries: bool,
    keys: bool,
}

impl<U: Unweigh> Kernel for BackwardTask<'_, U> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        let (pass, i, j) = (self.pass, self.task.i as usize, self.task.j as usize);
        for sequence in self.task.sequences() {
            let token = pass.offsets[sequence] as usize;
            let blocks = Blocks::new((pass.offsets[sequence + 1] - pass.offsets[sequence]) as usize);
            if blocks.count == 0 {
                continue;
            }
            let pair = BlockPair::new(token, blocks.range(i), blocks.range(j));
            let first = First {
                queries: blocks.first_of_queries(i, j),
                keys: blocks.first_of_keys(i, j),
            };
            // SAFETY: by the contract of `dispatch`.
            unsafe {
                let BackwardScratch { bias, total, kept, .. } = self.scratch;
                if let Some(tables) = pass.bias {
                    let kept = if self.partial.is_some() {
                        kept
                    } else {
                        std::ptr::null_mut()
                    };
                    tables.fill::<V>(&pair, Term::Both, bias, kept);
                }
                let group = pass.heads.of(self.task.group as usize);
                for head in group.clone() {
                    self.head::<V>(&pair, head, head == group.start, first);
                }
                if let (Some(tables), Some(partial)) = (pass.bias, &self.partial) {
                    tables.scatter::<V>(&pair, Term::Both, total, kept, partial);
                }
            }
        }
    }
}

impl<U: Unweigh> BackwardTask<'_, U> {
    /// The queries, gradients of results, keys and values of a head in a block pair.
    #[inline(always)]
    fn operands(&self, pair: &BlockPair, head: usize) -> [Part; 4] {
        let BackwardPass {
            q,
            k,
            v,
            d_o,
            d_o_step,
            heads: Heads { a, v: width, .. },
            ..
        } = *self.pass;
        let (row, rows) = (pair.token + pair.query, pair.queries);
        let (key, keys) = (pair.token + pair.key, pair.keys);
        [
            Part {
                of: q,
                row,
                rows,
                col: head * a,
                width: a,
            },
            Part {
                of: d_o,
                row,
                rows,
                col: head * d_o_step,
                width,
            },
            Part {
                of: k,
                row: key,
                rows: keys,
                col: head * a,
                width: a,
            },
            Part {
                of: v,
                row: key,
                rows: keys,
                col: head * width,
                width,
            },
        ]
    }

    /// One head; `fresh` if it is the first of its group.
    ///
    /// # Safety
    /// This CPU has `V`'s instructions; the scratch is laid out for this pass and used by no other task; the pass's views are
    /// alive, and no other task of the wave touches the gradients of `pair`.
    #[inline(always)]
    unsafe fn head<V: Simd>(&self, pair: &BlockPair, head: usize, fresh: bool, first: First) {
        let (pass, s, (a_wide, v_wide)) = (self.pass, &self.scratch, self.pass.padded());
        let [q, d_o, k, v] = self.operands(pair, head);
        let (rows, keys) = (pair.queries.next_multiple_of(MR), pair.keys.next_multiple_of(NR));
        // SAFETY: by this function's contract.
        unsafe {
            d_o.pack_columns::<V>(rows, pass.scale, s.d_o);
            let operands = BackwardOperands {
                q: q.columns::<V>(rows, s.q),
                k: k.columns::<V>(pair.keys, s.k),
            };
            k.transposed::<V>(keys, s.k_t);
            v.transposed::<V>(keys, s.v_t);
            for from in (0..pair.queries).step_by(STRIP) {
                let until = pair.queries.min(from + STRIP);
                for tile in (0..pair.visible(until - 1)).step_by(KEYS) {
                    self.strip::<V>(pair, head, fresh, &operands, from..until, tile);
                }
                let strip = Part {
                    row: q.row + from,
                    rows: until - from,
                    ..q
                };
                strip
                    .within(pass.dq.to)
                    .receive::<V>(s.dq, a_wide, 1.0, pass.dq.accumulate || !first.queries);
            }
            for (grad, part, sums, wide) in [(pass.dk, k, s.dk, a_wide), (pass.dv, v, s.dv, v_wide)] {
                part.within(grad.to)
                    .receive::<V>(sums, wide, 1.0, grad.accumulate || !first.keys);
            }
        }
    }

    /// A strip of queries against the keys from `tile`: weights, gradients of scores, and what they add to dQ, dV and dK.
    ///
    /// # Safety
    /// As [`Self::head`]; `operands` are the head's, packed for `pair`.
    #[inline(always)]
    unsafe fn strip<V: Simd>(
        &self,
        pair: &BlockPair,
        head: usize,
        fresh: bool,
        operands: &BackwardOperands,
        queries: Range<usize>,
        tile: usize,
    ) {
        let (Heads { a, v, .. }, (a_wide, v_wide), s) = (self.pass.heads, self.pass.padded(), &self.scratch);
        let strip = Strip::new(pair, head, &queries, tile, KEYS, ROW);
        let (rows, keys) = (strip.rows(), strip.seen.most);
        let square = |base: *mut f32, row: usize, there: bool| match there {
            true => base.wrapping_add((queries.start + row) * BLOCK + tile),
            false => std::ptr::null_mut(),
        };
        // SAFETY: by this function's contract.
        unsafe {
            let scores = Scores {
                rows,
                depth: a,
                a: operands.q.skip_rows(queries.start),
                b: s.k_t.add(tile * a.next_multiple_of(LANES)),
                plus: square(s.bias, 0, self.pass.bias.is_some()),
                c: s.weights,
                stride: ROW,
                cols: strip.seen,
            };
            scores.compute::<V>();
            let scores = Scores {
                depth: v,
                a: ColumnForm::packed(s.d_o).skip_rows(queries.start),
                b: s.v_t.add(tile * v.next_multiple_of(LANES)),
                plus: std::ptr::null(),
                c: s.grads,
                ..scores
            };
            scores.compute::<V>();
            for row in (0..rows).step_by(MR) {
                let panel = strip.panel(row);
                let total = square(s.total, row, self.partial.is_some());
                let (weights, grads) = (s.weights.add(row * ROW), s.grads.add(row * ROW));
                self.pass.unweigh.backward::<V>(&panel, weights, grads, total, fresh);
            }
            let product = Product::<ROW, 1> {
                rows,
                from: Slope::flat(0),
                until: strip.seen,
                a: s.grads,
                b: operands.k.skip_rows(tile),
                c: s.dq,
                stride: a_wide,
                add: tile > 0,
                cols: a,
            };
            product.compute::<V>();
            let product = Product::<1, ROW> {
                rows: keys.next_multiple_of(MR),
                // A key is visible from its own position on.
                from: Slope {
                    first: strip.key as isize - strip.query as isize,
                    most: queries.len(),
                },
                until: Slope::flat(queries.len()),
                a: s.weights,
                b: ColumnForm::packed(s.d_o).skip_rows(queries.start),
                c: s.dv.add(tile * v_wide),
                stride: v_wide,
                // An earlier strip of this block has already added to these keys.
                add: queries.start > 0 && strip.key < strip.query,
                cols: v,
            };
            product.compute::<V>();
            let product = Product::<1, ROW> {
                a: s.grads,
                b: operands.q.skip_rows(queries.start),
                c: s.dk.add(tile * a_wide),
                stride: a_wide,
                cols: a,
                ..product
            };
            product.compute::<V>();
        }
    }
}
