//! Exact retrieval: every item is scored against every query, block by block; queries x items is never stored.
//! Scores are plain dot products: a model with normalised sides passes normalised queries and rows.

mod excluded;
pub mod naive;
mod scan;
mod target_rank;
mod top_k;

pub use excluded::Excluded;
pub use target_rank::{TargetRank, target_rank};
pub use top_k::{TopK, top_k};

#[cfg(test)]
mod tests;
