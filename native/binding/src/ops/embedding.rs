//! Embedding tables: `embedding_gather`, `embedding_update`, `draw_negatives`, `alias_table`.

use super::optim::adam_hyper;
use crate::args::Args;
use crate::refusal::{Outcome, refusal};
use turbogr_kernels::Mat;
use turbogr_kernels::embedding::embedding_gather::{self, Positions};
use turbogr_kernels::embedding::{self, Alias, Contribution, EmbeddingUpdate, Sampler, Update};

/// What one update may sum; the kernel's own limit.
const CONTRIBUTIONS: usize = 8;

pub fn embedding_gather_forward(args: &mut Args) -> Outcome {
    let (table, ids) = (args.rows("table")?, args.slice("ids")?);
    let scale = args.f32("scale")?;
    let (positions, offsets) = (args.mat_opt("positions")?, args.slice_opt("offsets")?);
    let work = embedding_gather::Forward {
        table,
        ids,
        scale,
        positions: positions
            .zip(offsets)
            .map(|(table, offsets)| Positions { table, offsets }),
        dropout: args.dropout()?,
        accumulate: args.flag("accumulate")?,
        out: args.mat_mut("out")?,
    };
    args.work(move |site| Ok(embedding_gather::forward(site.cx, work)?))
}

pub fn embedding_gather_backward(args: &mut Args) -> Outcome {
    let dropout = args.dropout()?;
    let dx = args.mat_mut("dx")?;
    let (positions, offsets) = (args.grad_opt("dpositions")?, args.slice_opt("offsets")?);
    let work = embedding_gather::Backward {
        dropout,
        dx,
        positions: positions
            .zip(offsets)
            .map(|(table, offsets)| Positions { table, offsets }),
    };
    args.work(move |site| Ok(embedding_gather::backward(site.cx, work)?))
}

fn contribution(args: &mut Args) -> Outcome<Contribution> {
    let source = args.mat("source")?;
    Ok(Contribution {
        ids: args.ids("ids", source.rows)?,
        source,
        coef: args.mat_opt("coef")?,
        scale: args.f32("scale")?,
        normalized: Some(args.f32("normalizedEps")?).filter(|eps| *eps > 0.0),
    })
}

fn update(args: &mut Args) -> Outcome<Update<'static>> {
    Ok(match args.usize("update")? {
        0 => Update::Dense {
            grad: args.grad("grad")?,
        },
        1 => Update::SquareSum {
            to: args.scalar_mut("to")?,
        },
        2 => Update::LazyAdam {
            m: args.mat_mut("m")?,
            v: args.mat_mut("v")?,
            hyper: adam_hyper(args)?,
        },
        3 => Update::RowAdagrad {
            state: args.slice_mut("state")?,
            lr: args.f32("lr")?,
            eps: args.f32("eps")?,
            weight_decay: args.f32("weightDecay")?,
        },
        other => {
            let expected = "0 dense, 1 square sum, 2 lazy Adam or 3 row-wise AdaGrad";
            return Err(refusal("argument", args.op, "update", expected, format!("{other}")));
        }
    })
}

pub fn embedding_update(args: &mut Args) -> Outcome {
    let table = args.rows_mut("table")?;
    let update = update(args)?;
    let grad_scale = args.scalar_opt("gradScale")?;
    let count = args.usize("contributions")?;
    if count > CONTRIBUTIONS {
        let expected = format!("at most {CONTRIBUTIONS}");
        return Err(refusal(
            "argument",
            args.op,
            "contributions",
            expected,
            format!("{count}"),
        ));
    }
    let mut contributions = [NO_CONTRIBUTION; CONTRIBUTIONS];
    for slot in &mut contributions[..count] {
        *slot = contribution(args)?;
    }
    args.work(move |site| {
        let work = EmbeddingUpdate {
            table,
            contributions: &contributions[..count],
            update,
            grad_scale,
        };
        Ok(embedding::embedding_update(site.cx, work)?)
    })
}

const NO_CONTRIBUTION: Contribution = Contribution {
    ids: nothing(),
    source: nothing(),
    coef: None,
    scale: 0.0,
    normalized: None,
};

const fn nothing<T>() -> Mat<T> {
    Mat {
        ptr: std::ptr::null(),
        rows: 0,
        cols: 0,
        stride: 0,
    }
}

pub fn draw_negatives(args: &mut Args) -> Outcome {
    let key = args.key()?;
    let sampler = match args.usize("sampler")? {
        0 => Sampler::Uniform {
            first: args.usize("first")? as i32,
            count: args.usize("count")? as u32,
        },
        1 => Sampler::Popularity {
            threshold: args.slice("threshold")?,
            alias: args.slice("alias")?,
        },
        2 => Sampler::InBatch {
            positives: args.slice("positives")?,
        },
        other => {
            let expected = "0 uniform, 1 popularity or 2 in-batch";
            return Err(refusal("argument", args.op, "sampler", expected, format!("{other}")));
        }
    };
    let ids = args.mat_mut_of::<i32>("ids")?;
    args.work(move |site| Ok(embedding::draw_negatives(site.cx, key, sampler, ids)?))
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
