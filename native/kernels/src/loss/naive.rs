//! The oracle of the losses: double precision, plain loops, every T x V or T x R number written down.
//!
//! T tokens, D width, R negatives per token, V items.

use super::sampled::gbce_beta;
use crate::norm::naive::{l2_norm_row, l2_norm_row_grad};

#[derive(Clone)]
pub enum Objective {
    SampledSoftmax { logq: Option<Vec<f64>> },
    Bce,
    Gbce { t: f64 },
    FullSoftmax { smoothing: f64 },
}

#[derive(Clone)]
pub struct Problem {
    /// `[T, D, R, V]`
    pub shape: [usize; 4],
    pub u: Vec<f64>,
    pub table: Vec<f64>,
    pub positives: Vec<i32>,
    pub negatives: Vec<i32>,
    pub temperature: f64,
    pub normalize_user: bool,
    pub normalize_item: bool,
    pub eps: f64,
    pub objective: Objective,
}

pub struct Gradients {
    pub loss: f64,
    pub du: Vec<f64>,
    pub dtable: Vec<f64>,
    /// `[T, 1 + R]`; empty for the full softmax.
    pub coef: Vec<f64>,
    pub uhat: Vec<f64>,
}

impl Problem {
    fn user(&self, t: usize) -> &[f64] {
        &self.u[t * self.shape[1]..][..self.shape[1]]
    }
    fn item(&self, v: usize) -> &[f64] {
        &self.table[v * self.shape[1]..][..self.shape[1]]
    }
    fn unit(&self, x: &[f64], normalize: bool) -> Vec<f64> {
        if normalize {
            l2_norm_row(self.eps, x)
        } else {
            x.to_vec()
        }
    }

    /// Items of token `t` with their column of `coef`: the positive first, then every draw that is not masked.
    fn candidates(&self, t: usize) -> Vec<(usize, usize)> {
        let [_, _, r, v] = self.shape;
        let positive = self.positives[t] as usize;
        let mut list = vec![(0, positive)];
        match self.objective {
            Objective::FullSoftmax { .. } => list.extend((0..v).filter(|&id| id != positive).map(|id| (0, id))),
            _ => list.extend((0..r).filter_map(|j| {
                let id = self.negatives[t * r + j];
                (id >= 0 && id as usize != positive).then_some((1 + j, id as usize))
            })),
        }
        list
    }

    /// Loss of one token and d loss / d logit of its candidates.
    fn token(&self, logits: &[f64]) -> (f64, Vec<f64>) {
        let [_, _, r, v] = self.shape;
        let beta = match self.objective {
            Objective::Gbce { t } => gbce_beta(r, v, t),
            Objective::Bce => 1.0,
            _ => {
                let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let total: f64 = logits.iter().map(|l| (l - largest).exp()).sum();
                let mut slopes: Vec<f64> = logits.iter().map(|l| (l - largest).exp() / total).collect();
                let smoothing = match self.objective {
                    Objective::FullSoftmax { smoothing } => smoothing,
                    _ => 0.0,
                };
                let each = smoothing / logits.len() as f64;
                slopes.iter_mut().for_each(|slope| *slope -= each);
                slopes[0] -= 1.0 - smoothing;
                let expected = (1.0 - smoothing) * logits[0] + each * logits.iter().sum::<f64>();
                return (total.ln() + largest - expected, slopes);
            }
        };
        let softplus = |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p();
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let count = (1 + r) as f64;
        let loss = beta * softplus(-logits[0]) + logits[1..].iter().map(|l| softplus(*l)).sum::<f64>();
        let mut slopes: Vec<f64> = logits.iter().map(|l| sigmoid(*l) / count).collect();
        slopes[0] = -beta * sigmoid(-logits[0]) / count;
        (loss / count, slopes)
    }

    /// Loss and all gradients.
    pub fn solve(&self) -> Gradients {
        let [tokens, d, r, v] = self.shape;
        let trained = self.positives.iter().filter(|&&id| id >= 0).count().max(1) as f64;
        let mut out = Gradients {
            loss: 0.0,
            du: vec![0.0; tokens * d],
            dtable: vec![0.0; v * d],
            coef: vec![0.0; tokens * (1 + r)],
            uhat: (0..tokens)
                .flat_map(|t| self.unit(self.user(t), self.normalize_user))
                .collect(),
        };
        for t in (0..tokens).filter(|&t| self.positives[t] >= 0) {
            let uhat = self.unit(self.user(t), self.normalize_user);
            let candidates = self.candidates(t);
            let rows: Vec<Vec<f64>> = candidates
                .iter()
                .map(|&(_, id)| self.unit(self.item(id), self.normalize_item))
                .collect();
            let logits: Vec<f64> = candidates
                .iter()
                .zip(&rows)
                .map(|(&(_, id), row)| {
                    let dot: f64 = uhat.iter().zip(row).map(|(a, b)| a * b).sum();
                    let q = match &self.objective {
                        Objective::SampledSoftmax { logq: Some(logq) } => logq[id],
                        _ => 0.0,
                    };
                    dot / self.temperature - q
                })
                .collect();
            let (loss, slopes) = self.token(&logits);
            out.loss += loss / trained;
            let mut duhat = vec![0.0; d];
            for ((&(column, id), row), slope) in candidates.iter().zip(&rows).zip(slopes) {
                let coef = slope / (self.temperature * trained);
                out.coef[t * (1 + r) + column] += coef;
                duhat.iter_mut().zip(row).for_each(|(g, e)| *g += coef * e);
                let g: Vec<f64> = uhat.iter().map(|x| coef * x).collect();
                let g = if self.normalize_item {
                    l2_norm_row_grad(self.eps, self.item(id), &g)
                } else {
                    g
                };
                out.dtable[id * d..][..d].iter_mut().zip(g).for_each(|(to, g)| *to += g);
            }
            let du = if self.normalize_user {
                l2_norm_row_grad(self.eps, self.user(t), &duhat)
            } else {
                duhat
            };
            out.du[t * d..][..d].copy_from_slice(&du);
        }
        out
    }
}
