//! Losses over an item table: `sampled_softmax`, `bce`, `gbce`, `full_softmax`.

use crate::args::Args;
use crate::refusal::Outcome;
use turbogr_kernels::loss::{self, FullSoftmax, Logit, Sampled};

fn logit(args: &mut Args) -> Outcome<Logit> {
    Ok(Logit {
        temperature: args.f32("temperature")?,
        normalize_user: args.flag("normalizeUser")?,
        normalize_item: args.flag("normalizeItem")?,
        eps: args.f32("eps")?,
    })
}

/// 0 stands for the number of trained tokens.
fn mean_over(args: &mut Args) -> Outcome<Option<f32>> {
    Ok(Some(args.f32("meanOver")?).filter(|count| *count != 0.0))
}

fn sampled(args: &mut Args) -> Outcome<Sampled<'static>> {
    let u = args.mat("u")?;
    Ok(Sampled {
        u,
        table: args.rows("table")?,
        positives: args.slice("positives")?,
        negatives: args.ids("negatives", u.rows)?,
        logit: logit(args)?,
        mean_over: mean_over(args)?,
        loss: args.scalar_mut("loss")?,
        du: args.grad("du")?,
        coef: args.mat_mut("coef")?,
        uhat: args.mat_mut("uhat")?,
    })
}

pub fn sampled_softmax(args: &mut Args) -> Outcome {
    let work = sampled(args)?;
    let logq = args.slice_opt("logq")?;
    args.work(move |site| Ok(loss::sampled_softmax(site.cx, work, logq)?))
}

pub fn bce(args: &mut Args) -> Outcome {
    let work = sampled(args)?;
    args.work(move |site| Ok(loss::bce(site.cx, work)?))
}

pub fn gbce(args: &mut Args) -> Outcome {
    let work = sampled(args)?;
    let t = args.f32("t")?;
    args.work(move |site| Ok(loss::gbce(site.cx, work, t)?))
}

pub fn full_softmax(args: &mut Args) -> Outcome {
    let work = FullSoftmax {
        u: args.mat("u")?,
        table: args.rows("table")?,
        positives: args.slice("positives")?,
        logit: logit(args)?,
        mean_over: mean_over(args)?,
        loss: args.scalar_mut("loss")?,
        du: args.grad("du")?,
        dtable: args.grad("dtable")?,
    };
    args.work(move |site| Ok(loss::full_softmax(site.cx, work)?))
}
