//! Jagged causal attention: each sequence attends to its own past; sequences of any length are concatenated without padding, and
//! nothing of size n^2 is stored. Three ops share the tiles below: [`hstu_attention`], [`fuxi_attention`],
//! [`softmax_attention`].
//!
//! Letters: T tokens of the batch, B sequences, h heads, a query/key width of a head, v value width of a head, n the
//! model's constant N (longest sequence it is built for), i query position, j key position, j <= i.

mod backward;
mod bias;
pub mod bucket;
mod check;
mod clock;
mod forward;
pub mod fuxi_attention;
pub mod hstu_attention;
pub mod naive;
mod pack;
mod plan;
mod power;
mod scratch;
mod series;
pub mod softmax_attention;
mod table_grads;
mod tile;
mod weigh;

use crate::mat::{Grad, Mat, MatMut};
use crate::panels::{Panels, PanelsMut};

/// What HSTU and FuXi attention read. Views may be column ranges of one wide `[U|V|Q|K]` matrix,
/// and come in panels that belong to one head each.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    pub q: Panels, // [T, h*a]
    pub k: Panels, // [T, h*a]
    pub v: Panels, // [T, h*v]
    pub heads: usize,
    pub offsets: &'a [i32], // [B+1]
    /// Divisor of SiLU(S); determines the size of `pos_w`; no sequence may be longer.
    pub n: usize,
    pub bias: Option<Bias<'a>>,
}

/// Relative bias b_ij = pos_w[j - i + n - 1] + time term, shared by the heads.
#[derive(Clone, Copy)]
pub struct Bias<'a> {
    pub pos_w: &'a [f32], // [2n-1]
    pub time: Option<TimeBias<'a>>,
}

/// The time term of [`Bias`].
#[derive(Clone, Copy)]
pub struct TimeBias<'a> {
    pub term: TimeTerm<'a>,
    pub times: &'a [i64],       // [T], time of each event
    pub query_times: &'a [i64], // [T], time of the next event, which the query predicts
}

/// How the gap between `query_times[i]` and `times[j]` maps to a bias.
#[derive(Clone, Copy)]
pub enum TimeTerm<'a> {
    /// ts_w[bucket(gap)], see [`bucket`]: 129 entries; 17, 33 or 65 entries cover 8, 4 or 2 neighbouring buckets each.
    Buckets(&'a [f32]),
    /// alpha * gamma^(T^beta), T = gap / unit, see [`power`]: three learned numbers.
    Power { weights: &'a [f32], unit: f32 },
}

impl<'a> TimeTerm<'a> {
    /// The learned weights.
    pub fn weights(&self) -> &'a [f32] {
        match *self {
            TimeTerm::Buckets(weights) | TimeTerm::Power { weights, .. } => weights,
        }
    }
}

/// Forward of HSTU and FuXi attention.
pub struct Forward<'a> {
    pub x: Inputs<'a>,
    pub o: MatMut, // [T, h*v], for FuXi [T, h*3*v]; overwritten
}

/// Backward of the same call.
pub struct Backward<'a> {
    pub x: Inputs<'a>,
    pub d_o: Mat, // as `o`
    pub dq: Grad<PanelsMut>,
    pub dk: Grad<PanelsMut>,
    pub dv: Grad<PanelsMut>,
    pub dpos_w: Option<Grad>, // [1, 2n-1]
    pub dts_w: Option<Grad>,  // as the time term's weights
}

#[cfg(test)]
mod tests;
