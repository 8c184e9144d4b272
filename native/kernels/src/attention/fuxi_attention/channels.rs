//! The position and time channels of FuXi attention: O_c = A_c V for weights A_c that are a term of the relative bias,
//! shared by all heads. A block of A_c is computed once and multiplied with every head's values; backward sums dO_c V^T over the
//! heads of a group before adding it to the gradient of the table. The time function of earlier blocks is multiplied as a series instead
//! (`far`).

mod backward;
mod far;

use crate::attention::bias::{BlockPair, Kept, SQUARE, Tables, Term};
use crate::attention::pack::{ColumnForm, Part};
use crate::attention::plan::{BLOCK, Blocks, Direction, Heads, Plan, Task};
use crate::attention::scratch::{Parts, with_scratch};
use crate::attention::series::{Room, VALUES};
use crate::attention::table_grads::TableGrads;
use crate::attention::tile::{Product, Slope};
use crate::ctx::Ctx;
use crate::panels::{Panels, PanelsMut};
use crate::simd::tile::{MR, NR};
use crate::simd::{Kernel, Simd, dispatch};
use backward::ChannelBackwardTask;
use far::{Far, NARROW};

/// Column stride of `o` and `d_o` between heads, in units of the head width.
pub const CHANNELS: usize = 3;
/// The channels of this file and the bias terms that are their weights.
const TERMS: [(usize, Term); 2] = [(0, Term::Position), (1, Term::Time)];

/// What both directions read.
#[derive(Clone, Copy)]
pub struct Channels<'a> {
    pub v: Panels,
    pub heads: Heads,
    pub offsets: &'a [i32],
    pub tables: &'a Tables<'a>,
}

/// Queries that add to dV together, while their weights are in the first-level cache.
const STRIP: usize = 96;

/// Scratch of one worker.
#[derive(Clone, Copy)]
struct ChannelScratch {
    v: *mut f32,       // of one head: [v/16][BLOCK][16], in backward transposed
    o: *mut f32,       // forward: results [group][BLOCK][v]; backward: packed dO of one head
    dv: *mut f32,      // of one head: [BLOCK][v]
    weights: *mut f32, // [BLOCK][BLOCK]
    total: *mut f32,   // [BLOCK][BLOCK]
    kept: Kept,        // from the weights to their gradient
    series: *mut f32,  // of the time channel
    narrow: *mut f32,  // its products of one head, see `Far`
}

impl Channels<'_> {
    /// Floats of a head's block in scratch.
    fn block(&self) -> usize {
        self.heads.v.next_multiple_of(NR) * BLOCK
    }

    fn lay_out(&self, parts: &mut Parts) -> ChannelScratch {
        ChannelScratch {
            v: parts.take(self.block()),
            o: parts.take(self.heads.group * self.block()),
            dv: parts.take(self.block()),
            weights: parts.take(SQUARE),
            total: parts.take(SQUARE),
            kept: parts.take(self.tables.room_to_keep()),
            series: parts.take(self.tables.room_for_series()),
            narrow: parts.take(self.heads.v.next_multiple_of(NR) * NARROW),
        }
    }

    fn has(&self, term: Term) -> bool {
        term != Term::Time || self.tables.has_time()
    }

    /// Fills a square with one channel's weights: zero for invisible keys and beyond the last query.
    ///
    /// # Safety
    /// As [`Tables::fill`].
    #[inline(always)]
    unsafe fn weights<V: Simd>(&self, pair: &BlockPair, term: Term, square: *mut f32, kept: Kept) {
        // SAFETY: by this function's contract.
        unsafe {
            self.tables.fill::<V>(pair, term, square, kept);
            for row in 0..pair.queries.next_multiple_of(MR) {
                let visible = if row < pair.queries { pair.visible(row) } else { 0 };
                let end = pair.visible(row / MR * MR + MR - 1);
                std::slice::from_raw_parts_mut(square.add(row * BLOCK), end)[visible..].fill(0.0);
            }
        }
    }

    /// The weights of a block pair as a series, if they have one: of the function only, or of all `functions` that gradients need.
    ///
    /// # Safety
    /// This CPU has `V`'s instructions; `s` is laid out for these channels and used by no other task.
    #[inline(always)]
    unsafe fn far<V: Simd>(&self, pair: &BlockPair, term: Term, functions: usize, s: &ChannelScratch) -> Option<Far> {
        if term != Term::Time {
            return None;
        }
        // Only the rest of the pairs, after this, needs the square of totals.
        const { assert!(VALUES <= SQUARE) };
        let room = Room {
            functions,
            series: s.series,
            values: s.total,
        };
        // SAFETY: by this function's contract.
        let series = unsafe { self.tables.series::<V>(pair, room) };
        series.map(|series| Far {
            series,
            pair: *pair,
            width: self.heads.v,
            narrow: s.narrow,
        })
    }

    /// The values of a head in a block pair.
    #[inline(always)]
    fn values(&self, pair: &BlockPair, head: usize) -> Part {
        let (row, width) = (pair.token + pair.key, self.heads.v);
        Part {
            of: self.v,
            row,
            rows: pair.keys,
            col: head * width,
            width,
        }
    }

    /// A head's queries in one channel of `o` or `d_o`.
    #[inline(always)]
    fn results<P>(&self, of: P, pair: &BlockPair, head: usize, channel: usize) -> Part<P> {
        let (row, width) = (pair.token + pair.query, self.heads.v);
        Part {
            of,
            row,
            rows: pair.queries,
            col: (head * CHANNELS + channel) * width,
            width,
        }
    }

    /// Writes the position and time channels of `o`, overwriting.
    pub fn forward(&self, cx: &Ctx, o: PanelsMut) {
        let plan = Plan::new(cx, Direction::Forward, self.offsets, &self.heads);
        let run = |task: Task, scratch| {
            let x = self;
            // SAFETY: tasks own the rows of `o` they write, and their scratch; `cx.isa` is this CPU's.
            unsafe { dispatch(cx.isa, ChannelForwardTask { x, o, task, scratch }) };
        };
        with_scratch(
            cx,
            |parts| self.lay_out(parts),
            |scratch| plan.run(cx, |task, worker| run(task, scratch(worker))),
        );
    }

    /// Adds the two channels' contributions to dv (always accumulating) and to the tables' gradients.
    pub fn backward(&self, cx: &Ctx, d_o: Panels, dv: PanelsMut, tables: Option<&mut TableGrads>) {
        let plan = Plan::new(cx, Direction::Backward, self.offsets, &self.heads);
        let lay_out = |parts: &mut Parts| self.lay_out(parts);
        with_scratch(cx, lay_out, |scratch| {
            TableGrads::over_waves(tables, cx, &plan, self.offsets, |task, worker, partial| {
                let task = ChannelBackwardTask {
                    x: self,
                    d_o,
                    dv,
                    task,
                    scratch: scratch(worker),
                    partial,
                };
                // SAFETY: the plan keeps tasks of a wave apart, and each worker has its own scratch; `cx.isa` is this CPU's.
                unsafe { dispatch(cx.isa, task) };
            });
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

struct ChannelForwardTask<'a> {
    x: &'a Channels<'a>,
    o: PanelsMut,
    task: Task,
    scratch: ChannelScratch,
}

impl Kernel for ChannelForwardTask<'_> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        for (token, blocks) in self.x.sequences(&self.task) {
            if blocks.count > 0 {
                for (channel, term) in TERMS {
                    // SAFETY: by the contract of `dispatch`.
                    unsafe {
                        if self.x.has(term) {
                            self.block::<V>(token, &blocks, channel, term)
                        } else {
                            self.absent(token, &blocks, channel)
                        }
                    }
                }
            }
        }
    }
}

