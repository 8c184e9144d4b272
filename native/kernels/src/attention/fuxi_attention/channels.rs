//! The position and time channels of FuXi attention: O_c = A_c V for weights A_c that are a term of the relative bias,
//! shared by all heads. A strip of A_c is filled once and multiplied with every head's values; backward sums dO_c V^T
//! over the heads of a group before it goes into the gradient of the table.

use crate::attention::pack::Part;
use crate::attention::plan::{BLOCK, Blocks, Heads, Pass, Plan, Task};
use crate::attention::strip::{STRIP, STRIP_FLOATS, Tables, Term, Window};
use crate::attention::table_grads::{Partial, TableGrads};
use crate::attention::tile::{MR, NR, Product, Scores};
use crate::ctx::Ctx;
use crate::mat::{Mat, MatMut};
use crate::simd::{Kernel, LANES, Simd, dispatch};
use std::ops::Range;

/// Columns of `o` and `d_o` from one head to the next, in widths of a head.
pub const CHANNELS: usize = 3;
/// The channels of this file and the terms of the bias they weigh by.
const TERMS: [(usize, Term); 2] = [(0, Term::Position), (1, Term::Time)];

/// What both directions read.
#[derive(Clone, Copy)]
pub struct Channels<'a> {
    pub v: Mat,
    pub heads: Heads,
    pub offsets: &'a [i32],
    pub tables: &'a Tables<'a>,
}

/// Scratch of one worker. `o` holds dO packed in backward, results in forward; `v` is transposed in backward.
#[derive(Clone, Copy)]
struct Scratch {
    v: *mut f32,     // [group][v/16][BLOCK][16]
    o: *mut f32,     // [group][BLOCK][v] or [group][v/16][BLOCK][16]
    dv: *mut f32,    // [group][BLOCK][v]
    strip: *mut f32, // [STRIP][BLOCK]
    total: *mut f32, // [STRIP][BLOCK]
}

impl Channels<'_> {
    /// Floats of a head's block in scratch.
    fn block(&self) -> usize {
        self.heads.v.next_multiple_of(NR) * BLOCK
    }

    /// The scratch that begins at `base`, and how many floats it takes.
    fn lay_out(&self, base: *mut f32) -> (Scratch, usize) {
        let mut floats = 0;
        let mut take = |len: usize| {
            let at = base.wrapping_add(floats);
            floats += len.next_multiple_of(NR);
            at
        };
        let scratch = Scratch {
            v: take(self.heads.group * self.block()),
            o: take(self.heads.group * self.block()),
            dv: take(self.heads.group * self.block()),
            strip: take(STRIP_FLOATS),
            total: take(STRIP_FLOATS),
        };
        (scratch, floats)
    }

    /// Fills a strip with one channel's weights: zero where a key is not visible, and below the last query.
    #[inline(always)]
    unsafe fn weights<V: Simd>(&self, window: &Window, term: Term, strip: *mut f32) {
        unsafe {
            self.tables.fill::<V>(window, term, strip);
            for row in 0..window.queries.next_multiple_of(MR) {
                let visible = if row < window.queries { window.visible(row) } else { 0 };
                let end = window.visible(row / MR * MR + MR - 1);
                std::slice::from_raw_parts_mut(strip.add(row * BLOCK), end)[visible..].fill(0.0);
            }
        }
    }

    /// Writes the position and time channels of `o`, overwriting.
    pub fn forward(&self, cx: &Ctx, o: MatMut) {
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
                            x: self,
                            o,
                            task: wave[index],
                            scratch,
                        },
                    );
                }
            });
        }
    }

    /// Adds what the two channels contribute to dv (always adding) and to the tables' gradients.
    pub fn backward(&self, cx: &Ctx, d_o: Mat, dv: MatMut, tables: Option<&mut TableGrads>) {
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
                        x: self,
                        d_o,
                        dv,
                        task,
                        scratch,
                        partial,
                    },
                );
            }
        });
    }

    /// The sequences of a task: first batch row, and blocks.
    fn sequences(&self, task: &Task) -> impl Iterator<Item = (usize, Blocks)> {
        task.sequences().map(|s| {
            (
                self.offsets[s] as usize,
                Blocks::new((self.offsets[s + 1] - self.offsets[s]) as usize),
            )
        })
    }
}

