//! The compute kernels: slices in, slices out, scratch and threads from the caller's [`Ctx`].
//! No policy, no handles, no napi. Each kernel has a naive double-precision twin (`naive` modules) as its oracle.

pub mod arena;
pub mod ctx;
pub mod exact_sum;
pub mod fault;
mod gathered;
pub mod half;
pub mod isa;
pub mod mat;
pub mod panels;
pub mod pool;
pub mod reduce;
pub mod rng;
pub mod rows;
pub mod shape;
pub mod simd;
#[cfg(test)]
mod testing;

pub mod attention;
pub mod embedding;
pub mod gemm;
pub mod linear;
pub mod loss;
pub mod measure;
pub mod norm;
pub mod optim;
pub mod retrieval;

pub use ctx::Ctx;
pub use fault::{Fault, FaultKind, Outcome};
pub use mat::{Grad, Mat, MatMut};
pub use panels::{Panels, PanelsMut};
pub use rows::{Rows, RowsMut};
