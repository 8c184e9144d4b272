//! Exact retrieval: every item is scored against every query, block by block; the query-by-item matrix is never stored.
//! Scores are plain dot products: a model with normalised sides passes normalised queries and rows.

mod count_ahead;
mod excluded;
mod exp_sum;
pub mod naive;
mod scan;
mod target_scores;
mod top_k;

pub use count_ahead::{CountAhead, count_ahead};
pub use excluded::Excluded;
pub use exp_sum::{ExpSum, exp_sum};
pub use target_scores::{TargetScores, target_scores};
pub use top_k::{TopK, top_k};

#[cfg(test)]
mod tests;
