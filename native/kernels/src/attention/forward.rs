//! The forward pass shared by the ops: for each strip of queries, the bias once, then head by head over tiles of keys:
//! scores, weights, weighted values. Results of a strip stay in scratch until its last key.

use super::pack::Part;
use super::plan::{BLOCK, Blocks, Heads, Pass, Plan, Task};
use super::strip::{STRIP, STRIP_FLOATS, Tables, Term, Window};
use super::tile::{MR, NR, Product, Scores};
use super::weigh::{Panel, Sums, Weigh};
use crate::ctx::Ctx;
use crate::mat::{Mat, MatMut};
use crate::simd::{Kernel, LANES, Simd, dispatch};
use std::ops::Range;

/// Keys of a tile.
const KEYS: usize = 64;
/// Floats from one row of a tile's weights to the next.
const ROW: usize = KEYS + LANES;

/// What the pass reads and writes.
#[derive(Clone, Copy)]
pub struct Forward<'a, W> {
    pub q: Mat,
    pub k: Mat,
    pub v: Mat,
    pub o: MatMut,
    /// Columns of `o` from one head to the next.
    pub o_step: usize,
    pub heads: Heads,
    pub offsets: &'a [i32],
    pub bias: Option<&'a Tables<'a>>,
    pub weigh: W,
}

/// Scratch of one worker.
#[derive(Clone, Copy)]
struct Scratch {
    q: *mut f32,       // [group][a/16][BLOCK][16]
    k: *mut f32,       // [group][BLOCK/16][a][16]
    v: *mut f32,       // [group][v/16][BLOCK][16]
    o: *mut f32,       // [group][BLOCK][v]
    state: *mut f32,   // [group][BLOCK][2]
    strip: *mut f32,   // [STRIP][BLOCK]
    weights: *mut f32, // [6][ROW]
}

impl<W: Weigh> Forward<'_, W> {
    pub fn run(&self, cx: &Ctx) {
        let plan = Plan::new(cx, Pass::Forward, self.offsets, &self.heads);
        let mut scratch = cx.per_worker::<f32>(self.lay_out(std::ptr::null_mut()).1);
        let slots = scratch.slots();
        for wave in plan.waves() {
            cx.pool.run(wave.len(), |index, worker| {
                // SAFETY: a slot is its worker's own; tasks own the rows of `o` they write; `cx.isa` is this CPU's.
                unsafe {
                    let (scratch, _) = self.lay_out(slots.of(worker).as_mut_ptr());
                    dispatch(
                        cx.isa,
                        ForwardTask {
                            pass: self,
                            task: wave[index],
                            scratch,
                        },
                    );
                }
            });
        }
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
            k: take(g * a * BLOCK),
            v: take(g * v * BLOCK),
            o: take(g * v * BLOCK),
            state: take(g * BLOCK * 2),
            strip: take(STRIP_FLOATS),
            weights: take(MR * ROW + LANES),
        };
        (scratch, floats)
    }
}

struct ForwardTask<'a, W> {
    pass: &'a Forward<'a, W>,
    task: Task,
    scratch: Scratch,
}

