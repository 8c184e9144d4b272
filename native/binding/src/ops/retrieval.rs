//! Exact retrieval: `top_k`, `target_rank`.

use crate::args::Args;
use crate::fault::Outcome;
use turbogr_kernels::retrieval::{self, Excluded, TargetRank, TopK};

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

pub fn target_rank(args: &mut Args) -> Outcome {
    let work = TargetRank {
        queries: args.mat("queries")?,
        table: args.rows("table")?,
        targets: args.slice("targets")?,
        excluded: excluded(args)?,
        bonus: args.slice_opt("bonus")?,
        ranks: args.slice_mut("ranks")?,
    };
    args.work(move |site| Ok(retrieval::target_rank(site.cx, work)?))
}
