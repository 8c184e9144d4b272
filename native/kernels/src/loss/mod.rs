//! Losses over an item table. Each computes the loss, the gradient of the user vectors and the inputs of the table's update in
//! one call; nothing of size tokens x negatives x width or tokens x items is stored.

mod fetched;
mod full_softmax;
mod history;
pub mod naive;
mod norm;
mod objective;
mod pooled;
mod sampled;
mod share_negatives;
mod shared;
mod stage;
mod token;
mod weighted;

pub use fetched::{Fetched, Segment};
pub use full_softmax::{FullSoftmax, full_softmax};
pub use history::{Counted, Events, Mask, count_negatives, mask_negatives};
pub use pooled::{Pooled, pooled_loss};
pub use sampled::{Sampled, bce, gbce, sampled_softmax};
pub use share_negatives::share_negatives;
pub use shared::{MOST as MOST_MEMBERS, Share, Shared, SharedObjective, shared_loss};

use crate::fault::{FaultKind, Outcome, fault};

/// How `logit = uhat . ehat / temperature` is formed from a user vector and an item row.
#[derive(Clone, Copy, Debug)]
pub struct Logit {
    pub temperature: f32,
    /// Divide the user vector by `max(|u|, eps)`.
    pub normalize_user: bool,
    /// Divide the item row by `max(|e|, eps)`.
    pub normalize_item: bool,
    pub eps: f32,
}

impl Logit {
    fn check(&self, op: &'static str) -> Outcome {
        check_positive(op, "temperature", self.temperature)?;
        check_positive(op, "eps", self.eps)
    }
}

fn check_positive(op: &'static str, input: &'static str, x: f32) -> Outcome {
    if x > 0.0 && x.is_finite() {
        return Ok(());
    }
    Err(fault(
        FaultKind::Argument,
        op,
        input,
        "a positive finite number",
        format!("{x}"),
    ))
}

#[cfg(test)]
mod full_softmax_tests;
#[cfg(test)]
mod odd_input_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