/// The part of a strip of queries that begins `from` tokens into a block.
fn window(token: usize, queries: &Range<usize>, from: usize, keys: &Range<usize>) -> Window {
    let (query, rows) = (queries.start + from, STRIP.min(queries.len() - from));
    let seen = keys.len().min(query + rows - keys.start);
    Window {
        token,
        query,
        queries: rows,
        key: keys.start,
        keys: seen,
    }
}

struct ForwardTask<'a> {
    x: &'a Channels<'a>,
    o: MatMut,
    task: Task,
    scratch: Scratch,
}

impl Kernel for ForwardTask<'_> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        for (token, blocks) in self.x.sequences(&self.task) {
            if blocks.count > 0 {
                for (channel, term) in TERMS {
                    unsafe { self.block::<V>(token, &blocks, channel, term) };
                }
            }
        }
    }
}

impl ForwardTask<'_> {
    /// One channel of one block of queries.
    #[inline(always)]
    unsafe fn block<V: Simd>(&self, token: usize, blocks: &Blocks, channel: usize, term: Term) {
        let (Channels { v, heads, tables, .. }, i) = (*self.x, self.task.i as usize);
        let queries = blocks.range(i);
        let group = heads.of(self.task.group as usize);
        if term == Term::Time && !tables.has_time() {
            for row in queries.map(|position| token + position) {
                for head in group.clone() {
                    unsafe { self.o.row(row)[(head * CHANNELS + channel) * heads.v..][..heads.v].fill(0.0) };
                }
            }
            return;
        }
        for j in 0..=i {
            let keys = blocks.range(j);
            unsafe {
                for (slot, head) in group.clone().enumerate() {
                    let part = Part {
                        of: v,
                        row: token + keys.start,
                        rows: keys.len(),
                        col: head * heads.v,
                        width: heads.v,
                    };
                    part.columns::<V>(
                        keys.len().next_multiple_of(NR),
                        1.0,
                        self.scratch.v.add(slot * self.x.block()),
                    );
                }
                for from in (0..queries.len()).step_by(STRIP) {
                    let window = window(token, &queries, from, &keys);
                    self.x.weights::<V>(&window, term, self.scratch.strip);
                    for (slot, head) in group.clone().enumerate() {
                        self.strip::<V>(&window, slot, from);
                        if j == i {
                            let to = Part {
                                of: self.o,
                                row: token + window.query,
                                rows: window.queries,
                                col: (head * CHANNELS + channel) * heads.v,
                                width: heads.v,
                            };
                            let wide = heads.v.next_multiple_of(NR);
                            to.receive::<V>(
                                self.scratch.o.add(slot * self.x.block() + from * wide),
                                wide,
                                1.0,
                                false,
                            );
                        }
                    }
                }
            }
        }
    }

    /// Results of one head: the strip's weights times the block's values.
    #[inline(always)]
    unsafe fn strip<V: Simd>(&self, window: &Window, slot: usize, from: usize) {
        let (width, block) = (self.x.heads.v, slot * self.x.block());
        let wide = width.next_multiple_of(NR);
        for col in (0..width).step_by(NR) {
            for row in (0..window.queries).step_by(MR) {
                unsafe {
                    let product = Product::<BLOCK, 1> {
                        depth: window.visible(row + MR - 1),
                        a: self.scratch.strip.add(row * BLOCK),
                        b: self.scratch.v.add(block + col * BLOCK),
                        c: self.scratch.o.add(block + (from + row) * wide + col),
                        stride: wide,
                        add: window.key > 0,
                        cols: width - col,
                    };
                    product.compute::<V>();
                }
            }
        }
    }
}

struct BackwardTask<'a> {
    x: &'a Channels<'a>,
    d_o: Mat,
    dv: MatMut,
    task: Task,
    scratch: Scratch,
    partial: Option<Partial>,
}

impl Kernel for BackwardTask<'_> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        for (token, blocks) in self.x.sequences(&self.task) {
            if blocks.count > 0 {
                for (channel, term) in TERMS {
                    unsafe { self.pair::<V>(token, &blocks, channel, term) };
                }
            }
        }
    }
}

