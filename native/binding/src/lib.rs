//! The addon's surface: about ten verbs over integer handles. No arithmetic, no policy.
//!
//! Errors cross as data: a verb returns its result or a [`Refusal`]; a promise resolves to one. Nothing throws, and a
//! panic is caught and becomes a refusal of kind `panic`.

mod allocations;
mod args;
mod command;
mod map_file;
mod ops;
mod queue;
mod refusal;
mod tensors;
mod transfer;

use args::Args;
use command::Command;
use napi::Env;
use napi::bindgen_prelude::{ArrayBuffer, Either, Object, TypedArray};
use napi_derive::napi;
use queue::{STREAM_NAMES, STREAMS, Streams};
use refusal::{Outcome, Refusal, panicked, refusal};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tensors::{Dtype, Marks, Tensors};
use transfer::Answer;
use turbogr_kernels::Ctx;
use turbogr_kernels::arena::Arena;
use turbogr_kernels::isa::Isa;

#[global_allocator]
static ALLOCATOR: allocations::Counting = allocations::Counting;

static RUNTIMES: AtomicU64 = AtomicU64::new(0);

/// Names of the ops, in the order of their numbers.
#[napi]
pub fn op_names() -> Vec<&'static str> {
    ops::OPS.iter().map(|op| op.name).collect()
}

/// A file's bytes, mapped.
#[napi]
pub fn map_file<'env>(env: &'env Env, path: String) -> Either<ArrayBuffer<'env>, Refusal> {
    either(guard("map_file", || map_file::map_file(env, &path)))
}

#[napi(object)]
pub struct Stats {
    pub threads: u32,
    pub isa: String,
    /// Handles alive, views included.
    pub tensors: u32,
    /// Bytes asked from the system, in use or cached for reuse.
    pub reserved_bytes: f64,
    /// How often the system was asked for memory.
    pub system_allocations: f64,
    /// Heap allocations on stream and worker threads.
    pub worker_allocations: f64,
    /// Commands enqueued, by stream.
    pub commands: Vec<f64>,
}

struct Inner {
    /// Dropped first: finishes all commands before the memory goes.
    streams: Streams,
    tensors: Tensors,
    touched: Vec<u32>,
    cx: Arc<Ctx>,
}

/// Threads, streams and tensors of one rank.
#[napi]
pub struct Runtime {
    inner: Option<Inner>,
}

#[napi]
impl Runtime {
    /// `threads` in all, the compute stream's own included. `portable` leaves the CPU's vector instructions unused.
    #[napi(factory)]
    pub fn open(threads: u32, portable: bool) -> Runtime {
        allocations::exempt_this_thread();
        let isa = if portable { Isa::Portable } else { Isa::detect() };
        let arena = Arc::new(Arena::new());
        let cx = Arc::new(Ctx::with(threads as usize, isa, arena.clone()));
        Runtime {
            inner: Some(Inner {
                streams: Streams::start(&cx),
                tensors: Tensors::new(arena, RUNTIMES.fetch_add(1, Ordering::Relaxed)),
                touched: Vec::with_capacity(64),
                cx,
            }),
        }
    }

    /// Finishes what was enqueued and gives everything back. Later calls are refused.
    #[napi]
    pub fn close(&mut self) {
        self.inner = None;
    }

    /// Handle of a new `rows` x `cols` tensor. Contents are unspecified.
    #[napi]
    pub fn alloc(&mut self, dtype: u32, rows: f64, cols: f64) -> Either<f64, Refusal> {
        either(self.with("alloc", |inner| {
            let dtype = Dtype::ALL.get(dtype as usize).copied();
            let dtype =
                dtype.ok_or_else(|| refusal("dtype", "alloc", "dtype", "a dtype's number", "another number"))?;
            let size = |input, value: f64| match value >= 0.0 && value.fract() == 0.0 && value < (1u64 << 40) as f64 {
                true => Ok(value as usize),
                false => Err(refusal("shape", "alloc", input, "a whole number", format!("{value}"))),
            };
            let done = inner.done();
            inner
                .tensors
                .alloc(dtype, size("rows", rows)?, size("cols", cols)?, done)
        }))
    }

    /// Handle of columns `[from, from + cols)` of a tensor.
    #[napi]
    pub fn view(&mut self, handle: f64, from: u32, cols: u32) -> Either<f64, Refusal> {
        either(self.with("view", |inner| {
            inner.tensors.columns(handle, from as usize, cols as usize)
        }))
    }

    /// Forgets a handle.
    #[napi]
    pub fn free(&mut self, handle: f64) -> Option<Refusal> {
        let freed = self.with("free", |inner| {
            let done = inner.done();
            inner.tensors.free(handle, done)
        });
        freed.err()
    }

    /// Copies `data` now; the tensor has it when the stream gets there.
    #[napi]
    pub fn upload(&mut self, stream: u32, handle: f64, data: TypedArray, finite: bool) -> Option<Refusal> {
        let uploaded = self.with("upload", |inner| {
            let view = *inner.tensors.view("upload", "tensor", handle)?;
            let staged = transfer::stage(&inner.cx.arena, &view, &data, finite)?;
            inner.touched.clear();
            inner.touched.push(view.storage);
            inner.enqueue(stream, transfer::unload(view, staged))
        });
        uploaded.err()
    }

