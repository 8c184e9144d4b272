//! Negatives: samplers, draws, and rows fetched for them.

use crate::args::Args;
use crate::fault::Outcome;
use turbogr_kernels::embedding::{self, Alias, FetchNegatives, PickNegatives, Sampler};

pub fn fetch_negatives(args: &mut Args) -> Outcome {
    let (table, ids) = (args.rows("table")?, args.mat_of("ids")?);
    let (from, count) = (args.usize("from")?, args.usize("count")?);
    let work = FetchNegatives {
        table,
        ids,
        positions: from..from + count,
        normalize: normalize(args)?,
        places: args.mat_mut_of("places")?,
        rows: args.rows_mut("rows")?,
        factors: args.slice_mut("factors")?,
    };
    args.work(move |site| Ok(embedding::fetch_negatives(site.cx, work)?))
}

/// 0: rows are not normalised.
fn normalize(args: &mut Args) -> Outcome<Option<f32>> {
    Ok(Some(args.f32("normalizedEps")?).filter(|eps| *eps > 0.0))
}

pub fn pick_negatives(args: &mut Args) -> Outcome {
    let work = PickNegatives {
        table: args.rows("table")?,
        ids: args.slice("ids")?,
        counts: args.slice_opt("counts")?,
        normalize: normalize(args)?,
        rows: args.rows_mut("rows")?,
        factors: args.slice_mut("factors")?,
    };
    args.work(move |site| Ok(embedding::pick_negatives(site.cx, work)?))
}

fn sampler(args: &mut Args) -> Outcome<Sampler<'static>> {
    Ok(match args.choice("sampler", &[0, 1, 2])? {
        0 => Sampler::Uniform {
            first: args.usize("first")? as i32,
            count: args.usize("count")? as u32,
        },
        1 => Sampler::Popularity {
            threshold: args.slice("threshold")?,
            alias: args.slice("alias")?,
        },
        _ => Sampler::InBatch {
            positives: args.slice("positives")?,
        },
    })
}

pub fn draw_negatives(args: &mut Args) -> Outcome {
    let (key, sampler) = (args.key()?, sampler(args)?);
    let ids = args.mat_mut_of::<i32>("ids")?;
    args.work(move |site| Ok(embedding::draw_negatives(site.cx, key, sampler, ids)?))
}

pub fn draw_pool(args: &mut Args) -> Outcome {
    let (key, sampler) = (args.key()?, sampler(args)?);
    let ids = args.slice_mut("ids")?;
    args.work(move |site| Ok(embedding::draw_pool(site.cx, key, sampler, ids)?))
}

pub fn alias_table(args: &mut Args) -> Outcome {
    let weights = args.slice("weights")?;
    let to = Alias {
        threshold: args.slice_mut("threshold")?,
        alias: args.slice_mut("alias")?,
        logq: args.slice_mut("logq")?,
    };
    args.work(move |site| Ok(embedding::alias_table(site.cx, weights, to)?))
}
