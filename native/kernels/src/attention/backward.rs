//! The backward pass shared by the ops: one block of queries against one block of keys. For each strip of queries and
//! head, over tiles of keys: scores again, gradients of weights, then dQ of the strip and dK, dV of the block.
//! Which blocks run together, and why nobody adds to the same gradient at the same time, is the plan's business.

use super::pack::Part;
use super::plan::{BLOCK, Blocks, Heads, Pass, Plan, Task};
use super::strip::{STRIP, STRIP_FLOATS, Tables, Term, Window};
use super::table_grads::{Partial, TableGrads};
use super::tile::{MR, NR, Product, Scores};
use super::weigh::{Panel, Unweigh};
use crate::ctx::Ctx;
use crate::mat::{Grad, Mat};
use crate::simd::{Kernel, LANES, Simd, dispatch};
use std::ops::Range;

/// Keys of a tile.
const KEYS: usize = 48;
/// Floats from one row of a tile's weights to the next.
const ROW: usize = KEYS + LANES;

/// What the pass reads and writes.
#[derive(Clone, Copy)]
pub struct Backward<'a, U> {
    pub q: Mat,
    pub k: Mat,
    pub v: Mat,
    pub d_o: Mat,
    /// Columns of `d_o` from one head to the next.
    pub d_o_step: usize,
    /// Factor of `d_o`.
    pub scale: f32,
    pub dq: Grad,
    pub dk: Grad,
    pub dv: Grad,
    pub heads: Heads,
    pub offsets: &'a [i32],
    pub bias: Option<&'a Tables<'a>>,
    pub unweigh: U,
}

/// Scratch of one worker.
#[derive(Clone, Copy)]
struct Scratch {
    q: *mut f32,       // [group][a/16][BLOCK][16]
    d_o: *mut f32,     // [group][v/16][BLOCK][16]
    k: *mut f32,       // [group][a/16][BLOCK][16]
    k_t: *mut f32,     // [group][BLOCK/16][a][16]
    v_t: *mut f32,     // [group][BLOCK/16][v][16]
    dq: *mut f32,      // [STRIP][a]
    dk: *mut f32,      // [group][BLOCK][a]
    dv: *mut f32,      // [group][BLOCK][v]
    bias: *mut f32,    // [STRIP][BLOCK]
    total: *mut f32,   // [STRIP][BLOCK]: gradients of scores, summed over the heads of the group
    weights: *mut f32, // [STRIP][ROW]
    grads: *mut f32,   // [STRIP][ROW]
}

impl<U: Unweigh> Backward<'_, U> {
    /// `tables` receives the gradients of the bias tables, if anyone wants them.
    pub fn run(&self, cx: &Ctx, tables: Option<&mut TableGrads>) {
        let plan = Plan::new(cx, Pass::Backward, self.offsets, &self.heads);
        let mut scratch = cx.per_worker::<f32>(self.lay_out(std::ptr::null_mut()).1);
        let slots = scratch.slots();
        TableGrads::over_waves(tables, cx, &plan, self.offsets, |task, worker, partial| {
            // SAFETY: a slot is its worker's own; the plan keeps tasks of a wave apart; `cx.isa` is this CPU's.
            unsafe {
                let (scratch, _) = self.lay_out(slots.of(worker).as_mut_ptr());
                dispatch(
                    cx.isa,
                    BackwardTask {
                        pass: self,
                        task,
                        scratch,
                        partial,
                    },
                );
            }
        });
    }

    /// Widths padded to whole panels (queries, values).
    fn padded(&self) -> (usize, usize) {
        (self.heads.a.next_multiple_of(NR), self.heads.v.next_multiple_of(NR))
    }

    /// The scratch that begins at `base`, and how many floats it takes.
    fn lay_out(&self, base: *mut f32) -> (Scratch, usize) {
        let (g, (a, v)) = (self.heads.group, self.padded());
        let mut floats = 0;
        let mut take = |len: usize| {
            let at = base.wrapping_add(floats);
            floats += len.next_multiple_of(NR);
            at
        };
        let scratch = Scratch {
            q: take(g * a * BLOCK),
            d_o: take(g * v * BLOCK),
            k: take(g * a * BLOCK),
            k_t: take(g * a * BLOCK),
            v_t: take(g * v * BLOCK),
            dq: take(STRIP * a),
            dk: take(g * a * BLOCK),
            dv: take(g * v * BLOCK),
            bias: take(STRIP_FLOATS),
            total: take(STRIP_FLOATS),
            weights: take(STRIP * ROW + LANES),
            grads: take(STRIP * ROW + LANES),
        };
        (scratch, floats)
    }
}

struct BackwardTask<'a, U> {
    pass: &'a Backward<'a, U>,
    task: Task,
    scratch: Scratch,
    partial: Option<Partial>,
}

