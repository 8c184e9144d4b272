//! Tensors by integer handle, and the memory under them. Lives on the JavaScript thread alone.
//!
//! A handle packs slot, runtime and generation into 53 bits, so a disposed or foreign one is recognised. 0 is "none".
//!
//! Memory is reused in stream order, as a caching GPU allocator does: a freed block may be given to the next tensor at
//! once although commands on it still wait, because the next tensor's commands come later in the same stream. If they
//! come on *another* stream, a wait is put before the first of them (`Storage::prior`). Blocks that several streams
//! still work on rest in limbo, so that reuse does not tie those streams together.

use crate::queue::STREAMS;
use crate::refusal::{Outcome, refusal};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use turbogr_kernels::Panels;
use turbogr_kernels::arena::{Arena, Block, block_size};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dtype {
    F32,
    F16,
    I32,
    I64,
}

impl Dtype {
    pub const ALL: [Dtype; 4] = [Dtype::F32, Dtype::F16, Dtype::I32, Dtype::I64];

    pub fn bytes(self) -> usize {
        match self {
            Dtype::F16 => 2,
            Dtype::F32 | Dtype::I32 => 4,
            Dtype::I64 => 8,
        }
    }
    pub fn name(self) -> &'static str {
        match self {
            Dtype::F32 => "f32",
            Dtype::F16 => "f16",
            Dtype::I32 => "i32",
            Dtype::I64 => "i64",
        }
    }
}

/// A tensor or a column range of one: `rows` x `cols`, `stride` elements from row to row; or in [`Panels`].
#[derive(Clone, Copy)]
pub struct View {
    pub ptr: *mut u8,
    pub dtype: Dtype,
    pub rows: usize,
    pub cols: usize,
    pub stride: usize,
    pub in_panels: bool,
    pub storage: u32,
}

// SAFETY: an address and a shape; streams order the accesses.
unsafe impl Send for View {}

impl View {
    /// Whether row follows row.
    pub fn is_contiguous(&self) -> bool {
        !self.in_panels && (self.stride == self.cols || self.rows <= 1)
    }
    /// Element `(i, j)` and those that follow it in the row, or in the panel.
    pub fn at(&self, i: usize, j: usize) -> *mut u8 {
        let (panels, within) = match self.in_panels {
            true => (j / Panels::WIDTH, j % Panels::WIDTH),
            false => (0, j),
        };
        let elements = panels * Panels::size(self.rows) + i * self.stride + within;
        self.ptr.wrapping_add(elements * self.dtype.bytes())
    }
    /// The same memory, its elements in whatever order they lie, and what is between them.
    pub fn unordered(self) -> View {
        match self.in_panels {
            true => View {
                rows: Panels::size(self.rows) * (self.cols / Panels::WIDTH) / Panels::WIDTH,
                cols: Panels::WIDTH,
                in_panels: false,
                ..self
            },
            false => self,
        }
    }
    pub fn bytes(&self) -> usize {
        self.rows * self.cols * self.dtype.bytes()
    }
}

/// Command numbers by stream.
pub type Marks = [u64; STREAMS];

struct Storage {
    block: Block,
    /// Handles that look at it.
    refs: u32,
    /// The last command on each stream that uses it, in this life or an earlier one.
    uses: Marks,
    /// `uses` as they were when this life began.
    prior: Marks,
}

struct Slot {
    generation: u64,
    view: Option<View>,
}

const SLOT_BITS: u32 = 20;
const RUNTIME_BITS: u32 = 6;
const GENERATIONS: u64 = 1 << (53 - SLOT_BITS - RUNTIME_BITS);

pub struct Tensors {
    arena: Arc<Arena>,
    runtime: u64,
    slots: Vec<Slot>,
    /// First in, first out: a slot's generations last longest.
    free_slots: VecDeque<u32>,
    storages: Vec<Storage>,
    /// Free storages by block size.
    idle: BTreeMap<usize, Vec<u32>>,
    limbo: Vec<u32>,
    live: usize,
}

impl Tensors {
    pub fn new(arena: Arc<Arena>, runtime: u64) -> Tensors {
        Tensors {
            arena,
            runtime: runtime % (1 << RUNTIME_BITS),
            slots: Vec::new(),
            free_slots: VecDeque::new(),
            storages: Vec::new(),
            idle: BTreeMap::new(),
            limbo: Vec::new(),
            live: 0,
        }
    }

    /// Handles alive, views included.
    pub fn live(&self) -> usize {
        self.live
    }

    /// A new tensor; its contents are unspecified. `done` is what each stream has finished.
    pub fn alloc(&mut self, dtype: Dtype, [rows, cols]: [usize; 2], in_panels: bool, done: Marks) -> Outcome<f64> {
        if in_panels && !(dtype == Dtype::F32 && cols.is_multiple_of(Panels::WIDTH)) {
            let expected = format!("an f32 tensor whose columns are a multiple of {}", Panels::WIDTH);
            let got = format!("{cols} columns of {}", dtype.name());
            return Err(refusal("shape", "alloc", "panels", expected, got));
        }
        // One panel is a plain matrix.
        let in_panels = in_panels && cols > Panels::WIDTH;
        let bytes = (rows + if in_panels { Panels::SPARE } else { 0 })
            .checked_mul(cols)
            .and_then(|n| n.checked_mul(dtype.bytes()))
            .filter(|bytes| *bytes < 1 << 46);
        let Some(bytes) = bytes else {
            let got = format!("{rows} x {cols} {}", dtype.name());
            return Err(refusal("shape", "alloc", "shape", "a tensor that fits in memory", got));
        };
        let storage = self.storage(block_size(bytes), done);
        let view = View {
            ptr: self.storages[storage as usize].block.ptr(),
            dtype,
            rows,
            cols,
            stride: if in_panels { Panels::WIDTH } else { cols },
            in_panels,
            storage,
        };
        self.enter(view)
    }

