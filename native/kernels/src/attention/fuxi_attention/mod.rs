//! FuXi-alpha attention: three weightings of the same values, per head [A_pos V | A_ts V | A_sem V], with raw
//! A_pos_ij = pos_w[j - i + n - 1] and A_ts_ij = ts_w[bucket] shared by the heads, and A_sem_ij = SiLU(q_i . k_j) / n.
//! A channel whose table is absent (no bias, no times) is zero.

mod channels;

use super::bias::Tables;
use super::plan::Heads;
use super::table_grads::TableGrads;
use super::weigh::Silu;
use super::{Backward, Forward, backward, check, forward};
use crate::{Ctx, MatMut, Outcome};
use channels::{CHANNELS, Channels};

pub const OP: &str = "fuxi_attention";

pub fn forward(cx: &Ctx, args: &Forward) -> Outcome {
    let Forward { x, o } = args;
    check::inputs(OP, x)?;
    check::view(OP, "o", o.as_ref(), x.v.rows, CHANNELS * x.v.cols)?;
    let heads = Heads::new(x.heads, x.q.cols / x.heads, x.v.cols / x.heads, x.q.rows);
    let semantic = forward::ForwardPass {
        q: x.q,
        k: x.k,
        v: x.v,
        o: o.columns(2 * heads.v, o.cols - 2 * heads.v).into(),
        o_step: CHANNELS * heads.v,
        heads,
        offsets: x.offsets,
        bias: None,
        weigh: Silu { n: x.n },
    };
    semantic.run(cx);
    match x.bias {
        Some(bias) => {
            let tables = &Tables::new(cx, bias, x.n);
            Channels {
                v: x.v,
                heads,
                offsets: x.offsets,
                tables,
            }
            .forward(cx, (*o).into());
        }
        None => zero_channels(*o, &heads),
    }
    Ok(())
}

/// Position and time channels without a table.
fn zero_channels(o: MatMut, heads: &Heads) {
    for token in 0..o.rows {
        // SAFETY: the op's own output; no task is running.
        let row = unsafe { o.row(token) };
        row.chunks_exact_mut(CHANNELS * heads.v)
            .for_each(|head| head[..2 * heads.v].fill(0.0));
    }
}

pub fn backward(cx: &Ctx, args: &Backward) -> Outcome {
    let x = &args.x;
    check::inputs(OP, x)?;
    check::view(OP, "d_o", args.d_o, x.v.rows, CHANNELS * x.v.cols)?;
    check::grad(OP, "dq", &args.dq, x.q, x.heads)?;
    check::grad(OP, "dk", &args.dk, x.k, x.heads)?;
    check::grad(OP, "dv", &args.dv, x.v, x.heads)?;
    check::bias_grads(OP, x.bias.as_ref(), &args.dpos_w, &args.dts_w)?;
    let heads = Heads::new(x.heads, x.q.cols / x.heads, x.v.cols / x.heads, x.q.rows);
    let semantic = backward::BackwardPass {
        q: x.q,
        k: x.k,
        v: x.v,
        d_o: args.d_o.columns(2 * heads.v, args.d_o.cols - 2 * heads.v).into(),
        d_o_step: CHANNELS * heads.v,
        scale: 1.0 / x.n as f32,
        dq: args.dq,
        dk: args.dk,
        dv: args.dv,
        heads,
        offsets: x.offsets,
        bias: None,
        unweigh: Silu { n: x.n },
    };
    semantic.run(cx, None);
    let Some(bias) = x.bias else { return Ok(()) };
    let tables = &Tables::new(cx, bias, x.n);
    let channels = Channels {
        v: x.v,
        heads,
        offsets: x.offsets,
        tables,
    };
    let wanted = args.dpos_w.is_some() || args.dts_w.is_some();
    let mut grads = wanted.then(|| TableGrads::new(cx, x.n));
    channels.backward(cx, args.d_o.into(), args.dv.to, grads.as_mut());
    if let Some(grads) = &grads {
        grads.write(tables, args.dpos_w, args.dts_w);
    }
    Ok(())
}
