//! Data in and out. JavaScript memory is touched on its own thread only: an upload is copied at once into a staging
//! block that the stream unloads later; a read is staged by the stream and copied out when JavaScript takes the answer.

use crate::allocations::exempt;
use crate::command::Command;
use crate::refusal::{Outcome, Refusal, refusal};
use crate::tensors::{Dtype, View};
use napi::bindgen_prelude::{ArrayBuffer, ToNapiValue, TypedArray, TypedArrayType};
use napi::{Env, JsDeferred, sys};
use std::sync::Arc;
use turbogr_kernels::Panels;
use turbogr_kernels::arena::{Arena, Block};

/// What a promise of this addon resolves to: nothing, a refusal or the bytes of a tensor.
pub enum Reply {
    Done,
    Refused(Refusal),
    Bytes {
        staged: Block,
        bytes: usize,
        arena: Arc<Arena>,
    },
}

impl ToNapiValue for Reply {
    unsafe fn to_napi_value(env: sys::napi_env, reply: Self) -> napi::Result<sys::napi_value> {
        match reply {
            Reply::Done => unsafe { <()>::to_napi_value(env, ()) },
            Reply::Refused(refused) => unsafe { Refusal::to_napi_value(env, refused) },
            Reply::Bytes { staged, bytes, arena } => {
                // SAFETY: the stream wrote `bytes` bytes of the block and let go of it.
                let data = unsafe { std::slice::from_raw_parts(staged.ptr(), bytes) };
                let copy = ArrayBuffer::copy_from(&Env::from_raw(env), data);
                arena.give(staged);
                unsafe { ArrayBuffer::to_napi_value(env, copy?) }
            }
        }
    }
}

pub type Answer = JsDeferred<Reply, Box<dyn FnOnce(Env) -> napi::Result<Reply>>>;

pub fn resolve(answer: Answer, reply: Reply) {
    exempt(|| answer.resolve(Box::new(move |_| Ok(reply))));
}

/// Settles `answer` when the stream gets there: with what had failed, if anything had, which ends the failed state.
pub fn sync(command: &mut Command, answer: Answer) {
    command.answer("sync", move |site| {
        resolve(answer, site.take_fault().map_or(Reply::Done, Reply::Refused));
        Ok(())
    });
}

/// Settles `answer` with a copy of the tensor as it is when the stream gets there.
pub fn read(command: &mut Command, view: View, answer: Answer) {
    command.answer("read", move |site| {
        if let Some(failed) = site.failed() {
            resolve(answer, Reply::Refused(failed));
            return Ok(());
        }
        let staged = site.cx.arena.take(view.bytes());
        copy_rows(view, staged.ptr(), Direction::Out);
        let arena = site.cx.arena.clone();
        resolve(
            answer,
            Reply::Bytes {
                staged,
                bytes: view.bytes(),
                arena,
            },
        );
        Ok(())
    });
}

/// Fills the tensor with what is staged.
pub fn unload(command: &mut Command, view: View, staged: Block) {
    command.answer("upload", move |site| {
        if site.failed().is_none() {
            copy_rows(view, staged.ptr(), Direction::In);
        }
        site.cx.arena.give(staged);
        Ok(())
    });
}

enum Direction {
    In,
    Out,
}

fn copy_rows(view: View, packed: *mut u8, direction: Direction) {
    let width = if view.in_panels {
        Panels::WIDTH
    } else {
        view.cols.max(1)
    };
    let (rows, run) = match view.is_contiguous() {
        true => (1, view.bytes()),
        false => (view.rows, width * view.dtype.bytes()),
    };
    for i in 0..rows {
        for j in (0..view.cols).step_by(width) {
            // SAFETY: both sides hold the `run` bytes from element (i, j) on and do not overlap.
            unsafe {
                let outside = packed.add((i * view.cols + j) * view.dtype.bytes());
                match direction {
                    Direction::In => outside.copy_to_nonoverlapping(view.at(i, j), run),
                    Direction::Out => view.at(i, j).copy_to_nonoverlapping(outside, run),
                }
            }
        }
    }
}

/// Checks JavaScript data against the tensor and copies it into a block. `finite` refuses NaN and infinity.
pub fn stage(arena: &Arena, view: &View, data: &TypedArray, finite: bool) -> Outcome<Block> {
    let refuse = |kind, expected: String, got: String| Err(refusal(kind, "upload", "data", expected, got));
    let fits = matches!(
        (view.dtype, data.typed_array_type),
        (Dtype::F32, TypedArrayType::Float32)
            | (Dtype::F16, TypedArrayType::Uint16)
            | (Dtype::I32, TypedArrayType::Int32)
            | (Dtype::I64, TypedArrayType::BigInt64 | TypedArrayType::Float64)
    );
    if !fits {
        let expected = format!("a typed array for {}", view.dtype.name());
        return refuse("dtype", expected, format!("{:?}", data.typed_array_type));
    }
    // The slice starts at the view's first byte; every accepted pair has elements of the same size.
    let (count, got) = (view.rows * view.cols, data.arraybuffer.len() / view.dtype.bytes());
    if got != count {
        let expected = format!("{count} elements ({} x {})", view.rows, view.cols);
        return refuse("shape", expected, format!("{got}"));
    }
    let source = data.arraybuffer.as_ptr();
    if finite && view.dtype == Dtype::F32 && count > 0 {
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
    let staged = arena.take(view.bytes());
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
                "whole numbers within 2^53".into(),
                format!("{} at index {at}", numbers[at]),
            );
        }
    } else {
        // SAFETY: both hold `bytes` bytes.
        unsafe { source.copy_to_nonoverlapping(staged.ptr(), view.bytes()) };
    }
    Ok(staged)
}

/// In blocks whose exponents are looked at without a branch.
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
    let limit = (1i64 << 53) as f64;
    for (at, (x, to)) in numbers.iter().zip(whole).enumerate() {
        if !(x.abs() <= limit && x.fract() == 0.0) {
            return Some(at);
        }
        *to = *x as i64;
    }
    None
}
