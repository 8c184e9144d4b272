//! Row normalisation: layer norm, RMS norm, L2 norm. The ops of this folder are separate passes; the fused layers of
//! [`crate::linear`] use its row functions inside their products.

pub mod l2_norm;
pub mod naive;
#[allow(clippy::module_inception)]
pub mod norm;
pub(crate) mod rows;
#[cfg(test)]
mod tests;

/// The kind of normalisation, without weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Norm {
    /// The unchanged row.
    None,
    /// `(x - mean) / sqrt(variance + eps)`.
    Layer,
    /// `x / sqrt(mean of squares + eps)`.
    Rms,
}
