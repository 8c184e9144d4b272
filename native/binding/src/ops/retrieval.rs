//! Exact retrieval: `top_k`, `target_scores`, `count_ahead`, `exp_sum`.

use crate::args::Args;
use crate::fault::Outcome;
use turbogr_kernels::retrieval::{self, CountAhead, Excluded, ExpSum, TargetScores, TopK};

fn excluded(args: &mut Args) -> Outcome<Option<Excluded<'static>>> {
    let (offsets, ids) = (args.slice_opt("excludedOffsets")?, args.slice_opt("excludedIds")?);
    Ok(offsets.zip(ids).map(|(offsets, ids)| Excluded { offsets, ids }))
}

pub fn top_k(args: &mut Args) -> Outcome {
    let work = TopK {
        queries: args.mat("queries")?,
        table: args.rows("table")?,
        excluded: excluded(args)?,
        ids: args.mat_mut_of("ids")?,
        scores: args.mat_mut("scores")?,
    };
    args.work(move |site| Ok(retrieval::top_k(site.cx, work)?))
}

pub fn target_scores(args: &mut Args) -> Outcome {
    let work = TargetScores {
        queries: args.mat("queries")?,
        table: args.rows("table")?,
        targets: args.slice("targets")?,
        scores: args.slice_mut("scores")?,
    };
    args.work(move |site| Ok(retrieval::target_scores(site.cx, work)?))
}

pub fn count_ahead(args: &mut Args) -> Outcome {
    let work = CountAhead {
        queries: args.mat("queries")?,
        table: args.rows("table")?,
        bars: args.slice("bars")?,
        places: args.slice("places")?,
        excluded: excluded(args)?,
        counts: args.slice_mut("counts")?,
    };
    args.work(move |site| Ok(retrieval::count_ahead(site.cx, work)?))
}

pub fn exp_sum(args: &mut Args) -> Outcome {
    let work = ExpSum {
        queries: args.mat("queries")?,
        table: args.rows("table")?,
        bars: args.slice("bars")?,
        bits: args.usize("bits")?,
        sums: args.slice_mut("sums")?,
    };
    args.work(move |site| Ok(retrieval::exp_sum(site.cx, work)?))
}
