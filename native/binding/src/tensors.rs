//! Tensors by integer handle, and the memory under them. Lives on the JavaScript thread alone.
//!
//! A handle packs slot, runtime and generation into 53 bits, so a disposed or foreign one is recognised. 0 is "none".
//!
//! Each storage remembers the last command of every stream that wrote it and that read it. A command waits for writers of its
//! inputs, and for writers and readers of its outputs, on other streams.
//!
//! Memory is reused in stream order, like in a caching GPU allocator: a freed block may be given to the next tensor at once
//! although commands on it are still pending, because all earlier uses count as writes to wait for. Blocks that several streams
//! still use are kept in limbo, so that reuse does not synchronise those streams. With a `home` stream set, new tensors get no
//! block that another stream still uses.

use crate::fault::{Outcome, fault, out_of_memory};
use crate::mapped_memory::MappedMemory;
use crate::operands::Operands;
use crate::queue::STREAMS;
use crate::view::{Dtype, View};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use turbogr_kernels::Panels;
use turbogr_kernels::arena::{Arena, Block, block_size};

/// Command numbers by stream.
pub type Marks = [u64; STREAMS];

/// Location of a storage's bytes.
enum Memory {
    Block(Block),
    Mapped(MappedMemory),
    /// A mapping that was freed.
    Gone,
}

impl Memory {
    fn ptr(&self) -> *mut u8 {
        match self {
            Memory::Block(block) => block.ptr(),
            Memory::Mapped(mapped) => mapped.ptr(),
            Memory::Gone => unreachable!("no handle looks at it"),
        }
    }
}

struct Storage {
    memory: Memory,
    /// Number of handles to it.
    refs: u32,
    /// Number of its current allocation; numbers are never reused.
    life: u64,
    /// The last command of each stream that writes it, or used it in an earlier life.
    written: Marks,
    /// The last command of each stream that reads it in this life.
    read: Marks,
}

impl Storage {
    /// The last command of each stream that uses it.
    fn uses(&self) -> Marks {
        latest(self.written, self.read)
    }
}

