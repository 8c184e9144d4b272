//! Jagged attention: `hstu_attention`, `fuxi_attention`, `softmax_attention`.

use crate::args::Args;
use crate::fault::{Outcome, fault};
use turbogr_kernels::attention::{
    Backward, Bias, Forward, Inputs, TimeBias, TimeTerm, fuxi_attention, hstu_attention, softmax_attention,
};

fn inputs(args: &mut Args) -> Outcome<Inputs<'static>> {
    Ok(Inputs {
        q: args.panels("q")?,
        k: args.panels("k")?,
        v: args.panels("v")?,
        heads: args.usize("heads")?,
        offsets: args.slice("offsets")?,
        n: args.usize("n")?,
        bias: bias(args)?,
    })
}

fn bias(args: &mut Args) -> Outcome<Option<Bias<'static>>> {
    let pos_w = args.slice_opt("posW")?;
    let tables = (
        args.slice_opt("tsW")?,
        args.slice_opt("times")?,
        args.slice_opt("queryTimes")?,
    );
    // 0 chooses buckets, anything else the function of the gap in that unit.
    let unit = args.f32("timeUnit")?;
    let time = match tables {
        (None, None, None) => None,
        (Some(weights), Some(times), Some(query_times)) => Some(TimeBias {
            term: match unit {
                0.0 => TimeTerm::Buckets(weights),
                unit => TimeTerm::Power { weights, unit },
            },
            times,
            query_times,
        }),
        _ => {
            let expected = "tsW, times and queryTimes together, or none of them";
            return Err(fault("argument", args.op, "tsW", expected, "some of them"));
        }
    };
    match (pos_w, time) {
        (None, None) => Ok(None),
        (Some(pos_w), time) => Ok(Some(Bias { pos_w, time })),
        (None, Some(_)) => Err(fault(
            "argument",
            args.op,
            "posW",
            "a position table beside tsW",
            "none",
        )),
    }
}

fn forward(args: &mut Args) -> Outcome<Forward<'static>> {
    Ok(Forward {
        x: inputs(args)?,
        o: args.mat_mut("o")?,
    })
}

fn backward(args: &mut Args) -> Outcome<Backward<'static>> {
    Ok(Backward {
        x: inputs(args)?,
        d_o: args.mat("dO")?,
        dq: args.panels_grad("dq")?,
        dk: args.panels_grad("dk")?,
        dv: args.panels_grad("dv")?,
        dpos_w: args.grad_opt("dposW")?,
        dts_w: args.grad_opt("dtsW")?,
    })
}

pub fn hstu_forward(args: &mut Args) -> Outcome {
    let work = forward(args)?;
    args.work(move |site| Ok(hstu_attention::forward(site.cx, &work)?))
}

pub fn hstu_backward(args: &mut Args) -> Outcome {
    let work = backward(args)?;
    args.work(move |site| Ok(hstu_attention::backward(site.cx, &work)?))
}

pub fn fuxi_forward(args: &mut Args) -> Outcome {
    let work = forward(args)?;
    args.work(move |site| Ok(fuxi_attention::forward(site.cx, &work)?))
}

pub fn fuxi_backward(args: &mut Args) -> Outcome {
    let work = backward(args)?;
    args.work(move |site| Ok(fuxi_attention::backward(site.cx, &work)?))
}

fn softmax_inputs(args: &mut Args) -> Outcome<softmax_attention::SoftmaxInputs<'static>> {
    Ok(softmax_attention::SoftmaxInputs {
        q: args.panels("q")?,
        k: args.panels("k")?,
        v: args.panels("v")?,
        heads: args.usize("heads")?,
        offsets: args.slice("offsets")?,
        scale: args.f32("scale")?,
        dropout: args.dropout()?,
    })
}

pub fn softmax_forward(args: &mut Args) -> Outcome {
    let work = softmax_attention::Forward {
        x: softmax_inputs(args)?,
        o: args.mat_mut("o")?,
        lse: args.mat_mut("lse")?,
    };
    args.work(move |site| Ok(softmax_attention::forward(site.cx, &work)?))
}

pub fn softmax_backward(args: &mut Args) -> Outcome {
    let work = softmax_attention::Backward {
        x: softmax_inputs(args)?,
        o: args.mat("o")?,
        lse: args.mat("lse")?,
        d_o: args.mat("dO")?,
        dq: args.panels_grad("dq")?,
        dk: args.panels_grad("dk")?,
        dv: args.panels_grad("dv")?,
    };
    args.work(move |site| Ok(softmax_attention::backward(site.cx, &work)?))
}
