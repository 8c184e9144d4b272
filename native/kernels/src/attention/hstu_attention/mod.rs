//! HSTU attention: o_i = sum over j <= i of SiLU(q_i . k_j + b_ij) / n * v_j, per head. S is recomputed in backward.

use super::bias::Tables;
use super::plan::Heads;
use super::table_grads::TableGrads;
use super::weigh::Silu;
use super::{Backward, Forward, backward, check, forward};
use crate::{Ctx, Outcome};

pub const OP: &str = "hstu_attention";

pub fn forward(cx: &Ctx, args: &Forward) -> Outcome {
    let Forward { x, o } = args;
    check::inputs(OP, x)?;
    check::view(OP, "o", o.as_ref(), x.v.rows, x.v.cols)?;
    let tables = x.bias.map(|bias| Tables::new(cx, bias, x.n));
    let pass = forward::ForwardPass {
        q: x.q,
        k: x.k,
        v: x.v,
        o: (*o).into(),
        o_step: x.v.cols / x.heads,
        heads: Heads::new(x.heads, x.q.cols / x.heads, x.v.cols / x.heads, x.q.rows),
        offsets: x.offsets,
        bias: tables.as_ref(),
        weigh: Silu { n: x.n },
    };
    pass.run(cx);
    Ok(())
}

pub fn backward(cx: &Ctx, args: &Backward) -> Outcome {
    let x = &args.x;
    check::inputs(OP, x)?;
    check::view(OP, "d_o", args.d_o, x.v.rows, x.v.cols)?;
    check::grad(OP, "dq", &args.dq, x.q, x.heads)?;
    check::grad(OP, "dk", &args.dk, x.k, x.heads)?;
    check::grad(OP, "dv", &args.dv, x.v, x.heads)?;
    check::bias_grads(OP, x.bias.as_ref(), &args.dpos_w, &args.dts_w)?;
    let tables = x.bias.map(|bias| Tables::new(cx, bias, x.n));
    let pass = backward::BackwardPass {
        q: x.q,
        k: x.k,
        v: x.v,
        d_o: args.d_o.into(),
        d_o_step: x.v.cols / x.heads,
        scale: 1.0 / x.n as f32,
        dq: args.dq,
        dk: args.dk,
        dv: args.dv,
        heads: Heads::new(x.heads, x.q.cols / x.heads, x.v.cols / x.heads, x.q.rows),
        offsets: x.offsets,
        bias: tables.as_ref(),
        unweigh: Silu { n: x.n },
    };
    let wanted = args.dpos_w.is_some() || args.dts_w.is_some();
    let mut grads = wanted.then(|| TableGrads::new(cx, x.n));
    pass.run(cx, grads.as_mut());
    if let (Some(grads), Some(tables)) = (&grads, &tables) {
        grads.write(tables, args.dpos_w, args.dts_w);
    }
    Ok(())
}
