//! The addon's interface: functions over integer handles, also for devices (a class instance would cost more per call than
//! everything else). No arithmetic, no policy.
//!
//! Errors are data: a function returns its result or a [`NativeFault`]; a promise resolves to one. Nothing throws; a panic is
//! caught and becomes a fault of kind `panic`.

mod allocations;
mod args;
mod command;
mod failures;
mod fault;
mod map_file;
mod mapped_memory;
mod operands;
mod ops;
#[cfg(feature = "probes")]
mod probes;
mod queue;
mod ranks;
mod runtime;
mod spans;
mod tensors;
mod transfer;
mod view;

use fault::{NativeFault, Outcome, fault, panicked};
use napi::Env;
use napi::bindgen_prelude::{ArrayBuffer, Either, Float64Array, Object, TypedArray, Uint8Array};
use napi_derive::napi;
use runtime::Runtime;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use transfer::{Answer, Reply};
use turbogr_kernels::isa::{Isa, available};

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
    /// Live handles, including views.
    pub tensors: u32,
    /// Bytes allocated from the system, in use or cached for reuse.
    pub reserved_bytes: f64,
    /// Number of system allocations.
    pub system_allocations: f64,
    /// Heap allocations on stream and worker threads.
    pub worker_allocations: f64,
    /// Commands enqueued, by stream.
    pub commands: Vec<f64>,
}

/// Spans as columns; times in nanoseconds.
#[napi(object)]
#[derive(Default)]
pub struct SpanTable {
    pub names: Vec<String>,
    pub stream: Vec<u32>,
    /// Index into `names`.
    pub name: Vec<u32>,
    pub lane: Vec<i32>,
    pub stage: Vec<i32>,
    pub start: Vec<f64>,
    pub end: Vec<f64>,
    /// Spans that were overwritten before they were read.
    pub lost: u32,
}

/// Names of the ops, in the order of their numbers.
#[napi]
pub fn op_names() -> Vec<&'static str> {
    ops::OPS.iter().map(|op| op.name).collect()
}

/// The position of this process among the ranks.
#[napi(object)]
pub struct RankWorld {
    pub rank: u32,
    pub size: u32,
    /// MPI thread support level, 0 to 3.
    pub thread_level: i32,
    pub library: String,
    /// Host name of each rank.
    pub hosts: Vec<String>,
}

/// A communicator from a member's point of view; -1 for a rank that joined none.
#[napi(object)]
pub struct RankGroup {
    pub comm: i32,
    pub rank: i32,
    pub size: i32,
}

/// Joins the world of ranks through the shim at `path`; returns when every rank has. Once per process.
#[napi]
pub fn rank_open(path: String) -> Either<RankWorld, NativeFault> {
    either(guard("rank_open", || ranks::open(&path)).map(|world| RankWorld {
        rank: world.rank as u32,
        size: world.size as u32,
        thread_level: world.provided,
        library: world.library,
        hosts: world.hosts,
    }))
}

/// Splits `comm` by colour; without a colour by node. Collective.
#[napi]
pub fn rank_split(comm: i32, colour: Option<i32>, key: i32) -> Either<RankGroup, NativeFault> {
    either(
        guard("rank_split", || ranks::split(comm, colour, key)).map(|group| RankGroup {
            comm: group.comm,
            rank: group.rank,
            size: group.size,
        }),
    )
}

/// Promise of the bytes of all `size` ranks of `comm`, preceded by their lengths (i64).
#[napi(ts_return_type = "Promise<ArrayBuffer | NativeFault>")]
pub fn rank_gather<'env>(env: &'env Env, comm: i32, size: u32, data: Uint8Array) -> napi::Result<Object<'env>> {
    let data = data.to_vec();
    promise(env, |answer| {
        guard("rank_gather", || ranks::gather(comm, size as usize, data, answer))
    })
}

/// Watches over this rank and its neighbour: `patience` seconds without `rank_pulse`, or a silent neighbour, end the job
/// with `code` and one line on stderr (JSON for a launcher).
#[napi]
pub fn rank_watch(patience: f64, json: bool, code: i32) -> Option<NativeFault> {
    guard("rank_watch", || {
        ranks::watch(Duration::from_secs_f64(patience), json, code)
    })
    .err()
}

/// Signals that the JavaScript thread is alive.
#[napi]
pub fn rank_pulse() {
    ranks::pulse();
}

/// Ends the job of all ranks at once. Does not return.
#[napi]
pub fn rank_abort(code: i32) {
    ranks::abort(code);
}

/// Leaves the world together with all other ranks.
#[napi]
pub fn rank_close() -> Option<NativeFault> {
    guard("rank_close", ranks::close).err()
}

/// A file's bytes, mapped.
#[napi]
pub fn map_file<'env>(env: &'env Env, path: String) -> Either<ArrayBuffer<'env>, NativeFault> {
    either(guard("map_file", || map_file::map_file(env, &path)))
}

/// Number of a new device with `threads` compute threads and `sparse_threads` for the sparse stream, each including the
/// stream's own. `kernels` names the instruction set of the kernels, or the `best` of this CPU. `submit` reads its arguments from
/// `values`.
#[napi]
pub fn open(threads: u32, sparse_threads: u32, kernels: String, values: Float64Array) -> Either<u32, NativeFault> {
    allocations::exempt_this_thread();
    either(guard("open", || {
        let Some(isa) = Isa::named(&kernels) else {
            let has: Vec<_> = available().map(Isa::name).collect();
            let expected = format!("best or one that this CPU has: {}", has.join(", "));
            return Err(fault("argument", "open", "kernels", expected, kernels));
        };
        let runtime = Runtime::open([threads as usize, sparse_threads as usize], isa, values);
        Ok(DEVICES.with_borrow_mut(|devices| {
            devices.push(Some(runtime));
            devices.len() as u32 - 1
        }))
    }))
}

