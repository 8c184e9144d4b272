//! Fused linear layers: what comes before a product (norm, dropout, gate) is computed while its rows are packed, what
//! comes after (bias, activation, residual) while its result is in cache. Backward likewise: the activation's gradient
//! is a prologue of the data gradient, the norm's gradient its epilogue.
//!
//! Letters: T tokens, D input width, N output width. Weights are `W[in, out]`.

pub mod gated_norm_linear_residual;
pub mod linear_residual;
pub mod naive;
pub mod norm_linear;
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

/// Where row `i` of a `cols` wide matrix begins in its dropout's stream of draws: rows are rounded up to the eight draws
/// of a counter.
pub fn dropout_row(i: usize, cols: usize) -> u64 {
    (i * cols.next_multiple_of(8)) as u64
}
