//! Every op by name: how its arguments are decoded into a command. One file to a group of kernels. The names are the
//! kernels' own, with the pass behind them where there are two (`norm_linear_forward`, `norm_linear_backward`).

mod attention;
mod measure;

use crate::args::Args;
use crate::command::Command;
use crate::refusal::Outcome;

/// Reads the arguments now, runs later.
pub type Decode = fn(&mut Args) -> Outcome<Command>;

pub struct Op {
    pub name: &'static str,
    pub decode: Decode,
}

const fn op(name: &'static str, decode: Decode) -> Op {
    Op { name, decode }
}

pub const OPS: &[Op] = &[
    op("hstu_attention_forward", attention::hstu_forward),
    op("hstu_attention_backward", attention::hstu_backward),
    op("fuxi_attention_forward", attention::fuxi_forward),
    op("fuxi_attention_backward", attention::fuxi_backward),
    op("softmax_attention_forward", attention::softmax_forward),
    op("softmax_attention_backward", attention::softmax_backward),
    op("clock", measure::clock),
    op("fma_peak", measure::fma_peak),
    op("read_bandwidth", measure::read_bandwidth),
    op("panic", measure::panic),
];