    /// Columns `[from, from + cols)` as a tensor of its own that shares the memory.
    pub fn columns(&mut self, handle: f64, from: usize, cols: usize) -> Outcome<f64> {
        let whole = *self.view("view", "tensor", handle)?;
        let refuse = |expected: String| {
            Err(refusal(
                "shape",
                "view",
                "columns",
                expected,
                format!("{cols} from {from}"),
            ))
        };
        if from.checked_add(cols).is_none_or(|end| end > whole.cols) {
            return refuse(format!("a range within {} columns", whole.cols));
        }
        let divides = |n: usize| n.is_multiple_of(Panels::WIDTH);
        if whole.in_panels && !(divides(from) && divides(cols)) {
            return refuse(format!("whole panels of {}", Panels::WIDTH));
        }
        self.enter(View {
            ptr: whole.at(0, from),
            cols,
            in_panels: whole.in_panels && cols > Panels::WIDTH,
            ..whole
        })
    }

    /// Forgets a handle; the memory is free when its last handle is.
    pub fn free(&mut self, handle: f64, done: Marks) -> Outcome {
        let storage = self.view("free", "tensor", handle)?.storage;
        let index = slot_of(handle);
        let slot = &mut self.slots[index as usize];
        slot.view = None;
        slot.generation += 1;
        if slot.generation < GENERATIONS {
            self.free_slots.push_back(index);
        }
        self.live -= 1;
        let stored = &mut self.storages[storage as usize];
        stored.refs -= 1;
        if stored.refs == 0 {
            self.retire(storage, done);
        }
        Ok(())
    }

    pub fn view(&self, op: &str, input: &str, handle: f64) -> Outcome<&View> {
        let packed = handle as u64;
        let slot = self.slots.get(slot_of(handle) as usize);
        let runtime = (packed >> SLOT_BITS) % (1 << RUNTIME_BITS);
        let known =
            slot.filter(|slot| runtime == self.runtime && slot.generation == packed >> (SLOT_BITS + RUNTIME_BITS));
        known.and_then(|slot| slot.view.as_ref()).ok_or_else(|| {
            let why = match handle {
                0.0 => "no tensor",
                _ if runtime == self.runtime => "one that was disposed",
                _ => "one of another device",
            };
            refusal("handle", op, input, "a live tensor of this device", why)
        })
    }

    /// Commands of earlier lives of this memory that another stream than `stream` has still to finish.
    pub fn prior(&self, storage: u32) -> Marks {
        self.storages[storage as usize].prior
    }

    /// Notes that command `number` of `stream` uses the memory.
    pub fn touch(&mut self, storage: u32, stream: usize, number: u64) {
        self.storages[storage as usize].uses[stream] = number;
    }

    fn enter(&mut self, view: View) -> Outcome<f64> {
        let slot = match self.free_slots.pop_front() {
            Some(slot) => slot,
            None if self.slots.len() < 1 << SLOT_BITS => {
                self.slots.push(Slot {
                    generation: 1,
                    view: None,
                });
                self.slots.len() as u32 - 1
            }
            None => {
                let got = format!("{} (dispose what is no longer needed)", self.live);
                return Err(refusal(
                    "handle",
                    "alloc",
                    "tensor",
                    format!("at most {} live tensors", 1 << SLOT_BITS),
                    got,
                ));
            }
        };
        self.storages[view.storage as usize].refs += 1;
        self.live += 1;
        let entry = &mut self.slots[slot as usize];
        entry.view = Some(view);
        let packed = (((entry.generation << RUNTIME_BITS) | self.runtime) << SLOT_BITS) | u64::from(slot);
        Ok(packed as f64)
    }

    /// A free storage of this block size or a little more, or a new one.
    fn storage(&mut self, size: usize, done: Marks) -> u32 {
        self.leave_limbo(done);
        let fit = self
            .idle
            .range_mut(size..=size + size / 4)
            .find_map(|(_, free)| free.pop());
        let storage = fit.unwrap_or_else(|| {
            self.storages.push(Storage {
                block: self.arena.take(size),
                refs: 0,
                uses: [0; STREAMS],
                prior: [0; STREAMS],
            });
            self.storages.len() as u32 - 1
        });
        let stored = &mut self.storages[storage as usize];
        stored.prior = stored.uses;
        storage
    }

    fn retire(&mut self, storage: u32, done: Marks) {
        let stored = &self.storages[storage as usize];
        let busy = (0..STREAMS).filter(|s| stored.uses[*s] > done[*s]).count();
        if busy > 1 {
            self.limbo.push(storage);
        } else {
            self.idle.entry(stored.block.bytes()).or_default().push(storage);
        }
    }

    fn leave_limbo(&mut self, done: Marks) {
        for _ in 0..self.limbo.len() {
            let storage = self.limbo.remove(0);
            self.retire(storage, done);
        }
    }
}

impl Drop for Tensors {
    /// The streams have finished: they are dropped first.
    fn drop(&mut self) {
        for storage in self.storages.drain(..) {
            self.arena.give(storage.block);
        }
    }
}

fn slot_of(handle: f64) -> u32 {
    (handle as u64 % (1 << SLOT_BITS)) as u32
}
