//! The gradients of the position and time channels.

use super::far::Far;
use super::{ChannelScratch, Channels, STRIP, TERMS};
use crate::attention::bias::{BlockPair, Term};
use crate::attention::pack::ColumnForm;
use crate::attention::plan::{BLOCK, Blocks, Task};
use crate::attention::power::{PowerSums, WEIGHTS};
use crate::attention::table_grads::Partial;
use crate::attention::tile::{Product, Scores, Slope};
use crate::panels::{Panels, PanelsMut};
use crate::simd::tile::{MR, NR};
use crate::simd::{Kernel, Simd};
use std::ops::Range;

pub(super) struct ChannelBackwardTask<'a> {
    pub x: &'a Channels<'a>,
    pub d_o: Panels,
    pub dv: PanelsMut,
    pub task: Task,
    pub scratch: ChannelScratch,
    pub partial: Option<Partial>,
}

impl Kernel for ChannelBackwardTask<'_> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        for (token, blocks) in self.x.sequences(&self.task) {
            if blocks.count > 0 {
                for (channel, term) in TERMS.into_iter().filter(|(_, term)| self.x.has(*term)) {
                    // SAFETY: by the contract of `dispatch`.
                    unsafe { self.block_pair::<V>(token, &blocks, channel, term) };
                }
            }
        }
    }
}

impl ChannelBackwardTask<'_> {
    /// One channel of one block of queries against one block of keys.
    ///
    /// # Safety
    /// This CPU has `V`'s instructions; the scratch is laid out for these channels and used by no other task; the views are
    /// alive, and no other task of the wave touches the gradients of this pair.
    #[inline(always)]
    unsafe fn block_pair<V: Simd>(&self, token: usize, blocks: &Blocks, channel: usize, term: Term) {
        let (x, s) = (self.x, &self.scratch);
        let pair = BlockPair::new(
            token,
            blocks.range(self.task.i as usize),
            blocks.range(self.task.j as usize),
        );
        let group = x.heads.of(self.task.group as usize);
        // SAFETY: by this function's contract.
        unsafe {
            let (functions, kept) = match self.partial.is_some() {
                true => (WEIGHTS, s.kept),
                false => (1, std::ptr::null_mut()),
            };
            let far = x.far::<V>(&pair, term, functions, s);
            let near = Far::rest(far.as_ref(), &pair);
            let mut sums = PowerSums::default();
            x.weights::<V>(&near, term, s.weights, kept);
            for head in group.clone() {
                let (d_o, v) = (x.results(self.d_o, &pair, head, channel), x.values(&pair, head));
                d_o.pack_columns::<V>(pair.queries.next_multiple_of(MR), 1.0, s.o);
                for from in (0..near.queries).step_by(STRIP) {
                    self.values::<V>(&near, from..near.queries.min(from + STRIP));
                }
                if let Some(far) = &far {
                    let values = match self.partial.is_some() {
                        true => Some((v.columns::<V>(pair.keys, s.v), &mut sums.0)),
                        false => None,
                    };
                    far.gradients::<V>(ColumnForm::packed(s.o), s.dv, values);
                }
                v.within(self.dv)
                    .receive::<V>(s.dv, x.heads.v.next_multiple_of(NR), 1.0, true);
                if self.partial.is_some() && near.queries > 0 {
                    v.transposed::<V>(pair.keys.next_multiple_of(NR), s.v);
                    self.total::<V>(&near, head == group.start);
                }
            }
            if let Some(partial) = &self.partial {
                x.tables.scatter::<V>(&near, term, s.total, s.kept, partial);
                if far.is_some() {
                    sums.add_to(partial);
                }
            }
        }
    }

    /// dV += A^T dO: six keys at a time, over the queries of a strip that see them.
    ///
    /// # Safety
    /// As [`Self::block_pair`], with the pair's weights and dO in scratch.
    #[inline(always)]
    unsafe fn values<V: Simd>(&self, pair: &BlockPair, strip: Range<usize>) {
        let width = self.x.heads.v;
        let (wide, query) = (width.next_multiple_of(NR), pair.query + strip.start);
        for key in (0..pair.visible(strip.end - 1)).step_by(MR) {
            let position = pair.key + key;
            let first = strip.start + position.saturating_sub(query) / MR * MR;
            // SAFETY: by this function's contract.
            unsafe {
                let product = Product::<1, BLOCK> {
                    rows: MR,
                    from: Slope::flat(0),
                    until: Slope::flat(strip.end.next_multiple_of(MR) - first),
                    a: self.scratch.weights.add(first * BLOCK + key),
                    b: ColumnForm::packed(self.scratch.o).skip_rows(first),
                    c: self.scratch.dv.add(key * wide),
                    stride: wide,
                    // An earlier strip of this block has already added to these keys.
                    add: strip.start > 0 && position < query,
                    cols: width,
                };
                product.compute::<V>();
            }
        }
    }

    /// total (+)= dO V^T of one head; `fresh` if it is the first of its group.
    ///
    /// # Safety
    /// As [`Self::block_pair`], with the head's dO and values in scratch.
    #[inline(always)]
    unsafe fn total<V: Simd>(&self, pair: &BlockPair, fresh: bool) {
        let scores = Scores {
            rows: pair.queries.next_multiple_of(MR),
            depth: self.x.heads.v,
            a: ColumnForm::packed(self.scratch.o),
            b: self.scratch.v,
            plus: if fresh { std::ptr::null() } else { self.scratch.total },
            c: self.scratch.total,
            stride: BLOCK,
            cols: Slope::seen(pair.query, pair.key, pair.keys),
        };
        // SAFETY: by this function's contract.
        unsafe { scores.compute::<V>() };
    }
}
