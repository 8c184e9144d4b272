//! Threads, streams and tensors of one rank: what the verbs do. Lives on the JavaScript thread that opened it.

use crate::Stats;
use crate::allocations;
use crate::args::{Args, Decoded};
use crate::command::Command;
use crate::ops::OPS;
use crate::queue::{STREAM_NAMES, STREAMS, Streams};
use crate::refusal::{Outcome, refusal};
use crate::tensors::{Dtype, Marks, Tensors, View};
use crate::transfer::{self, Answer};
use napi::bindgen_prelude::{Float64Array, TypedArray};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use turbogr_kernels::Ctx;
use turbogr_kernels::arena::Arena;
use turbogr_kernels::isa::Isa;

static OPENED: AtomicU64 = AtomicU64::new(0);

pub struct Runtime {
    /// Dropped first: no command runs any more when the memory goes.
    streams: Streams,
    tensors: Tensors,
    cx: Arc<Ctx>,
    /// JavaScript's argument buffer, held by reference: written there, read here, both on one thread.
    values: Float64Array,
    /// The call at hand: its command, and the memory it uses.
    command: Box<Command>,
    touched: Vec<u32>,
}

impl Runtime {
    pub fn open(threads: usize, portable: bool, values: Float64Array) -> Runtime {
        let isa = if portable { Isa::Portable } else { Isa::detect() };
        let arena = Arc::new(Arena::new());
        let cx = Arc::new(Ctx::with(threads, isa, arena.clone()));
        Runtime {
            streams: Streams::start(&cx),
            tensors: Tensors::new(arena, OPENED.fetch_add(1, Ordering::Relaxed)),
            cx,
            values,
            command: Box::new(Command::idle()),
            touched: Vec::with_capacity(64),
        }
    }

    pub fn alloc(&mut self, dtype: u32, rows: f64, cols: f64, panels: bool) -> Outcome<f64> {
        let dtype = Dtype::ALL.get(dtype as usize).copied();
        let dtype = dtype.ok_or_else(|| refusal("dtype", "alloc", "dtype", "a dtype's number", "another number"))?;
        let size = |input, value: f64| match value >= 0.0 && value.fract() == 0.0 && value < (1u64 << 40) as f64 {
            true => Ok(value as usize),
            false => Err(refusal("shape", "alloc", input, "a whole number", format!("{value}"))),
        };
        let (rows, cols) = (size("rows", rows)?, size("cols", cols)?);
        let done = self.done();
        self.tensors.alloc(dtype, [rows, cols], panels, done)
    }

    pub fn view(&mut self, handle: f64, from: u32, cols: u32) -> Outcome<f64> {
        self.tensors.columns(handle, from as usize, cols as usize)
    }

    pub fn free(&mut self, handle: f64) -> Outcome {
        let done = self.done();
        self.tensors.free(handle, done)
    }

    pub fn upload(&mut self, stream: u32, handle: f64, data: &TypedArray, finite: bool) -> Outcome {
        let stream = stream_index("upload", stream)?;
        let view = self.touch_only("upload", handle)?;
        let staged = transfer::stage(&self.cx.arena, &view, data, finite)?;
        transfer::unload(&mut self.command, view, staged);
        self.enqueue(stream);
        Ok(())
    }

    pub fn read(&mut self, stream: u32, handle: f64, answer: Answer) -> Outcome {
        let stream = stream_index("read", stream)?;
        let view = self.touch_only("read", handle)?;
        transfer::read(&mut self.command, view, answer);
        self.enqueue(stream);
        Ok(())
    }

    pub fn submit(&mut self, stream: u32, op: u32, count: u32) -> Outcome {
        let stream = stream_index("submit", stream)?;
        let Some(op) = OPS.get(op as usize) else {
            let expected = format!("a number below {}", OPS.len());
            return Err(refusal("op", "submit", "op", expected, format!("{op}")));
        };
        let values: &[f64] = &self.values;
        let values = &values[..values.len().min(count as usize)];
        self.touched.clear();
        let decoded = Decoded {
            touched: &mut self.touched,
            command: &mut self.command,
        };
        let mut args = Args::new(op.name, values, &self.tensors, decoded);
        (op.decode)(&mut args)?;
        args.finish()?;
        self.enqueue(stream);
        Ok(())
    }

    pub fn record(&mut self, stream: u32) -> Outcome<f64> {
        let stream = stream_index("record", stream)?;
        let number = self.streams.queues[stream].pushed();
        Ok((number * STREAMS as u64 + stream as u64) as f64)
    }

    pub fn wait(&mut self, stream: u32, event: f64) -> Outcome {
        let stream = stream_index("wait", stream)?;
        let (on, number) = ((event as u64 % STREAMS as u64) as usize, event as u64 / STREAMS as u64);
        if on != stream {
            self.command.work("wait", move |site| site.wait_for_results(on, number));
            self.streams.queues[stream].push(&mut self.command);
        }
        Ok(())
    }

    pub fn sync(&mut self, stream: u32, answer: Answer) -> Outcome {
        let stream = stream_index("sync", stream)?;
        transfer::sync(&mut self.command, answer);
        self.streams.queues[stream].push(&mut self.command);
        Ok(())
    }

    pub fn stats(&self) -> Stats {
        let arena = &self.cx.arena;
        Stats {
            threads: self.cx.pool.threads() as u32,
            isa: self.cx.isa.name().into(),
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

    /// The one tensor that a transfer uses.
    fn touch_only(&mut self, verb: &'static str, handle: f64) -> Outcome<View> {
        let view = *self.tensors.view(verb, "tensor", handle)?;
        self.touched.clear();
        self.touched.push(view.storage);
        Ok(view)
    }

    /// Enqueues the command at hand, behind what earlier lives of the memory it uses still wait for on other streams.
    fn enqueue(&mut self, stream: usize) {
        let queue = &self.streams.queues[stream];
        let mut earlier: Marks = [0; STREAMS];
        for storage in &self.touched {
            let prior = self.tensors.prior(*storage);
            (0..STREAMS).for_each(|other| earlier[other] = earlier[other].max(prior[other]));
        }
        for (other, number) in earlier.into_iter().enumerate() {
            if other != stream && self.streams.queues[other].done() < number {
                let mut wait = Command::idle();
                wait.answer("wait", move |site| {
                    site.wait(other, number);
                    Ok(())
                });
                queue.push(&mut wait);
            }
        }
        let number = queue.push(&mut self.command);
        for storage in &self.touched {
            self.tensors.touch(*storage, stream, number);
        }
    }
}

fn stream_index(verb: &str, stream: u32) -> Outcome<usize> {
    match (stream as usize) < STREAMS {
        true => Ok(stream as usize),
        false => Err(refusal(
            "argument",
            verb,
            "stream",
            STREAM_NAMES.join(", "),
            format!("{stream}"),
        )),
    }
}