impl<W: Weigh> Kernel for ForwardTask<'_, W> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        let offsets = self.pass.offsets;
        for sequence in self.task.sequences() {
            let token = offsets[sequence] as usize;
            let blocks = Blocks::new((offsets[sequence + 1] - offsets[sequence]) as usize);
            if blocks.count > 0 {
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
    #[inline(always)]
    unsafe fn block<V: Simd>(&self, token: usize, blocks: &Blocks) {
        let (Forward { q, k, v, heads, .. }, (a, v_wide)) = (*self.pass, self.pass.padded());
        let queries = blocks.range(self.task.i as usize);
        let part = |of: Mat, positions: &Range<usize>, head: usize, width: usize| Part {
            of,
            row: token + positions.start,
            rows: positions.len(),
            col: head * width,
            width,
        };
        unsafe {
            for (slot, head) in self.group() {
                let to = self.scratch.q.add(slot * a * BLOCK);
                part(q, &queries, head, heads.a).columns::<V>(queries.len().next_multiple_of(MR), 1.0, to);
            }
            for j in 0..=self.task.i as usize {
                let keys = blocks.range(j);
                let padded = keys.len().next_multiple_of(NR);
                for (slot, head) in self.group() {
                    part(k, &keys, head, heads.a).transposed::<V>(padded, self.scratch.k.add(slot * a * BLOCK));
                    let to = self.scratch.v.add(slot * v_wide * BLOCK);
                    part(v, &keys, head, heads.v).columns::<V>(padded, 1.0, to);
                }
                for from in (0..queries.len()).step_by(STRIP) {
                    let query = queries.start + from;
                    let rows = STRIP.min(queries.len() - from);
                    let seen = keys.len().min(query + rows - keys.start);
                    let window = Window {
                        token,
                        query,
                        queries: rows,
                        key: keys.start,
                        keys: seen,
                    };
                    self.strip::<V>(&window, from);
                    if j == self.task.i as usize {
                        self.finish::<V>(&window, from);
                    }
                }
            }
        }
    }

    /// One strip, `from` rows into the block of queries, against one block of keys.
    #[inline(always)]
    unsafe fn strip<V: Simd>(&self, window: &Window, from: usize) {
        unsafe {
            if let Some(tables) = self.pass.bias {
                tables.fill::<V>(window, Term::Both, self.scratch.strip);
            }
            for (slot, head) in self.group() {
                for tile in (0..window.keys).step_by(KEYS) {
                    for row in (0..window.queries).step_by(MR) {
                        let (query, key) = (window.query + row, window.key + tile);
                        let panel = Panel {
                            token: window.token + query,
                            head,
                            query,
                            rows: MR.min(window.queries - row),
                            key,
                            keys: KEYS.min(window.keys - tile).min((query + MR).saturating_sub(key)),
                            stride: ROW,
                            bias: match self.pass.bias {
                                Some(_) => self.scratch.strip.add(row * BLOCK + tile),
                                None => std::ptr::null(),
                            },
                        };
                        self.panel::<V>(&panel, slot, from + row, tile);
                    }
                }
            }
        }
    }

    /// Six queries, `row` rows into their block, against a tile of keys, `tile` rows into theirs.
    #[inline(always)]
    unsafe fn panel<V: Simd>(&self, panel: &Panel, slot: usize, row: usize, tile: usize) {
        let Scratch {
            q,
            k,
            v,
            o,
            state,
            weights,
            ..
        } = self.scratch;
        let (heads, (a, v_wide)) = (self.pass.heads, self.pass.padded());
        unsafe {
            for col in (0..panel.keys).step_by(NR) {
                let scores = Scores {
                    depth: heads.a,
                    a: q.add(slot * a * BLOCK + row * NR),
                    b: k.add(slot * a * BLOCK + (tile + col) * heads.a.next_multiple_of(LANES)),
                    c: weights.add(col),
                    stride: ROW,
                    add: false,
                    cols: panel.keys - col,
                };
                scores.compute::<V>();
            }
            let so_far = Sums {
                o: o.add((slot * BLOCK + row) * v_wide),
                stride: v_wide,
                width: heads.v.next_multiple_of(LANES),
                state: state.cast::<[f32; 2]>().add(slot * BLOCK + row),
            };
            self.pass.weigh.forward::<V>(panel, weights, &so_far);
            for col in (0..heads.v).step_by(NR) {
                let product = Product::<ROW, 1> {
                    depth: panel.keys,
                    a: weights,
                    b: v.add(slot * v_wide * BLOCK + col * BLOCK + tile * NR),
                    c: so_far.o.add(col),
                    stride: v_wide,
                    add: panel.key > 0,
                    cols: heads.v - col,
                };
                product.compute::<V>();
            }
        }
    }

    /// Writes the results of a strip that has seen its last key.
    #[inline(always)]
    unsafe fn finish<V: Simd>(&self, window: &Window, from: usize) {
        let (
            Forward {
                heads,
                o,
                o_step,
                weigh,
                ..
            },
            (_, v_wide),
        ) = (*self.pass, self.pass.padded());
        for (slot, head) in self.group() {
            for row in 0..window.queries {
                let (token, at) = (window.token + window.query + row, slot * BLOCK + from + row);
                let to = Part {
                    of: o,
                    row: token,
                    rows: 1,
                    col: head * o_step,
                    width: heads.v,
                };
                unsafe {
                    let scale = weigh.finish(token, head, *self.scratch.state.cast::<[f32; 2]>().add(at));
                    to.receive::<V>(self.scratch.o.add(at * v_wide), v_wide, scale, false);
                }
            }
        }
    }
}
