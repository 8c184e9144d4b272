//! Converts a problem of the oracle to the kernels' inputs.

use super::naive::{Objective, Problem};
use super::{Logit, SharedObjective};
use crate::Ctx;
use crate::embedding::{Contribution, EmbeddingUpdate, Update, embedding_update};
use crate::fault::Outcome;
use crate::mat::Grad;
use crate::rng::{Key, below, word};
use crate::rows::RowsMut;

/// Ids in -1..items, about one in sixteen of them -1.
pub fn ids(seed: u64, len: usize, items: usize) -> Vec<i32> {
    let key = Key::new(seed, 1, 1);
    let id = |w: u32| if w % 16 == 3 { -1 } else { below(w, items as u32) as i32 };
    (0..len).map(|i| id(word(key, i as u64))).collect()
}

pub fn logit(p: &Problem) -> Logit {
    Logit {
        temperature: p.temperature as f32,
        normalize_user: p.normalize_user,
        normalize_item: p.normalize_item,
        eps: p.eps as f32,
    }
}

pub fn logq(p: &Problem) -> Option<Vec<f32>> {
    match &p.objective {
        Objective::SampledSoftmax { logq } => logq.as_ref().map(|q| q.iter().map(|x| *x as f32).collect()),
        _ => None,
    }
}

pub fn shared_objective<'a>(p: &Problem, logq: Option<&'a [f32]>) -> SharedObjective<'a> {
    match &p.objective {
        Objective::SampledSoftmax { .. } => SharedObjective::Softmax { logq },
        Objective::Gbce { t } => SharedObjective::Gbce { t: *t as f32 },
        _ => SharedObjective::Bce,
    }
}

/// The gradient of a table from a loss's outputs.
pub fn table_gradient(cx: &Ctx, table: RowsMut, contributions: &[Contribution], grad: Grad) -> Outcome {
    embedding_update(
        cx,
        EmbeddingUpdate {
            table,
            staged: None,
            contributions,
            update: Update::Dense { grad },
            rounding: None,
            grad_scale: None,
        },
    )
}
