//! The forward pass shared by the ops. For a block of queries, the blocks of keys up to it are processed in order: the bias
//! once, then for each head, over strips of queries and tiles of keys: scores, weights, weighted values. Results stay in
//! scratch until the last key.

use super::bias::{BlockPair, SQUARE, Tables, Term};
use super::pack::{ColumnForm, Part};
use super::plan::{BLOCK, Blocks, Direction, Heads, Plan, Task};
use super::scratch::{Parts, with_scratch};
use super::tile::{Product, Scores, Slope};
use super::weigh::{RunningResult, Strip, Weigh};
use crate::ctx::Ctx;
use crate::panels::{Panels, PanelsMut};
use crate::simd::tile::{MR, NR};
use crate::simd::{Kernel, LANES, Simd, dispatch};
use std::ops::Range;

/// Queries whose weights against a tile of keys are computed together.
const STRIP: usize = 96;
/// Keys of a tile.
const KEYS: usize = 48;
/// Row stride of a tile's weights, in floats.
const ROW: usize = KEYS + LANES;

/// What the pass reads and writes.
#[derive(Clone, Copy)]
pub struct ForwardPass<'a, W> {
    pub q: Panels,
    pub k: Panels,
    pub v: Panels,
    pub o: PanelsMut,
    /// Column stride of `o` between heads.
    pub o_step: usize,
    pub heads: Heads,
    pub offsets: &'a [i32],
    pub bias: Option<&'a Tables<'a>>,
    pub weigh: W,
}

/// Scratch of one worker.
#[derive(Clone, Copy)]
struct ForwardScratch {
    q: *mut f32,       // [group][a/16][BLOCK][16]
    k: *mut f32,       // [BLOCK/16][a][16]
    v: *mut f32,       // [v/16][BLOCK][16]
    o: *mut f32,       // [group][BLOCK][v]
    state: *mut f32,   // [group][BLOCK][2]
    bias: *mut f32,    // [BLOCK][BLOCK]
    weights: *mut f32, // [STRIP][ROW]
}

impl<W: Weigh> ForwardPass<'_, W> {
    pub fn run(&self, cx: &Ctx) {
        let plan = Plan::new(cx, Direction::Forward, self.offsets, &self.heads);
        let run = |task: Task, scratch: ForwardScratch| {
            let pass = self;
            // SAFETY: tasks own the rows of `o` they write, and their scratch; `cx.isa` is this CPU's.
            unsafe { dispatch(cx.isa, ForwardTask { pass, task, scratch }) };
        };
        with_scratch(
            cx,
            |parts| self.lay_out(parts),
            |scratch| plan.run(cx, |task, worker| run(task, scratch(worker))),
        );
    }

    /// Widths padded to whole panels (queries, values).
    fn padded(&self) -> (usize, usize) {
        (self.heads.a.next_multiple_of(NR), self.heads.v.next_multiple_of(NR))
    }

    fn lay_out(&self, parts: &mut Parts) -> ForwardScratch {
        let (g, (a, v)) = (self.heads.group, self.padded());
        ForwardScratch {
            q: parts.take(g * a * BLOCK),
            k: parts.take(a * BLOCK),
            v: parts.take(v * BLOCK),
            o: parts.take(g * v * BLOCK),
            state: parts.take(g * BLOCK * 2),
            bias: parts.take(if self.bias.is_some() { SQUARE } else { 0 }),
            weights: parts.take(STRIP * ROW + LANES),
        }
    }
}

struct ForwardTask<'a, W> {
    pass: &'a ForwardPass<'a, W>,
    task: Task,
    scratch: ForwardScratch,
}

/// A head's queries and values in column form.
struct ForwardOperands {
    q: ColumnForm,
    v: ColumnForm,
}

impl<W: Weigh> Kernel for ForwardTask<'_, W> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        let offsets = self.pass.offsets;
        for sequence in self.task.sequences() {
            let token = offsets[sequence] as usize;
            let blocks = Blocks::new((offsets[sequence + 1] - offsets[sequence]) as usize);
            if blocks.count > 0 {
                // SAFETY: by the contract of `dispatch`.
                unsafe { self.block::<V>(token, &blocks) };
            }
        }
    }
}

