//! Fused linear layers: the prologue of a product (norm, dropout, gate) is computed while its rows are packed, the epilogue
//! (bias, activation, residual) while its result is in cache. In backward, the activation's gradient is the prologue of the
//! data gradient, and the norm's gradient its epilogue.
//!
//! Letters: T tokens, D input width, N output width. Weights are `W[in, out]`, row-major or packed ([`pack_weight`]).

pub mod gated_norm_linear_residual;
pub mod linear_residual;
pub mod naive;
pub mod norm_linear;
pub mod pack_weight;
mod sources;
mod store;
pub mod swiglu_linear_residual;
#[cfg(test)]
mod tests;

pub use crate::norm::Norm;

/// Activation of a layer's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    None,
    Silu,
    Relu,
}

/// Offset of row `i` of a `cols` wide matrix in its dropout's stream of draws: rows are rounded up to the eight draws
/// of a counter.
pub fn dropout_row(i: usize, cols: usize) -> u64 {
    (i * cols.next_multiple_of(8)) as u64
}