impl BackwardTask<'_> {
    /// One channel of one block of queries against one block of keys.
    #[inline(always)]
    unsafe fn pair<V: Simd>(&self, token: usize, blocks: &Blocks, channel: usize, term: Term) {
        let Channels { v, heads, tables, .. } = *self.x;
        let (queries, keys) = (blocks.range(self.task.i as usize), blocks.range(self.task.j as usize));
        let group = heads.of(self.task.group as usize);
        if term == Term::Time && !tables.has_time() {
            return;
        }
        let (width, wide) = (heads.v, heads.v.next_multiple_of(NR));
        unsafe {
            for (slot, head) in group.clone().enumerate() {
                let at = slot * self.x.block();
                let (row, rows) = (token + queries.start, queries.len());
                let d_o = Part {
                    of: self.d_o,
                    row,
                    rows,
                    col: (head * CHANNELS + channel) * width,
                    width,
                };
                d_o.columns::<V>(rows.next_multiple_of(MR), 1.0, self.scratch.o.add(at));
                let v = Part {
                    of: v,
                    row: token + keys.start,
                    rows: keys.len(),
                    col: head * width,
                    width,
                };
                v.transposed::<V>(keys.len().next_multiple_of(NR), self.scratch.v.add(at));
            }
            for from in (0..queries.len()).step_by(STRIP) {
                let window = window(token, &queries, from, &keys);
                self.x.weights::<V>(&window, term, self.scratch.strip);
                for slot in 0..group.len() {
                    self.values::<V>(&window, slot, from);
                }
                if let Some(partial) = &self.partial {
                    for slot in 0..group.len() {
                        self.total::<V>(&window, slot, from);
                    }
                    let origin = keys.start as isize - queries.start as isize;
                    tables.scatter::<V>(&window, term, self.scratch.total, partial, origin);
                }
            }
            for (slot, head) in group.enumerate() {
                let to = Part {
                    of: self.dv,
                    row: token + keys.start,
                    rows: keys.len(),
                    col: head * width,
                    width,
                };
                to.receive::<V>(self.scratch.dv.add(slot * self.x.block()), wide, 1.0, true);
            }
        }
    }

    /// dV += A^T dO: six keys at a time, over the queries of the strip that see them.
    #[inline(always)]
    unsafe fn values<V: Simd>(&self, window: &Window, slot: usize, from: usize) {
        let (width, block) = (self.x.heads.v, slot * self.x.block());
        let wide = width.next_multiple_of(NR);
        for key in (0..window.keys).step_by(MR) {
            let position = window.key + key;
            let first = position.saturating_sub(window.query) / MR * MR;
            for col in (0..width).step_by(NR) {
                unsafe {
                    let product = Product::<1, BLOCK> {
                        depth: window.queries.next_multiple_of(MR) - first,
                        a: self.scratch.strip.add(first * BLOCK + key),
                        b: self.scratch.o.add(block + col * BLOCK + (from + first) * NR),
                        c: self.scratch.dv.add(block + key * wide + col),
                        stride: wide,
                        // An earlier strip of this block has seen these keys.
                        add: from > 0 && position < window.query,
                        cols: width - col,
                    };
                    product.compute::<V>();
                }
            }
        }
    }

    /// total (+)= dO V^T, summed over the heads of the group.
    #[inline(always)]
    unsafe fn total<V: Simd>(&self, window: &Window, slot: usize, from: usize) {
        let (width, block) = (self.x.heads.v, slot * self.x.block());
        for row in (0..window.queries).step_by(MR) {
            let keys = window.visible(row + MR - 1);
            for col in (0..keys).step_by(NR) {
                unsafe {
                    let scores = Scores {
                        depth: width,
                        a: self.scratch.o.add(block + (from + row) * NR),
                        b: self.scratch.v.add(block + col * width.next_multiple_of(LANES)),
                        c: self.scratch.total.add(row * BLOCK + col),
                        stride: BLOCK,
                        add: slot > 0,
                        cols: keys - col,
                    };
                    scores.compute::<V>();
                }
            }
        }
    }
}