/// A block of queries and a block of keys of one sequence.
struct Pair {
    /// Batch row of the sequence's first token.
    token: usize,
    queries: Range<usize>,
    keys: Range<usize>,
    /// The gradients of these queries are touched for the first time.
    first_of_queries: bool,
    first_of_keys: bool,
}

impl<U: Unweigh> Kernel for BackwardTask<'_, U> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        let (offsets, i, j) = (self.pass.offsets, self.task.i as usize, self.task.j as usize);
        for sequence in self.task.sequences() {
            let token = offsets[sequence] as usize;
            let blocks = Blocks::new((offsets[sequence + 1] - offsets[sequence]) as usize);
            if blocks.count == 0 {
                continue;
            }
            let pair = Pair {
                token,
                queries: blocks.range(i),
                keys: blocks.range(j),
                first_of_queries: blocks.first_of_queries(i, j),
                first_of_keys: blocks.first_of_keys(i, j),
            };
            unsafe { self.pair::<V>(&pair) };
        }
    }
}

impl<U: Unweigh> BackwardTask<'_, U> {
    /// The heads of the task's group, each with its slot in the scratch.
    #[inline(always)]
    fn group(&self) -> impl Iterator<Item = (usize, usize)> + use<U> {
        self.pass.heads.of(self.task.group as usize).enumerate()
    }

    #[inline(always)]
    unsafe fn pair<V: Simd>(&self, pair: &Pair) {
        unsafe {
            for (slot, head) in self.group() {
                self.pack::<V>(pair, slot, head);
            }
            for from in (0..pair.queries.len()).step_by(STRIP) {
                let query = pair.queries.start + from;
                let rows = STRIP.min(pair.queries.len() - from);
                let window = Window {
                    token: pair.token,
                    query,
                    queries: rows,
                    key: pair.keys.start,
                    keys: pair.keys.len().min(query + rows - pair.keys.start),
                };
                self.strip::<V>(pair, &window, from);
            }
            for (slot, head) in self.group() {
                self.write_keys::<V>(pair, slot, head);
            }
        }
    }

    #[inline(always)]
    unsafe fn pack<V: Simd>(&self, pair: &Pair, slot: usize, head: usize) {
        let (pass, (a, v)) = (self.pass, self.pass.padded());
        let part = |of: Mat, positions: &Range<usize>, col: usize, width: usize| Part {
            of,
            row: pair.token + positions.start,
            rows: positions.len(),
            col,
            width,
        };
        let (wide_a, wide_v) = (pass.heads.a, pass.heads.v);
        let (rows, keys) = (
            pair.queries.len().next_multiple_of(MR),
            pair.keys.len().next_multiple_of(NR),
        );
        let (at_a, at_v) = (slot * a * BLOCK, slot * v * BLOCK);
        unsafe {
            part(pass.q, &pair.queries, head * wide_a, wide_a).columns::<V>(rows, 1.0, self.scratch.q.add(at_a));
            let to = self.scratch.d_o.add(at_v);
            part(pass.d_o, &pair.queries, head * pass.d_o_step, wide_v).columns::<V>(rows, pass.scale, to);
            let k = part(pass.k, &pair.keys, head * wide_a, wide_a);
            k.columns::<V>(keys, 1.0, self.scratch.k.add(at_a));
            k.transposed::<V>(keys, self.scratch.k_t.add(at_a));
            part(pass.v, &pair.keys, head * wide_v, wide_v).transposed::<V>(keys, self.scratch.v_t.add(at_v));
        }
    }

    /// One strip, `from` rows into the block of queries, against the block of keys.
    #[inline(always)]
    unsafe fn strip<V: Simd>(&self, pair: &Pair, window: &Window, from: usize) {
        let (pass, (a, _)) = (self.pass, self.pass.padded());
        unsafe {
            if let Some(tables) = pass.bias {
                tables.fill::<V>(window, Term::Both, self.scratch.bias);
            }
            for (slot, head) in self.group() {
                for tile in (0..window.keys).step_by(KEYS) {
                    for row in (0..window.queries).step_by(MR) {
                        self.panel::<V>(window, (slot, head), from, (row, tile));
                    }
                    self.keys::<V>(window, slot, from, tile);
                }
                let Grad { to, accumulate } = pass.dq;
                let width = pass.heads.a;
                let row = window.token + window.query;
                let to = Part {
                    of: to,
                    row,
                    rows: window.queries,
                    col: head * width,
                    width,
                };
                to.receive::<V>(self.scratch.dq, a, 1.0, accumulate || !pair.first_of_queries);
            }
            if let (Some(tables), Some(partial)) = (pass.bias, &self.partial) {
                let origin = pair.keys.start as isize - pair.queries.start as isize;
                tables.scatter::<V>(window, Term::Both, self.scratch.total, partial, origin);
            }
        }
    }

    /// Six queries against one tile of keys: weights, gradients of scores, and what they add to dQ.
    #[inline(always)]
    unsafe fn panel<V: Simd>(
        &self,
        window: &Window,
        (slot, head): (usize, usize),
        from: usize,
        (row, tile): (usize, usize),
    ) {
        let (Heads { a, v, .. }, (a_wide, v_wide)) = (self.pass.heads, self.pass.padded());
        let (s, at) = (&self.scratch, from + row);
        let (query, key) = (window.query + row, window.key + tile);
        let keys = KEYS.min(window.keys - tile).min((query + MR).saturating_sub(key));
        let bias = if self.pass.bias.is_some() {
            s.bias.wrapping_add(row * BLOCK + tile)
        } else {
            std::ptr::null_mut()
        };
        let panel = Panel {
            token: window.token + query,
            head,
            query,
            rows: MR.min(window.queries - row),
            key,
            keys,
            stride: ROW,
            bias,
        };
        unsafe {
            let (weights, grads) = (s.weights.add(row * ROW), s.grads.add(row * ROW));
            for col in (0..keys).step_by(NR) {
                let scores = Scores {
                    depth: a,
                    a: s.q.add(slot * a_wide * BLOCK + at * NR),
                    b: s.k_t
                        .add(slot * a_wide * BLOCK + (tile + col) * a.next_multiple_of(LANES)),
                    c: weights.add(col),
                    stride: ROW,
                    add: false,
                    cols: keys - col,
                };
                scores.compute::<V>();
                let scores = Scores {
                    depth: v,
                    a: s.d_o.add(slot * v_wide * BLOCK + at * NR),
                    b: s.v_t
                        .add(slot * v_wide * BLOCK + (tile + col) * v.next_multiple_of(LANES)),
                    c: grads.add(col),
                    ..scores
                };
                scores.compute::<V>();
            }
            let total = match self.partial {
                Some(_) => s.total.add(row * BLOCK + tile),
                None => std::ptr::null_mut(),
            };
            self.pass
                .unweigh
                .backward::<V>(&panel, weights, grads, total, slot == 0);
            for col in (0..a).step_by(NR) {
                let product = Product::<ROW, 1> {
                    depth: keys,
                    a: grads,
                    b: s.k.add(slot * a_wide * BLOCK + col * BLOCK + tile * NR),
                    c: s.dq.add(row * a_wide + col),
                    stride: a_wide,
                    add: tile > 0,
                    cols: a - col,
                };
                product.compute::<V>();
            }
        }
    }

    /// What a strip adds to dK and dV of a tile: six keys at a time, over the queries that see them.
    #[inline(always)]
    unsafe fn keys<V: Simd>(&self, window: &Window, slot: usize, from: usize, tile: usize) {
        let (Heads { a, v, .. }, (a_wide, v_wide)) = (self.pass.heads, self.pass.padded());
        let s = &self.scratch;
        let rows = window.queries.next_multiple_of(MR);
        for key in (0..KEYS.min(window.keys - tile)).step_by(MR) {
            let position = window.key + tile + key;
            let first = position.saturating_sub(window.query) / MR * MR;
            // An earlier strip of this block has seen these keys.
            let add = from > 0 && position < window.query;
            unsafe {
                for col in (0..v).step_by(NR) {
                    let product = Product::<1, ROW> {
                        depth: rows - first,
                        a: s.weights.add(first * ROW + key),
                        b: s.d_o.add(slot * v_wide * BLOCK + col * BLOCK + (from + first) * NR),
                        c: s.dv.add((slot * BLOCK + tile + key) * v_wide + col),
                        stride: v_wide,
                        add,
                        cols: v - col,
                    };
                    product.compute::<V>();
                }
                for col in (0..a).step_by(NR) {
                    let product = Product::<1, ROW> {
                        depth: rows - first,
                        a: s.grads.add(first * ROW + key),
                        b: s.q.add(slot * a_wide * BLOCK + col * BLOCK + (from + first) * NR),
                        c: s.dk.add((slot * BLOCK + tile + key) * a_wide + col),
                        stride: a_wide,
                        add,
                        cols: a - col,
                    };
                    product.compute::<V>();
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn write_keys<V: Simd>(&self, pair: &Pair, slot: usize, head: usize) {
        let (pass, (a_wide, v_wide)) = (self.pass, self.pass.padded());
        let outputs = [
            (pass.dk, self.scratch.dk, pass.heads.a, a_wide),
            (pass.dv, self.scratch.dv, pass.heads.v, v_wide),
        ];
        for (Grad { to, accumulate }, sums, width, wide) in outputs {
            let row = pair.token + pair.keys.start;
            let to = Part {
                of: to,
                row,
                rows: pair.keys.len(),
                col: head * width,
                width,
            };
            let add = accumulate || !pair.first_of_keys;
            unsafe { to.receive::<V>(sums.add(slot * BLOCK * wide), wide, 1.0, add) };
        }
    }
}