/// Drops commands that have not started and frees everything. Open promises and later calls resolve to a fault.
#[napi]
pub fn close(device: u32) {
    let runtime = DEVICES.with_borrow_mut(|devices| devices.get_mut(device as usize).and_then(Option::take));
    drop(runtime);
}

/// Handle of a new `rows` x `cols` tensor, row-major or in panels. Contents are unspecified.
#[napi]
pub fn alloc(device: u32, dtype: u32, rows: f64, cols: f64, panels: bool) -> Either<f64, NativeFault> {
    either(with(device, "alloc", |runtime| {
        runtime.alloc(dtype, rows, cols, panels)
    }))
}

/// Handle of a new zero tensor in a memory-mapped file in `folder`.
#[napi]
pub fn alloc_mapped(device: u32, folder: String, dtype: u32, rows: f64, cols: f64) -> Either<f64, NativeFault> {
    either(with(device, "alloc", |runtime| {
        runtime.alloc_mapped(&folder, dtype, rows, cols)
    }))
}

/// Handle of columns `[from, from + cols)` of a tensor.
#[napi]
pub fn view(device: u32, handle: f64, from: u32, cols: u32) -> Either<f64, NativeFault> {
    either(with(device, "view", |runtime| runtime.view(handle, from, cols)))
}

/// Handle of elements `[from, from + count)` of a tensor, as one row.
#[napi]
pub fn range(device: u32, handle: f64, from: f64, count: f64) -> Either<f64, NativeFault> {
    either(with(device, "range", |runtime| runtime.range(handle, from, count)))
}

/// Disposes of a handle.
#[napi]
pub fn free(device: u32, handle: f64) -> Option<NativeFault> {
    with(device, "free", |runtime| runtime.free(handle)).err()
}

/// Copies `data` now and writes it to the tensor in stream order. `finite` refuses NaN and infinity.
#[napi]
pub fn upload(device: u32, stream: u32, handle: f64, data: TypedArray, finite: bool) -> Option<NativeFault> {
    with(device, "upload", |runtime| {
        runtime.upload(stream, handle, &data, finite)
    })
    .err()
}

/// Promise of the tensor's bytes at this point of the stream.
#[napi(ts_return_type = "Promise<ArrayBuffer | NativeFault>")]
pub fn read<'env>(env: &'env Env, device: u32, stream: u32, handle: f64) -> napi::Result<Object<'env>> {
    promise(env, |answer| {
        with(device, "read", |runtime| runtime.read(stream, handle, answer))
    })
}

/// Enqueues op number `op` with the first `count` of the device's values.
#[napi]
pub fn submit(device: u32, stream: u32, op: u32, count: u32) -> Option<NativeFault> {
    with(device, "submit", |runtime| runtime.submit(stream, op, count)).err()
}

/// Promise that resolves when everything enqueued is done: to nothing, or to a failure that no read has reported.
#[napi(ts_return_type = "Promise<void | NativeFault>")]
pub fn sync<'env>(env: &'env Env, device: u32) -> napi::Result<Object<'env>> {
    promise(env, |answer| with(device, "sync", |runtime| runtime.sync(answer)))
}

#[napi]
pub fn stats(device: u32) -> Either<Stats, NativeFault> {
    either(with(device, "stats", |runtime| Ok(runtime.stats())))
}

/// Tensors created from now on belong to this stream: they get no memory that another stream still uses.
#[napi]
pub fn home(device: u32, stream: Option<u32>) -> Option<NativeFault> {
    with(device, "home", |runtime| runtime.home(stream)).err()
}

/// Labels the spans of commands enqueued from now on; -1 for none.
#[napi]
pub fn tag(device: u32, lane: i32, stage: i32) -> Option<NativeFault> {
    with(device, "tag", |runtime| {
        runtime.tag(lane, stage);
        Ok(())
    })
    .err()
}

/// Starts recording spans, or stops and discards them.
#[napi]
pub fn record_spans(device: u32, on: bool) -> Option<NativeFault> {
    with(device, "record_spans", |runtime| {
        runtime.record_spans(on);
        Ok(())
    })
    .err()
}

/// Current time on the spans' clock, in nanoseconds.
#[napi]
pub fn span_clock() -> f64 {
    spans::nanoseconds() as f64
}

/// The spans since the last call.
#[napi]
pub fn spans(device: u32) -> Either<SpanTable, NativeFault> {
    either(with(device, "spans", |runtime| Ok(runtime.spans())))
}

fn with<T>(device: u32, verb: &'static str, work: impl FnOnce(&mut Runtime) -> Outcome<T>) -> Outcome<T> {
    DEVICES.with_borrow_mut(|devices| match devices.get_mut(device as usize) {
        Some(Some(runtime)) => guard(verb, || work(runtime)),
        _ => Err(fault("closed", verb, "device", "an open device", "one that was closed")),
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

fn either<T>(outcome: Outcome<T>) -> Either<T, NativeFault> {
    match outcome {
        Ok(value) => Either::A(value),
        Err(refused) => Either::B(refused),
    }
}
