//! Threads, streams and tensors of one rank: the implementation of the addon's functions. Lives on the JavaScript thread that opened it.

use crate::allocations;
use crate::args::{Args, Decoded};
use crate::command::Command;
use crate::fault::{Outcome, fault};
use crate::map_file::check_maps;
use crate::operands::{Named, Operands};
use crate::ops::OPS;
use crate::queue::{COMPUTE, STREAM_NAMES, STREAMS, Streams};
use crate::spans::Tag;
use crate::tensors::{Marks, Tensors};
use crate::transfer::{self, Answer};
use crate::view::Dtype;
use crate::{SpanTable, Stats};
use napi::bindgen_prelude::{Float64Array, TypedArray};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use turbogr_kernels::Ctx;
use turbogr_kernels::arena::Arena;
use turbogr_kernels::isa::Isa;

static OPENED: AtomicU64 = AtomicU64::new(0);

pub struct Runtime {
    /// Dropped first: no command runs when the memory is freed.
    streams: Streams,
    tensors: Tensors,
    arena: Arc<Arena>,
    threads: usize,
    isa: Isa,
    /// Labels of the next commands.
    tag: Tag,
    /// JavaScript's argument buffer, held by reference: written there, read here, both on one thread.
    values: Float64Array,
    /// The current call.
    command: Box<Command>,
    operands: Operands,
}

impl Runtime {
    /// Streams run concurrently, each with its own threads: `compute` with `threads`, `sparse` with `sparse_threads`, and `comm`,
    /// which mostly waits, with one.
    pub fn open(threads: [usize; 2], isa: Isa, values: Float64Array) -> Runtime {
        let arena = Arc::new(Arena::new());
        let [threads, sparse_threads] = threads;
        let contexts = [threads, sparse_threads, 1].map(|threads| Ctx::with(threads, isa, arena.clone()));
        Runtime {
            streams: Streams::start(contexts),
            tensors: Tensors::new(arena.clone(), OPENED.fetch_add(1, Ordering::Relaxed)),
            arena,
            threads,
            isa,
            tag: Tag::NONE,
            values,
            command: Box::new(Command::idle()),
            operands: Operands::default(),
        }
    }

    /// Like `alloc`, but zeros in a memory-mapped file in `folder`.
    pub fn alloc_mapped(&mut self, folder: &str, dtype: u32, rows: f64, cols: f64) -> Outcome<f64> {
        let (dtype, shape) = checked(dtype, rows, cols)?;
        self.tensors.alloc_mapped(folder, dtype, shape)
    }

    pub fn alloc(&mut self, dtype: u32, rows: f64, cols: f64, panels: bool) -> Outcome<f64> {
        let (dtype, shape) = checked(dtype, rows, cols)?;
        let done = self.done();
        let tensors = &self.tensors;
        self.streams
            .failures
            .keep(|life, storage| tensors.in_use(life, storage, done));
        self.tensors.alloc(dtype, shape, panels, done)
    }

    pub fn view(&mut self, handle: f64, from: u32, cols: u32) -> Outcome<f64> {
        self.tensors.columns(handle, from as usize, cols as usize)
    }

    pub fn range(&mut self, handle: f64, from: f64, count: f64) -> Outcome<f64> {
        self.tensors.range(handle, from as usize, count as usize)
    }

    pub fn free(&mut self, handle: f64) -> Outcome {
        let done = self.done();
        self.tensors.free(handle, done)
    }

    pub fn upload(&mut self, stream: u32, handle: f64, data: &TypedArray, finite: bool) -> Outcome {
        let stream = stream_index("upload", stream)?;
        check_maps("upload")?;
        self.operands.clear();
        let tensor = self.operands.write(&self.tensors, UPLOADED, handle)?;
        let staged = transfer::stage(&self.arena, &tensor, data, finite)?;
        transfer::unload(&mut self.command, tensor, staged);
        self.enqueue(stream);
        Ok(())
    }

    pub fn read(&mut self, stream: u32, handle: f64, answer: Answer) -> Outcome {
        let stream = stream_index("read", stream)?;
        self.operands.clear();
        let tensor = self.operands.read(&self.tensors, READ, handle)?;
        transfer::read(&mut self.command, tensor, answer);
        self.enqueue(stream);
        Ok(())
    }

    pub fn submit(&mut self, stream: u32, op: u32, count: u32) -> Outcome {
        let stream = stream_index("submit", stream)?;
        let Some(op) = OPS.get(op as usize) else {
            let expected = format!("a number below {}", OPS.len());
            return Err(fault("op", "submit", "op", expected, format!("{op}")));
        };
        let values: &[f64] = &self.values;
        let values = &values[..values.len().min(count as usize)];
        self.operands.clear();
        let decoded = Decoded {
            operands: &mut self.operands,
            command: &mut self.command,
        };
        let mut args = Args::new(op.name, values, &self.tensors, decoded);
        (op.decode)(&mut args)?;
        args.finish()?;
        self.enqueue(stream);
        Ok(())
    }

