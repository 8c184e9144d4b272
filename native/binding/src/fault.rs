//! Why a call was refused or a command failed, as plain data, from which TypeScript builds its typed error.

use napi_derive::napi;
use std::any::Any;
use turbogr_kernels::Fault;
use turbogr_kernels::arena::OutOfMemory;

/// A kernel's [`Fault`], or one of the binding's own kinds: `handle`, `alias`, `dtype`, `op`, `memory`,
/// `closed`, `panic`, `file`.
#[napi(object)]
#[derive(Clone, Debug)]
pub struct NativeFault {
    pub kind: String,
    pub op: String,
    pub input: String,
    pub expected: String,
    pub got: String,
}

pub type Outcome<T = ()> = Result<T, NativeFault>;

pub fn fault(kind: &str, op: &str, input: &str, expected: impl Into<String>, got: impl Into<String>) -> NativeFault {
    NativeFault {
        kind: kind.into(),
        op: op.into(),
        input: input.into(),
        expected: expected.into(),
        got: got.into(),
    }
}

impl From<Fault> for NativeFault {
    fn from(kernel: Fault) -> NativeFault {
        fault(kernel.kind.name(), kernel.op, kernel.input, kernel.expected, kernel.got)
    }
}

/// Memory that the system refused.
pub fn out_of_memory(op: &str, bytes: usize) -> NativeFault {
    let megabytes = bytes.div_ceil(1 << 20);
    fault(
        "memory",
        op,
        "",
        format!("{megabytes} MB of memory"),
        "no more from the system",
    )
}

/// Interprets a caught panic: out of memory, or a bug in turbogr.
pub fn panicked(op: &str, payload: &(dyn Any + Send)) -> NativeFault {
    if let Some(refused) = payload.downcast_ref::<OutOfMemory>() {
        return out_of_memory(op, refused.bytes);
    }
    let text = payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| payload.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without a message");
    fault(
        "panic",
        op,
        "",
        "no panic (this is a bug in turbogr, please report it)",
        text,
    )
}
