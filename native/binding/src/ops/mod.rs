//! All ops by name, with the decoders of their arguments. One file per group of kernels. Names are those of the kernels, with
//! the pass as a suffix if there are two (`norm_linear_forward`, `norm_linear_backward`).

mod attention;
mod comm;
mod embedding;
mod linear;
mod loss;
mod measure;
mod negatives;
mod norm;
mod optim;
mod retrieval;
mod rows;

use crate::args::Args;
use crate::fault::Outcome;

/// Reads the arguments now; [`Args::work`] stores the work to run later.
pub type Decode = fn(&mut Args) -> Outcome;

pub struct Op {
    pub name: &'static str,
    pub decode: Decode,
}

const fn op(name: &'static str, decode: Decode) -> Op {
    Op { name, decode }
}

pub const OPS: &[Op] = &[
    op("norm_linear_forward", linear::norm_linear_forward),
    op("norm_linear_backward", linear::norm_linear_backward),
    op(
        "gated_norm_linear_residual_forward",
        linear::gated_norm_linear_residual_forward,
    ),
    op(
        "gated_norm_linear_residual_backward",
        linear::gated_norm_linear_residual_backward,
    ),
    op("swiglu_linear_residual_forward", linear::swiglu_linear_residual_forward),
    op(
        "swiglu_linear_residual_backward",
        linear::swiglu_linear_residual_backward,
    ),
    op("linear_residual_forward", linear::linear_residual_forward),
    op("linear_residual_backward", linear::linear_residual_backward),
    op("pack_weight", linear::pack_weight),
    op("norm_forward", norm::norm_forward),
    op("norm_backward", norm::norm_backward),
    op("l2_norm_forward", norm::l2_norm_forward),
    op("l2_norm_backward", norm::l2_norm_backward),
    op("hstu_attention_forward", attention::hstu_forward),
    op("hstu_attention_backward", attention::hstu_backward),
    op("fuxi_attention_forward", attention::fuxi_forward),
    op("fuxi_attention_backward", attention::fuxi_backward),
    op("softmax_attention_forward", attention::softmax_forward),
    op("softmax_attention_backward", attention::softmax_backward),
    op("embedding_gather_forward", embedding::embedding_gather_forward),
    op("embedding_gather_backward", embedding::embedding_gather_backward),
    op("embedding_update", embedding::embedding_update),
    op("embedding_apply", embedding::embedding_apply),
    op("embedding_reduce", embedding::embedding_reduce),
    op("sparse_add", embedding::sparse_add),
    op("unique_ids", rows::unique_ids),
    op("stage_rows", rows::stage_rows),
    op("read_ahead", rows::read_ahead),
    op("copy_rows", rows::copy_rows),
    op("fetch_negatives", negatives::fetch_negatives),
    op("pick_negatives", negatives::pick_negatives),
    op("route_ids", rows::route_ids),
    op("local_ids", rows::local_ids),
    op("keep_routed", rows::keep_routed),
    op("pick_rows", rows::pick_rows),
    op("pick_agreed", rows::pick_agreed),
    op("spread_rows", rows::spread_rows),
    op("take_list", rows::take_list),
    op("asked_rows", rows::asked_rows),
    op("changed_rows", rows::changed_rows),
    op("count_changed", rows::count_changed),
    op("put_rows", rows::put_rows),
    op("draw_negatives", negatives::draw_negatives),
    op("draw_pool", negatives::draw_pool),
    op("alias_table", negatives::alias_table),
    op("share_negatives", loss::share_negatives),
    op("mask_negatives", loss::mask_negatives),
    op("count_negatives", loss::count_negatives),
    op("sampled_softmax", loss::sampled_softmax),
    op("bce", loss::bce),
    op("gbce", loss::gbce),
    op("shared_loss", loss::shared_loss),
    op("pooled_loss", loss::pooled_loss),
    op("full_softmax", loss::full_softmax),
    op("adamw", optim::adamw),
    op("square_sum", optim::square_sum),
    op("clip_scale", optim::clip_scale),
    op("fill_constant", optim::fill_constant),
    op("fill_uniform", optim::fill_uniform),
    op("fill_normal", optim::fill_normal),
    op("fill_trunc_normal", optim::fill_trunc_normal),
    op("add", optim::add),
    op("lerp", optim::lerp),
    op("cast_to_f16", optim::cast_to_f16),
    op("cast_to_f32", optim::cast_to_f32),
    op("top_k", retrieval::top_k),
    op("target_scores", retrieval::target_scores),
    op("count_ahead", retrieval::count_ahead),
    op("exp_sum", retrieval::exp_sum),
    op("comm_all_to_all_v", comm::comm_all_to_all_v),
    op("comm_all_gather_v", comm::comm_all_gather_v),
    op("comm_broadcast", comm::comm_broadcast),
    op("comm_barrier", comm::comm_barrier),
    op("comm_count_ids", comm::comm_count_ids),
    op("clock", measure::clock),
    op("fma_peak", measure::fma_peak),
    op("read_bandwidth", measure::read_bandwidth),
    #[cfg(feature = "probes")]
    op("panic", crate::probes::panic),
    #[cfg(feature = "probes")]
    op("delay", crate::probes::delay),
];
