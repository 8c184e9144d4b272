//! Losses over an item table (`sampled_softmax`, `bce`, `gbce`, `shared_loss`, `pooled_loss`, `full_softmax`) and the ops on
//! draws before them: `share_negatives`, `mask_negatives`, `count_negatives`.

use crate::args::Args;
use crate::fault::Outcome;
use turbogr_kernels::loss::{
    self, Counted, Events, Fetched, FullSoftmax, Logit, Mask, Pooled, Sampled, Segment, Share, Shared, SharedObjective,
};

fn logit(args: &mut Args) -> Outcome<Logit> {
    Ok(Logit {
        temperature: args.f32("temperature")?,
        normalize_user: args.flag("normalizeUser")?,
        normalize_item: args.flag("normalizeItem")?,
        eps: args.f32("eps")?,
    })
}

/// 0 means the number of trained tokens.
fn mean_over(args: &mut Args) -> Outcome<Option<f32>> {
    Ok(Some(args.f32("meanOver")?).filter(|count| *count != 0.0))
}

/// Rows, factors and places, or three absent ones.
fn fetched(args: &mut Args) -> Outcome<Option<Fetched<'static>>> {
    let (rows, factors) = (args.rows_opt("fetched rows")?, args.slice_opt("fetched factors")?);
    let places = args.mat_of_opt("fetched places")?;
    Ok(rows
        .zip(factors)
        .zip(places)
        .map(|((rows, factors), places)| Fetched { rows, factors, places }))
}

/// First position, count, and the sum so far, which is absent if there is only one segment.
fn segment(args: &mut Args) -> Outcome<Segment<'static>> {
    let (from, count) = (args.usize("segment")?, args.usize("segment")?);
    let sum = args.slice_mut_opt("sum")?;
    Ok(Segment {
        positions: from..from + count,
        sum: sum.and_then(|sum: &mut [i64]| sum.first_mut()),
    })
}

fn sampled(args: &mut Args) -> Outcome<Sampled<'static>> {
    let u = args.mat("u")?;
    Ok(Sampled {
        u,
        table: args.rows("table")?,
        vocabulary: args.usize("vocabulary")?,
        positives: args.slice("positives")?,
        negatives: args.ids("negatives", u.rows)?,
        fetched: fetched(args)?,
        positive_rows: args.slice_opt("positive rows")?,
        segment: segment(args)?,
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
        smoothing: args.f32("smoothing")?,
        loss: args.scalar_mut("loss")?,
        du: args.grad("du")?,
        dtable: args.grad("dtable")?,
    };
    args.work(move |site| Ok(loss::full_softmax(site.cx, work)?))
}

/// Items, targets and offsets of the batch, or three absent ones.
fn mask(args: &mut Args) -> Outcome<Mask<'static>> {
    let items = args.slice_opt("items")?;
    let (targets, offsets) = (args.slice_opt("targets")?, args.slice_opt("offsets")?);
    Ok(match (items, targets, offsets) {
        (Some(items), Some(targets), Some(offsets)) => Mask::History(Events {
            items,
            targets,
            offsets,
        }),
        _ => Mask::Positive,
    })
}

/// Which loss, then logq of a softmax and t of gBCE.
fn objective(args: &mut Args) -> Outcome<SharedObjective<'static>> {
    let kind = args.choice("objective", &[0, 1, 2])?;
    let (logq, t) = (args.slice_opt("logq")?, args.f32("t")?);
    Ok(match kind {
        0 => SharedObjective::Softmax { logq },
        1 => SharedObjective::Bce,
        _ => SharedObjective::Gbce { t },
    })
}

pub fn shared_loss(args: &mut Args) -> Outcome {
    let (u, table, vocabulary) = (args.mat("u")?, args.rows("table")?, args.usize("vocabulary")?);
    let positives = args.slice("positives")?;
    let groups = args.usize("groups")?;
    let (members, negatives) = (args.ids("members", groups)?, args.ids("negatives", groups)?);
    let work = Shared {
        u,
        table,
        vocabulary,
        positives,
        members,
        negatives,
        fetched: fetched(args)?,
        positive_rows: args.slice_opt("positive rows")?,
        segment: segment(args)?,
        mask: mask(args)?,
        share: args.choice("share", &[Share::Outputs, Share::Scalars])?,
        objective: objective(args)?,
        logit: logit(args)?,
        mean_over: mean_over(args)?,
        loss: args.scalar_mut("loss")?,
        du: args.grad("du")?,
        coef: args.mat_mut("coef")?,
        uhat: args.mat_mut("uhat")?,
        own: (args.slice_mut("own ids")?, args.slice_mut("own coef")?),
    };
    args.work(move |site| Ok(loss::shared_loss(site.cx, work)?))
}

pub fn pooled_loss(args: &mut Args) -> Outcome {
    let work = Pooled {
        u: args.mat("u")?,
        table: args.rows("table")?,
        vocabulary: args.usize("vocabulary")?,
        positives: args.slice("positives")?,
        pool: args.slice("pool")?,
        fetched: fetched(args)?,
        mask: mask(args)?,
        objective: objective(args)?,
        logit: logit(args)?,
        mean_over: mean_over(args)?,
        loss: args.scalar_mut("loss")?,
        du: args.grad("du")?,
        dpool: args.mat_mut("dpool")?,
        coef: args.mat_mut("coef")?,
        uhat: args.mat_mut("uhat")?,
    };
    args.work(move |site| Ok(loss::pooled_loss(site.cx, work)?))
}

pub fn share_negatives(args: &mut Args) -> Outcome {
    let key = args.key()?;
    let positives = args.slice::<i32>("positives")?;
    let drawn = args.ids("drawn", positives.len())?;
    let (members, negatives) = (args.mat_mut_of("members")?, args.mat_mut_of("negatives")?);
    args.work(move |site| {
        Ok(loss::share_negatives(
            site.cx,
            key,
            positives,
            drawn,
            (members, negatives),
        )?)
    })
}

pub fn mask_negatives(args: &mut Args) -> Outcome {
    let (positives, mask) = (args.slice("positives")?, mask(args)?);
    let ids = args.mat_mut_of("ids")?;
    args.work(move |site| Ok(loss::mask_negatives(site.cx, positives, mask, ids)?))
}

pub fn count_negatives(args: &mut Args) -> Outcome {
    let positives = args.slice("positives")?;
    let groups = args.usize("groups")?;
    let work = Counted {
        positives,
        negatives: args.ids("negatives", groups)?,
        members: match args.flag("shared")? {
            true => Some(args.ids("members", groups)?),
            false => None,
        },
        mask: mask(args)?,
    };
    let to = args.slice_mut("to")?;
    args.work(move |site| Ok(loss::count_negatives(site.cx, work, to)?))
}