fn latest(a: Marks, b: Marks) -> Marks {
    std::array::from_fn(|stream| a[stream].max(b[stream]))
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
    /// FIFO, so that generations of a slot wrap around as late as possible.
    free_slots: VecDeque<u32>,
    storages: Vec<Storage>,
    /// Free storages by block size.
    idle: BTreeMap<usize, Vec<u32>>,
    limbo: Vec<u32>,
    /// The stream that new tensors belong to, if set.
    pub home: Option<usize>,
    live: usize,
    /// Allocations so far.
    lives: u64,
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
            home: None,
            live: 0,
            lives: 0,
        }
    }

    /// Live handles, including views.
    pub fn live(&self) -> usize {
        self.live
    }

    /// A new tensor; its contents are unspecified. `done` is what each stream has finished.
    pub fn alloc(&mut self, dtype: Dtype, [rows, cols]: [usize; 2], in_panels: bool, done: Marks) -> Outcome<f64> {
        if in_panels && !(dtype == Dtype::F32 && cols.is_multiple_of(Panels::WIDTH)) {
            let expected = format!("an f32 tensor whose columns are a multiple of {}", Panels::WIDTH);
            let got = format!("{cols} columns of {}", dtype.name());
            return Err(fault("shape", "alloc", "panels", expected, got));
        }
        // One panel is a plain matrix.
        let in_panels = in_panels && cols > Panels::WIDTH;
        let bytes = bytes_of(dtype, [rows + if in_panels { Panels::SPARE } else { 0 }, cols])?;
        let storage = self
            .storage(block_size(bytes), done)
            .ok_or_else(|| out_of_memory("alloc", bytes))?;
        let view = View {
            ptr: self.storages[storage as usize].memory.ptr(),
            dtype,
            rows,
            cols,
            stride: if in_panels { Panels::WIDTH } else { cols },
            in_panels,
            storage,
        };
        self.enter(view)
    }

    /// A new zero tensor in a memory-mapped file in `folder`.
    pub fn alloc_mapped(&mut self, folder: &str, dtype: Dtype, [rows, cols]: [usize; 2]) -> Outcome<f64> {
        let memory = Memory::Mapped(MappedMemory::new(folder, bytes_of(dtype, [rows, cols])?)?);
        let ptr = memory.ptr();
        let storage = self.add(memory);
        self.enter(View {
            ptr,
            dtype,
            rows,
            cols,
            stride: cols,
            in_panels: false,
            storage,
        })
    }

    /// Columns `[from, from + cols)` as a view.
    pub fn columns(&mut self, handle: f64, from: usize, cols: usize) -> Outcome<f64> {
        let part = self.view("view", "tensor", handle)?.columns(from, cols)?;
        self.enter(part)
    }

    /// Elements `[from, from + count)` of a row-major tensor, as a view of one row.
    pub fn range(&mut self, handle: f64, from: usize, count: usize) -> Outcome<f64> {
        let part = self.view("range", "tensor", handle)?.range(from, count)?;
        self.enter(part)
    }

    /// Disposes of a handle; the memory is freed with its last handle.
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
            fault("handle", op, input, "a live tensor of this device", why)
        })
    }

    /// Number of the allocation that has this storage.
    pub fn life(&self, storage: u32) -> u64 {
        self.storages[storage as usize].life
    }

    /// The last commands, by stream, that must be done before one with these operands runs.
    pub fn before(&self, operands: &Operands) -> Marks {
        operands.iter().fold(Marks::default(), |marks, operand| {
            let storage = &self.storages[operand.storage as usize];
            let conflicts = if operand.written {
                storage.uses()
            } else {
                storage.written
            };
            latest(marks, conflicts)
        })
    }

    /// Records that command `number` of `stream` has these operands. A writer has waited for all earlier uses, so waiting for it
    /// includes waiting for those.
    pub fn note(&mut self, operands: &Operands, stream: usize, number: u64) {
        for operand in operands.iter() {
            let storage = &mut self.storages[operand.storage as usize];
            if operand.written {
                storage.written = Marks::default();
                storage.written[stream] = number;
                storage.read = Marks::default();
            } else {
                storage.read[stream] = number;
            }
        }
    }

    /// Whether commands that use this allocation may still be enqueued or running.
    pub fn in_use(&self, life: u64, storage: u32, done: Marks) -> bool {
        let stored = &self.storages[storage as usize];
        let pending = (0..STREAMS).any(|stream| stored.uses()[stream] > done[stream]);
        pending || (stored.life == life && stored.refs > 0)
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
                return Err(fault(
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

    /// A free storage of this block size or a little more, or a new one; none when the system has no more memory.
    fn storage(&mut self, size: usize, done: Marks) -> Option<u32> {
        self.leave_limbo(done);
        let (home, storages) = (self.home, &self.storages);
        let suits = |storage: &u32| {
            let uses = storages[*storage as usize].uses();
            home.is_none_or(|home| (0..STREAMS).all(|stream| stream == home || uses[stream] <= done[stream]))
        };
        let fit = self
            .idle
            .range_mut(size..=size + size / 4)
            .find_map(|(_, free)| Some(free.remove(free.iter().rposition(suits)?)));
        let storage = match fit {
            Some(storage) => storage,
            None => {
                let block = self.arena.try_take(size)?;
                self.add(Memory::Block(block))
            }
        };
        self.lives += 1;
        let stored = &mut self.storages[storage as usize];
        stored.life = self.lives;
        stored.written = stored.uses();
        stored.read = Marks::default();
        Some(storage)
    }

    fn add(&mut self, memory: Memory) -> u32 {
        self.lives += 1;
        self.storages.push(Storage {
            memory,
            refs: 0,
            life: self.lives,
            written: Marks::default(),
            read: Marks::default(),
        });
        self.storages.len() as u32 - 1
    }

    fn retire(&mut self, storage: u32, done: Marks) {
        let stored = &mut self.storages[storage as usize];
        let busy = (0..STREAMS).filter(|s| stored.uses()[*s] > done[*s]).count();
        match &stored.memory {
            Memory::Block(block) if busy <= 1 => self.idle.entry(block.bytes()).or_default().push(storage),
            // A mapping is freed as soon as it is unused; it is never reused.
            Memory::Mapped(_) if busy == 0 => stored.memory = Memory::Gone,
            _ => self.limbo.push(storage),
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
    /// The streams were dropped first, so they have finished.
    fn drop(&mut self) {
        for storage in self.storages.drain(..) {
            if let Memory::Block(block) = storage.memory {
                self.arena.give(block);
            }
        }
    }
}

fn bytes_of(dtype: Dtype, [rows, cols]: [usize; 2]) -> Outcome<usize> {
    let bytes = rows.checked_mul(cols).and_then(|n| n.checked_mul(dtype.bytes()));
    bytes.filter(|bytes| *bytes < 1 << 46).ok_or_else(|| {
        let got = format!("{rows} x {cols} {}", dtype.name());
        fault("shape", "alloc", "shape", "a tensor that fits in memory", got)
    })
}

fn slot_of(handle: f64) -> u32 {
    (handle as u64 % (1 << SLOT_BITS)) as u32
}
