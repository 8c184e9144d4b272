//! Why a call or a command was refused, as plain data: TypeScript makes its one typed error from it.

use napi_derive::napi;
use std::any::Any;
use turbogr_kernels::Fault;

/// A kernel's [`Fault`], or one of the binding's own kinds: `handle`, `dtype`, `data`, `op`, `closed`, `panic`, `file`.
#[napi(object)]
#[derive(Clone, Debug)]
pub struct Refusal {
    pub kind: String,
    pub op: String,
    pub input: String,
    pub expected: String,
    pub got: String,
}

pub type Outcome<T = ()> = Result<T, Refusal>;

pub fn refusal(kind: &str, op: &str, input: &str, expected: impl Into<String>, got: impl Into<String>) -> Refusal {
    Refusal {
        kind: kind.into(),
        op: op.into(),
        input: input.into(),
        expected: expected.into(),
        got: got.into(),
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Refusal {
        refusal(fault.kind.name(), fault.op, fault.input, fault.expected, fault.got)
    }
}

/// A caught panic is a bug of ours and says so.
pub fn panicked(op: &str, payload: &(dyn Any + Send)) -> Refusal {
    let text = payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| payload.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without a message");
    refusal(
        "panic",
        op,
        "",
        "no panic (this is a bug in turbogr, please report it)",
        text,
    )
}