    /// Promise of the tensor's bytes as they are when the stream gets there.
    #[napi(ts_return_type = "Promise<ArrayBuffer | Refusal>")]
    pub fn read<'env>(&mut self, env: &'env Env, stream: u32, handle: f64) -> napi::Result<Object<'env>> {
        let (answer, promise): (Answer, Object) = env.create_deferred()?;
        let kept = answer.clone();
        let asked = self.with("read", |inner| {
            let view = *inner.tensors.view("read", "tensor", handle)?;
            inner.touched.clear();
            inner.touched.push(view.storage);
            inner.enqueue(stream, transfer::read(view, answer))
        });
        if let Err(refused) = asked {
            transfer::resolve(kept, transfer::Reply::Refused(refused));
        }
        Ok(promise)
    }

    /// Enqueues op number `op` with the first `count` of `values`.
    #[napi]
    pub fn submit(&mut self, stream: u32, op: u32, values: &[f64], count: u32) -> Option<Refusal> {
        let submitted = self.with("submit", |inner| {
            let Some(op) = ops::OPS.get(op as usize) else {
                return Err(refusal(
                    "op",
                    "submit",
                    "op",
                    format!("a number below {}", ops::OPS.len()),
                    format!("{op}"),
                ));
            };
            let values = &values[..(count as usize).min(values.len())];
            inner.touched.clear();
            let mut args = Args::new(op.name, values, &inner.tensors, &mut inner.touched);
            let command = (op.decode)(&mut args)?;
            args.finish()?;
            inner.enqueue(stream, command)
        });
        submitted.err()
    }

    /// An event: the point that `stream`'s enqueued commands have reached.
    #[napi]
    pub fn record(&mut self, stream: u32) -> Either<f64, Refusal> {
        either(self.with("record", |inner| {
            let stream = stream_index(stream)?;
            Ok((inner.streams.queues[stream].pushed() * STREAMS as u64 + stream as u64) as f64)
        }))
    }

    /// Makes `stream` wait until `event` has been reached.
    #[napi]
    pub fn wait(&mut self, stream: u32, event: f64) -> Option<Refusal> {
        let waiting = self.with("wait", |inner| {
            let (on, number) = ((event as u64 % STREAMS as u64) as usize, event as u64 / STREAMS as u64);
            if on != stream_index(stream)? {
                inner.streams.queues[stream as usize]
                    .push(Command::work("wait", move |site| site.wait_for_results(on, number)));
            }
            Ok(())
        });
        waiting.err()
    }

    /// Promise that settles when all that `stream` was given is done: to nothing, or to what failed.
    #[napi(ts_return_type = "Promise<void | Refusal>")]
    pub fn sync<'env>(&mut self, env: &'env Env, stream: u32) -> napi::Result<Object<'env>> {
        let (answer, promise): (Answer, Object) = env.create_deferred()?;
        let kept = answer.clone();
        let asked = self.with("sync", |inner| {
            inner.streams.queues[stream_index(stream)?].push(transfer::sync(answer));
            Ok(())
        });
        if let Err(refused) = asked {
            transfer::resolve(kept, transfer::Reply::Refused(refused));
        }
        Ok(promise)
    }

    #[napi]
    pub fn stats(&mut self) -> Either<Stats, Refusal> {
        either(self.with("stats", |inner| {
            let arena = &inner.cx.arena;
            Ok(Stats {
                threads: inner.cx.pool.threads() as u32,
                isa: inner.cx.isa.name().into(),
                tensors: inner.tensors.live() as u32,
                reserved_bytes: arena.reserved_bytes() as f64,
                system_allocations: arena.system_allocations() as f64,
                worker_allocations: allocations::counted() as f64,
                commands: inner.streams.queues.iter().map(|queue| queue.pushed() as f64).collect(),
            })
        }))
    }

    fn with<T>(&mut self, verb: &'static str, work: impl FnOnce(&mut Inner) -> Outcome<T>) -> Outcome<T> {
        let inner = self.inner.as_mut();
        guard(verb, || match inner {
            Some(inner) => work(inner),
            None => Err(refusal(
                "closed",
                verb,
                "device",
                "an open device",
                "one that was closed",
            )),
        })
    }
}

impl Inner {
    fn done(&self) -> Marks {
        std::array::from_fn(|stream| self.streams.queues[stream].done())
    }

    /// Enqueues a command that uses the `touched` memory, behind what earlier lives of that memory still wait for.
    fn enqueue(&mut self, stream: u32, command: Command) -> Outcome {
        let stream = stream_index(stream)?;
        let queue = &self.streams.queues[stream];
        let mut earlier: Marks = [0; STREAMS];
        for storage in &self.touched {
            let prior = self.tensors.prior(*storage);
            (0..STREAMS).for_each(|other| earlier[other] = earlier[other].max(prior[other]));
        }
        for (other, number) in earlier.into_iter().enumerate() {
            if other != stream && self.streams.queues[other].done() < number {
                queue.push(Command::answer("wait", move |site| {
                    site.wait(other, number);
                    Ok(())
                }));
            }
        }
        let number = queue.push(command);
        for storage in &self.touched {
            self.tensors.touch(*storage, stream, number);
        }
        Ok(())
    }
}

fn stream_index(stream: u32) -> Outcome<usize> {
    match (stream as usize) < STREAMS {
        true => Ok(stream as usize),
        false => Err(refusal(
            "argument",
            "submit",
            "stream",
            STREAM_NAMES.join(", "),
            format!("{stream}"),
        )),
    }
}

fn guard<T>(verb: &'static str, work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| Err(panicked(verb, payload.as_ref())))
}

fn either<T>(outcome: Outcome<T>) -> Either<T, Refusal> {
    match outcome {
        Ok(value) => Either::A(value),
        Err(refused) => Either::B(refused),
    }
}
