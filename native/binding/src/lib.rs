//! The addon's surface: about ten verbs over integer handles, devices included (plain functions: a class instance would
//! cost more per call than everything else). No arithmetic, no policy.
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
mod runtime;
mod tensors;
mod transfer;

use napi::Env;
use napi::bindgen_prelude::{ArrayBuffer, Either, Float64Array, Object, TypedArray};
use napi_derive::napi;
use refusal::{Outcome, Refusal, panicked, refusal};
use runtime::Runtime;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use transfer::{Answer, Reply};

#[global_allocator]
static ALLOCATOR: allocations::Counting = allocations::Counting;

thread_local! {
    /// The devices of this JavaScript thread, by number; a closed one leaves a hole.
    static DEVICES: RefCell<Vec<Option<Runtime>>> = const { RefCell::new(Vec::new()) };
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

/// Number of a new device with `threads` threads in all, the compute stream's own included. `portable` leaves the CPU's
/// vector instructions unused. `values` is where `submit` will find its arguments.
#[napi]
pub fn open(threads: u32, portable: bool, values: Float64Array) -> Either<u32, Refusal> {
    allocations::exempt_this_thread();
    either(guard("open", || {
        let runtime = Runtime::open(threads as usize, portable, values);
        Ok(DEVICES.with_borrow_mut(|devices| {
            devices.push(Some(runtime));
            devices.len() as u32 - 1
        }))
    }))
}

/// Drops what was not yet begun, gives everything back. Promises still open resolve to a refusal, as do later calls.
#[napi]
pub fn close(device: u32) {
    let runtime = DEVICES.with_borrow_mut(|devices| devices.get_mut(device as usize).and_then(Option::take));
    drop(runtime);
}

/// Handle of a new `rows` x `cols` tensor, in rows or in panels. Contents are unspecified.
#[napi]
pub fn alloc(device: u32, dtype: u32, rows: f64, cols: f64, panels: bool) -> Either<f64, Refusal> {
    either(with(device, "alloc", |runtime| {
        runtime.alloc(dtype, rows, cols, panels)
    }))
}

/// Handle of columns `[from, from + cols)` of a tensor.
#[napi]
pub fn view(device: u32, handle: f64, from: u32, cols: u32) -> Either<f64, Refusal> {
    either(with(device, "view", |runtime| runtime.view(handle, from, cols)))
}

/// Forgets a handle.
#[napi]
pub fn free(device: u32, handle: f64) -> Option<Refusal> {
    with(device, "free", |runtime| runtime.free(handle)).err()
}

/// Copies `data` now; the tensor has it when the stream gets there. `finite` refuses NaN and infinity.
#[napi]
pub fn upload(device: u32, stream: u32, handle: f64, data: TypedArray, finite: bool) -> Option<Refusal> {
    with(device, "upload", |runtime| {
        runtime.upload(stream, handle, &data, finite)
    })
    .err()
}

/// Promise of the tensor's bytes as they are when the stream gets there.
#[napi(ts_return_type = "Promise<ArrayBuffer | Refusal>")]
pub fn read<'env>(env: &'env Env, device: u32, stream: u32, handle: f64) -> napi::Result<Object<'env>> {
    promise(env, |answer| {
        with(device, "read", |runtime| runtime.read(stream, handle, answer))
    })
}

/// Enqueues op number `op` with the first `count` of the device's values.
#[napi]
pub fn submit(device: u32, stream: u32, op: u32, count: u32) -> Option<Refusal> {
    with(device, "submit", |runtime| runtime.submit(stream, op, count)).err()
}

/// An event: the point that `stream`'s enqueued commands have reached.
#[napi]
pub fn record(device: u32, stream: u32) -> Either<f64, Refusal> {
    either(with(device, "record", |runtime| runtime.record(stream)))
}

/// Makes `stream` wait until `event` has been reached.
#[napi]
pub fn wait(device: u32, stream: u32, event: f64) -> Option<Refusal> {
    with(device, "wait", |runtime| runtime.wait(stream, event)).err()
}

/// Promise that settles when all that `stream` was given is done: to nothing, or to what failed.
#[napi(ts_return_type = "Promise<void | Refusal>")]
pub fn sync<'env>(env: &'env Env, device: u32, stream: u32) -> napi::Result<Object<'env>> {
    promise(env, |answer| {
        with(device, "sync", |runtime| runtime.sync(stream, answer))
    })
}

#[napi]
pub fn stats(device: u32) -> Either<Stats, Refusal> {
    either(with(device, "stats", |runtime| Ok(runtime.stats())))
}

fn with<T>(device: u32, verb: &'static str, work: impl FnOnce(&mut Runtime) -> Outcome<T>) -> Outcome<T> {
    DEVICES.with_borrow_mut(|devices| match devices.get_mut(device as usize) {
        Some(Some(runtime)) => guard(verb, || work(runtime)),
        _ => Err(refusal(
            "closed",
            verb,
            "device",
            "an open device",
            "one that was closed",
        )),
    })
}

fn promise<'env>(env: &'env Env, ask: impl FnOnce(Answer) -> Outcome) -> napi::Result<Object<'env>> {
    let (answer, promise): (Answer, Object) = env.create_deferred()?;
    let kept = answer.clone();
    if let Err(refused) = ask(answer) {
        transfer::resolve(kept, Reply::Refused(refused));
    }
    Ok(promise)
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
