//! Optimiser steps over dense parameters, gradient norm and clipping, initialisation, and elementwise passes. All memory-bound:
//! one pass each, in fixed tiles.

mod adamw;
mod clip;
mod elementwise;
mod fill;
pub mod naive;

pub use adamw::{Adam, AdamW, adamw};
pub(crate) use adamw::{AdamFactors, adam_vector};
pub use clip::{clip_scale, square_sum};
pub use elementwise::{add, cast_to_f16, cast_to_f32, lerp};
pub use fill::{EveryRow, TruncNormal, fill_constant, fill_normal, fill_trunc_normal, fill_uniform};

/// Elements of one task: 64 KB of each operand.
pub(crate) const TILE: usize = 16 * 1024;

#[cfg(test)]
mod tests;