impl<W: Weigh> ForwardTask<'_, W> {
    /// The heads of the task's group, each with its slot in the scratch.
    #[inline(always)]
    fn group(&self) -> impl Iterator<Item = (usize, usize)> + use<W> {
        self.pass.heads.of(self.task.group as usize).enumerate()
    }

    /// One block of queries of the sequence that begins at batch row `token`, against all keys before its end.
    ///
    /// # Safety
    /// This CPU has `V`'s instructions; the scratch is laid out for this pass and used by no other task; the pass's views are
    /// alive, and no other task writes these rows of `o`.
    #[inline(always)]
    unsafe fn block<V: Simd>(&self, token: usize, blocks: &Blocks) {
        let i = self.task.i as usize;
        for j in 0..=i {
            let pair = BlockPair::new(token, blocks.range(i), blocks.range(j));
            // SAFETY: by this function's contract.
            unsafe {
                if let Some(tables) = self.pass.bias {
                    tables.fill::<V>(&pair, Term::Both, self.scratch.bias, std::ptr::null_mut());
                }
                for (slot, head) in self.group() {
                    self.head::<V>(&pair, slot, head);
                    if j == i {
                        self.finish::<V>(&pair, slot, head);
                    }
                }
            }
        }
    }

    /// The queries, keys and values of a head in a block pair.
    #[inline(always)]
    fn operands(&self, pair: &BlockPair, head: usize) -> [Part; 3] {
        let ForwardPass {
            q,
            k,
            v,
            heads: Heads { a, v: width, .. },
            ..
        } = *self.pass;
        let (queries, keys) = (pair.token + pair.query, pair.token + pair.key);
        [
            Part {
                of: q,
                row: queries,
                rows: pair.queries,
                col: head * a,
                width: a,
            },
            Part {
                of: k,
                row: keys,
                rows: pair.keys,
                col: head * a,
                width: a,
            },
            Part {
                of: v,
                row: keys,
                rows: pair.keys,
                col: head * width,
                width,
            },
        ]
    }

    /// Packs operands that are not stored in the form that the tile reads; queries are packed with the first keys.
    ///
    /// # Safety
    /// As [`Self::block`]; `slot` is the head's place in its group.
    #[inline(always)]
    unsafe fn head<V: Simd>(&self, pair: &BlockPair, slot: usize, head: usize) {
        let [q, k, v] = self.operands(pair, head);
        // SAFETY: by this function's contract.
        unsafe {
            let packed_q = self.scratch.q.add(slot * self.pass.padded().0 * BLOCK);
            let operands = ForwardOperands {
                q: match pair.key {
                    0 => q.columns::<V>(pair.queries.next_multiple_of(MR), packed_q),
                    _ => q.as_columns().unwrap_or(ColumnForm::packed(packed_q)),
                },
                v: v.columns::<V>(pair.keys, self.scratch.v),
            };
            k.transposed::<V>(pair.keys.next_multiple_of(NR), self.scratch.k);
            for from in (0..pair.queries).step_by(STRIP) {
                let until = pair.queries.min(from + STRIP);
                for tile in (0..pair.visible(until - 1)).step_by(KEYS) {
                    self.strip::<V>(pair, slot, head, &operands, from..until, tile);
                }
            }
        }
    }

    /// A strip of queries against the keys from `tile`.
    ///
    /// # Safety
    /// As [`Self::block`]; `operands` are the head's, packed for `pair`.
    #[inline(always)]
    unsafe fn strip<V: Simd>(
        &self,
        pair: &BlockPair,
        slot: usize,
        head: usize,
        operands: &ForwardOperands,
        queries: Range<usize>,
        tile: usize,
    ) {
        let strip = Strip::new(pair, head, &queries, tile, KEYS, ROW);
        let (s, heads, (_, v)) = (self.scratch, self.pass.heads, self.pass.padded());
        let first = slot * BLOCK + queries.start;
        let bias = match self.pass.bias {
            Some(_) => s.bias.wrapping_add(queries.start * BLOCK + tile).cast_const(),
            None => std::ptr::null(),
        };
        // SAFETY: by this function's contract.
        unsafe {
            let scores = Scores {
                rows: strip.rows(),
                depth: heads.a,
                a: operands.q.skip_rows(queries.start),
                b: s.k.add(tile * heads.a.next_multiple_of(LANES)),
                plus: bias,
                c: s.weights,
                stride: ROW,
                cols: strip.seen,
            };
            scores.compute::<V>();
            for row in (0..strip.rows()).step_by(MR) {
                let so_far = RunningResult {
                    o: s.o.add((first + row) * v),
                    stride: v,
                    width: heads.v.next_multiple_of(LANES),
                    state: s.state.cast::<[f32; 2]>().add(first + row),
                };
                let panel = strip.panel(row);
                self.pass.weigh.forward::<V>(&panel, s.weights.add(row * ROW), &so_far);
            }
            let product = Product::<ROW, 1> {
                rows: strip.rows(),
                from: Slope::flat(0),
                until: strip.seen,
                a: s.weights,
                b: operands.v.skip_rows(tile),
                c: s.o.add(first * v),
                stride: v,
                add: strip.key > 0,
                cols: heads.v,
            };
            product.compute::<V>();
        }
    }

    /// Writes the results of a head after its last key.
    ///
    /// # Safety
    /// As [`Self::block`], after the last keys of `pair`'s queries.
    #[inline(always)]
    unsafe fn finish<V: Simd>(&self, pair: &BlockPair, slot: usize, head: usize) {
        let (
            ForwardPass {
                heads,
                o,
                o_step,
                weigh,
                ..
            },
            (_, v_wide),
        ) = (*self.pass, self.pass.padded());
        for row in 0..pair.queries {
            let (token, at) = (pair.token + pair.query + row, slot * BLOCK + row);
            let to = Part {
                of: o,
                row: token,
                rows: 1,
                col: head * o_step,
                width: heads.v,
            };
            // SAFETY: by this function's contract.
            unsafe {
                let scale = weigh.finish(token, head, *self.scratch.state.cast::<[f32; 2]>().add(at));
                to.receive::<V>(self.scratch.o.add(at * v_wide), v_wide, scale, false);
            }
        }
    }
}