    /// Resolves when everything enqueued so far is done, on all streams.
    pub fn sync(&mut self, answer: Answer) -> Outcome {
        self.operands.clear();
        transfer::sync(&mut self.command, answer);
        let all = std::array::from_fn(|stream| self.streams.queues[stream].pushed());
        self.push(COMPUTE, all);
        Ok(())
    }

    pub fn tag(&mut self, lane: i32, stage: i32) {
        self.tag = Tag { lane, stage };
    }

    pub fn home(&mut self, stream: Option<u32>) -> Outcome {
        self.tensors.home = match stream {
            Some(stream) if stream as usize >= STREAMS => {
                return Err(fault(
                    "argument",
                    "home",
                    "stream",
                    "a stream's number",
                    format!("{stream}"),
                ));
            }
            stream => stream.map(|stream| stream as usize),
        };
        Ok(())
    }

    pub fn record_spans(&self, on: bool) {
        self.streams.queues.iter().for_each(|queue| queue.spans.switch(on));
    }

    pub fn spans(&self) -> SpanTable {
        let mut table = SpanTable::default();
        let mut names: Vec<&'static str> = Vec::new();
        for (stream, queue) in self.streams.queues.iter().enumerate() {
            table.lost += queue.spans.drain(|span| {
                let known = names.iter().position(|name| *name == span.name);
                let name = known.unwrap_or_else(|| {
                    names.push(span.name);
                    names.len() - 1
                });
                table.stream.push(stream as u32);
                table.name.push(name as u32);
                table.lane.push(span.tag.lane);
                table.stage.push(span.tag.stage);
                table.start.push(span.start as f64);
                table.end.push(span.end as f64);
            }) as u32;
        }
        table.names = names.into_iter().map(String::from).collect();
        table
    }

    pub fn stats(&self) -> Stats {
        let arena = &self.arena;
        Stats {
            threads: self.threads as u32,
            isa: self.isa.name().into(),
            tensors: self.tensors.live() as u32,
            reserved_bytes: arena.reserved_bytes() as f64,
            system_allocations: arena.system_allocations() as f64,
            worker_allocations: allocations::counted() as f64,
            commands: self.streams.queues.iter().map(|queue| queue.pushed() as f64).collect(),
        }
    }

    fn done(&self) -> Marks {
        std::array::from_fn(|stream| self.streams.queues[stream].done())
    }

    /// Enqueues the current command with the waits that its operands need.
    fn enqueue(&mut self, stream: usize) {
        let before = self.tensors.before(&self.operands);
        self.command.use_operands(&self.operands);
        let number = self.push(stream, before);
        self.tensors.note(&self.operands, stream, number);
    }

    /// Pushes the current command; it waits for those commands of `before` that are not done yet.
    fn push(&mut self, stream: usize, before: Marks) -> u64 {
        let queues = &self.streams.queues;
        self.command.after =
            std::array::from_fn(|other| match other != stream && queues[other].done() < before[other] {
                true => before[other],
                false => 0,
            });
        self.command.tag = self.tag;
        #[cfg(feature = "probes")]
        crate::probes::count_waits(&mut self.command.after);
        queues[stream].push(&mut self.command)
    }
}

const UPLOADED: Named = Named {
    op: "upload",
    input: "tensor",
};
const READ: Named = Named {
    op: "read",
    input: "tensor",
};

fn stream_index(verb: &str, stream: u32) -> Outcome<usize> {
    match (stream as usize) < STREAMS {
        true => Ok(stream as usize),
        false => Err(fault(
            "argument",
            verb,
            "stream",
            STREAM_NAMES.join(", "),
            format!("{stream}"),
        )),
    }
}

/// Dtype and shape as passed by JavaScript.
fn checked(dtype: u32, rows: f64, cols: f64) -> Outcome<(Dtype, [usize; 2])> {
    let dtype = Dtype::ALL.get(dtype as usize).copied();
    let dtype = dtype.ok_or_else(|| fault("dtype", "alloc", "dtype", "a dtype's number", "another number"))?;
    let size = |input, value: f64| match value >= 0.0 && value.fract() == 0.0 && value < (1u64 << 40) as f64 {
        true => Ok(value as usize),
        false => Err(fault("shape", "alloc", input, "a whole number", format!("{value}"))),
    };
    Ok((dtype, [size("rows", rows)?, size("cols", cols)?]))
}
