//! Row normalisation: layer norm, RMS norm, L2 norm. The ops of this folder stand alone; the fused layers of
//! [`crate::linear`] use its row functions inside their products.

pub mod l2_norm;
pub mod naive;
#[allow(clippy::module_inception)]
pub mod norm;
pub(crate) mod rows;
#[cfg(test)]
mod tests;

/// Which normalisation; none has weights of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Norm {
    /// The row as it is.
    None,
    /// `(x - mean) / sqrt(variance + eps)`.
    Layer,
    /// `x / sqrt(mean of squares + eps)`.
    Rms,
}