impl ChannelForwardTask<'_> {
    /// A channel without a table.
    ///
    /// # Safety
    /// `o` is alive, and no other task writes these rows of it.
    #[inline(always)]
    unsafe fn absent(&self, token: usize, blocks: &Blocks, channel: usize) {
        let pair = BlockPair::new(token, blocks.range(self.task.i as usize), 0..0);
        for head in self.x.heads.of(self.task.group as usize) {
            // SAFETY: by this function's contract.
            unsafe { self.x.results(self.o, &pair, head, channel).zero() };
        }
    }

    /// One channel of one block of queries.
    ///
    /// # Safety
    /// This CPU has `V`'s instructions; the scratch is laid out for these channels and used by no other task; the views are
    /// alive, and no other task writes these rows of `o`.
    #[inline(always)]
    unsafe fn block<V: Simd>(&self, token: usize, blocks: &Blocks, channel: usize, term: Term) {
        let (x, i, s) = (self.x, self.task.i as usize, &self.scratch);
        let wide = x.heads.v.next_multiple_of(NR);
        for j in 0..=i {
            let pair = BlockPair::new(token, blocks.range(i), blocks.range(j));
            // SAFETY: by this function's contract.
            unsafe {
                let far = x.far::<V>(&pair, term, 1, s);
                let near = Far::rest(far.as_ref(), &pair);
                x.weights::<V>(&near, term, s.weights, std::ptr::null_mut());
                for (slot, head) in x.heads.of(self.task.group as usize).enumerate() {
                    let sums = s.o.add(slot * x.block());
                    let values = x.values(&pair, head).columns::<V>(pair.keys, s.v);
                    self.head::<V>(&near, values, sums);
                    if let Some(far) = &far {
                        far.results::<V>(values, sums);
                    }
                    if j == i {
                        x.results(self.o, &pair, head, channel)
                            .receive::<V>(sums, wide, 1.0, false);
                    }
                }
            }
        }
    }

    /// Results of one head: the block's weights times its values.
    ///
    /// # Safety
    /// As [`Self::block`]; `sums` has room for a block of results, `values` hold the pair's keys.
    #[inline(always)]
    unsafe fn head<V: Simd>(&self, pair: &BlockPair, values: ColumnForm, sums: *mut f32) {
        let width = self.x.heads.v;
        let product = Product::<BLOCK, 1> {
            rows: pair.queries.next_multiple_of(MR),
            from: Slope::flat(0),
            until: Slope::seen(pair.query, pair.key, pair.keys),
            a: self.scratch.weights,
            b: values,
            c: sums,
            stride: width.next_multiple_of(NR),
            add: pair.key > 0,
            cols: width,
        };
        // SAFETY: by this function's contract.
        unsafe { product.compute::<V>() };
    }
}
