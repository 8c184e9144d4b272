//! HSTU attention: o_i = sum over j <= i of SiLU(q_i . k_j + b_ij) / n * v_j, per head. S is recomputed in backward.

use super::{Inputs, check, plain};
use crate::{Ctx, Grad, Mat, MatMut, Outcome};

pub const OP: &str = "hstu_attention";

pub struct Forward<'a> {
    pub x: Inputs<'a>,
    pub o: MatMut, // [T, h*v], overwritten
}

pub struct Backward<'a> {
    pub x: Inputs<'a>,
    pub d_o: Mat, // [T, h*v]
    pub dq: Grad,
    pub dk: Grad,
    pub dv: Grad,
    pub dpos_w: Option<Grad>, // [1, 2n-1]
    pub dts_w: Option<Grad>,  // [1, 129]
}

pub fn forward(_cx: &Ctx, args: &Forward) -> Outcome {
    let Forward { x, o } = args;
    check::inputs(OP, x)?;
    check::view(OP, "o", o.as_ref(), x.v.rows, x.v.cols)?;
    plain::write(Grad::overwrite(*o), &super::naive::hstu_forward(&plain::inputs(x)));
    Ok(())
}

pub fn backward(_cx: &Ctx, args: &Backward) -> Outcome {
    let x = &args.x;
    check::inputs(OP, x)?;
    check::view(OP, "d_o", args.d_o, x.v.rows, x.v.cols)?;
    check::grad(OP, "dq", &args.dq, x.q)?;
    check::grad(OP, "dk", &args.dk, x.k)?;
    check::grad(OP, "dv", &args.dv, x.v)?;
    check::bias_grad(OP, "dpos_w", &args.dpos_w, x.bias.map(|bias| bias.pos_w))?;
    check::bias_grad(
        OP,
        "dts_w",
        &args.dts_w,
        x.bias.and_then(|bias| bias.time).map(|time| time.ts_w),
    )?;
    let grads = super::naive::hstu_backward(&plain::inputs(x), &plain::read(args.d_o));
    plain::write_all([args.dq, args.dk, args.dv], [args.dpos_w, args.dts_w], &grads);
    Ok(())
}
