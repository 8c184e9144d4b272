//! Uploads and reads. JavaScript memory is accessed on its own thread only: an upload is copied at once into a staging block
//! that the stream copies later; a read is staged by the stream and copied out when JavaScript takes the answer.

use crate::allocations::exempt;
use crate::command::Command;
use crate::fault::{NativeFault, Outcome, fault};
use crate::operands::{Input, Output};
use crate::view::Dtype;
use napi::bindgen_prelude::{ArrayBuffer, ToNapiValue, TypedArray, TypedArrayType};
use napi::{Env, JsDeferred, sys};
use std::sync::Arc;
use turbogr_kernels::arena::{Arena, Block};

/// What a promise of this addon resolves to: nothing, a fault, the bytes of a tensor or those of other ranks.
pub enum Reply {
    Done,
    Refused(NativeFault),
    Bytes {
        staged: Block,
        bytes: usize,
        arena: Arc<Arena>,
    },
    Owned(Vec<u8>),
}

impl ToNapiValue for Reply {
    unsafe fn to_napi_value(env: sys::napi_env, reply: Self) -> napi::Result<sys::napi_value> {
        match reply {
            // SAFETY: by this function's contract.
            Reply::Done => unsafe { <()>::to_napi_value(env, ()) },
            // SAFETY: by this function's contract.
            Reply::Refused(refused) => unsafe { NativeFault::to_napi_value(env, refused) },
            Reply::Owned(bytes) => {
                let copy = ArrayBuffer::copy_from(&Env::from_raw(env), &bytes);
                // SAFETY: by this function's contract.
                unsafe { ArrayBuffer::to_napi_value(env, copy?) }
            }
            Reply::Bytes { staged, bytes, arena } => {
                // SAFETY: the stream wrote `bytes` bytes of the block and let go of it.
                let data = unsafe { std::slice::from_raw_parts(staged.ptr(), bytes) };
                let copy = ArrayBuffer::copy_from(&Env::from_raw(env), data);
                arena.give(staged);
                // SAFETY: by this function's contract.
                unsafe { ArrayBuffer::to_napi_value(env, copy?) }
            }
        }
    }
}

pub type Answer = JsDeferred<Reply, Box<dyn FnOnce(Env) -> napi::Result<Reply>>>;

pub fn resolve(answer: Answer, reply: Reply) {
    exempt(|| answer.resolve(Box::new(move |_| Ok(reply))));
}

/// Resolves `answer` at this point of the stream, with the first unreported failure, if any.
pub fn sync(command: &mut Command, answer: Answer) {
    command.answer("sync", move |site| {
        let failed = site.refusal().or_else(|| site.failures.settle().err());
        site.answer(answer, failed.map_or(Reply::Done, Reply::Refused));
        Ok(())
    });
}

/// Resolves `answer` with a copy of the tensor at this point of the stream.
pub fn read(command: &mut Command, tensor: Input, answer: Answer) {
    command.answer("read", move |site| {
        if let Some(refused) = site.refusal() {
            site.answer(answer, Reply::Refused(refused));
            return Ok(());
        }
        let bytes = tensor.bytes();
        let staged = site.cx.arena.take(bytes);
        // SAFETY: the block is ours alone and holds `bytes` bytes.
        unsafe { tensor.copy_to(staged.ptr()) };
        let arena = site.cx.arena.clone();
        site.answer(answer, Reply::Bytes { staged, bytes, arena });
        Ok(())
    });
}

/// Fills the tensor with what is staged.
pub fn unload(command: &mut Command, tensor: Output, staged: Block) {
    command.answer("upload", move |site| {
        if site.usable() {
            // SAFETY: `stage` filled as many bytes as the tensor has.
            unsafe { tensor.copy_from(staged.ptr()) };
        }
        site.cx.arena.give(staged);
        Ok(())
    });
}

/// Checks JavaScript data against the tensor and copies it into a block. `finite` refuses NaN and infinity.
pub fn stage(arena: &Arena, tensor: &Output, data: &TypedArray, finite: bool) -> Outcome<Block> {
    let (dtype, [rows, cols]) = (tensor.dtype(), tensor.shape());
    let refuse = |kind, expected: String, got: String| Err(fault(kind, "upload", "data", expected, got));
    let fits = matches!(
        (dtype, data.typed_array_type),
        (Dtype::F32, TypedArrayType::Float32)
            | (Dtype::F16 | Dtype::Bf16, TypedArrayType::Uint16)
            | (Dtype::I32, TypedArrayType::Int32)
            | (Dtype::I64, TypedArrayType::BigInt64 | TypedArrayType::Float64)
    );
    if !fits {
        let expected = format!("a typed array for {}", dtype.name());
        return refuse("dtype", expected, format!("{:?}", data.typed_array_type));
    }
    // The slice starts at the view's first byte; every accepted pair has elements of the same size.
    let (count, got) = (rows * cols, data.arraybuffer.len() / dtype.bytes());
    if got != count {
        let expected = format!("{count} elements ({rows} x {cols})");
        return refuse("shape", expected, format!("{got}"));
    }
    let source = data.arraybuffer.as_ptr();
    if finite && dtype == Dtype::F32 && count > 0 {
        // SAFETY: a Float32Array of `count` elements, aligned by JavaScript's own rule.
        let floats = unsafe { std::slice::from_raw_parts(source.cast::<f32>(), count) };
        if let Some(at) = first_not_finite(floats) {
            return refuse(
                "not-finite",
                "finite numbers".into(),
                format!("{} at index {at}", floats[at]),
            );
        }
    }
    let staged = arena.take(count * dtype.bytes());
    if data.typed_array_type == TypedArrayType::Float64 && count > 0 {
        // SAFETY: a Float64Array of `count` elements; the block holds as many i64.
        let (numbers, whole) = unsafe {
            (
                std::slice::from_raw_parts(source.cast::<f64>(), count),
                std::slice::from_raw_parts_mut(staged.ptr().cast::<i64>(), count),
            )
        };
        if let Some(at) = to_whole(numbers, whole) {
            arena.give(staged);
            return refuse(
                "range",
                "whole numbers within 2^62".into(),
                format!("{} at index {at}", numbers[at]),
            );
        }
    } else {
        // SAFETY: both hold `bytes` bytes.
        unsafe { source.copy_to_nonoverlapping(staged.ptr(), count * dtype.bytes()) };
    }
    Ok(staged)
}

/// Works in blocks whose exponents are tested without branches.
fn first_not_finite(floats: &[f32]) -> Option<usize> {
    let mut at = 0;
    for block in floats.chunks(64) {
        if !block.iter().fold(true, |ok, x| ok & x.is_finite()) {
            return Some(at + block.iter().position(|x| !x.is_finite())?);
        }
        at += block.len();
    }
    None
}

fn to_whole(numbers: &[f64], whole: &mut [i64]) -> Option<usize> {
    let limit = (1i64 << 62) as f64;
    for (at, (x, to)) in numbers.iter().zip(whole).enumerate() {
        if !(x.abs() <= limit && x.fract() == 0.0) {
            return Some(at);
        }
        *to = *x as i64;
    }
    None
}
