//! Embedding tables: lookup, and gradients as updates and as lists of rows.

use super::optim::adam_hyper;
use crate::args::Args;
use crate::fault::{Outcome, fault};
use turbogr_kernels::Mat;
use turbogr_kernels::embedding::embedding_gather::{self, Positions};
use turbogr_kernels::embedding::{
    self, Contribution, EmbeddingApply, EmbeddingUpdate, MAX_CONTRIBUTIONS, ReadRows, RowList, RowListMut, Update,
};
use turbogr_kernels::rng::Key;

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
    let (source, members) = (args.mat("source")?, args.usize("members")?.max(1));
    Ok(Contribution {
        lane: args.usize("lane")? as u32,
        ids: args.ids("ids", source.rows / members)?,
        source,
        coef: args.mat_opt("coef")?,
        scale: args.f32("scale")?,
        normalized: Some(args.f32("normalizedEps")?).filter(|eps| *eps > 0.0),
        rounded: args.flag("rounded")?,
    })
}

fn update(args: &mut Args) -> Outcome<Update<'static>> {
    Ok(match args.usize("update")? {
        0 => Update::Dense {
            grad: args.grad("grad")?,
        },
        1 => Update::SquareSum {
            to: args.exact_sum_mut("to")?,
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
            return Err(fault("argument", args.op, "update", expected, format!("{other}")));
        }
    })
}

/// The key for stochastic rounding, if any.
fn rounding(args: &mut Args) -> Outcome<Option<Key>> {
    let random = args.flag("rounding")?;
    let key = args.key()?;
    Ok(random.then_some(key))
}

/// Number of arguments of a kind that follow, at most `most`.
pub(super) fn count(args: &mut Args, input: &str, most: usize) -> Outcome<usize> {
    let count = args.usize(input)?;
    if count <= most {
        return Ok(count);
    }
    let expected = format!("at most {most}");
    Err(fault("argument", args.op, input, expected, format!("{count}")))
}

/// The contributions of a call, in the first `count` elements of the array.
struct Contributions {
    all: [Contribution; MAX_CONTRIBUTIONS],
    count: usize,
}

impl Contributions {
    fn decode(args: &mut Args) -> Outcome<Contributions> {
        let mut all = [NO_CONTRIBUTION; MAX_CONTRIBUTIONS];
        let count = count(args, "contributions", MAX_CONTRIBUTIONS)?;
        for slot in &mut all[..count] {
            *slot = contribution(args)?;
        }
        Ok(Contributions { all, count })
    }

    fn list(&self) -> &[Contribution] {
        &self.all[..self.count]
    }
}

pub fn embedding_update(args: &mut Args) -> Outcome {
    let table = args.rows_mut("table")?;
    let (rows, ids) = (args.rows_opt("staged")?, args.slice_opt("staged ids")?);
    let staged = rows.map(|rows| ReadRows {
        rows,
        ids,
        vocabulary: table.as_ref().rows(),
    });
    let update = update(args)?;
    let rounding = rounding(args)?;
    let grad_scale = args.scalar_opt("gradScale")?;
    let contributions = Contributions::decode(args)?;
    args.work(move |site| {
        let work = EmbeddingUpdate {
            table,
            staged,
            contributions: contributions.list(),
            update,
            rounding,
            grad_scale,
        };
        Ok(embedding::embedding_update(site.cx, work)?)
    })
}

pub fn embedding_apply(args: &mut Args) -> Outcome {
    let work = EmbeddingApply {
        table: args.rows_mut("table")?,
        ids: args.slice_opt("ids")?,
        rows: args.mat("rows")?,
        update: update(args)?,
        rounding: rounding(args)?,
        grad_scale: args.scalar_opt("gradScale")?,
    };
    args.work(move |site| Ok(embedding::embedding_apply(site.cx, work)?))
}

pub(super) fn row_list_mut(args: &mut Args) -> Outcome<RowListMut<'static>> {
    Ok(RowListMut {
        ids: args.slice_mut("to ids")?,
        rows: args.mat_mut("to rows")?,
    })
}

pub fn embedding_reduce(args: &mut Args) -> Outcome {
    let read = ReadRows {
        rows: args.rows("rows")?,
        ids: args.slice_opt("ids")?,
        vocabulary: args.usize("vocabulary")?,
    };
    let contributions = Contributions::decode(args)?;
    let to = row_list_mut(args)?;
    args.work(move |site| Ok(embedding::embedding_reduce(site.cx, read, contributions.list(), to)?))
}

pub fn sparse_add(args: &mut Args) -> Outcome {
    let left = RowList {
        ids: args.slice("left ids")?,
        rows: args.mat("left rows")?,
    };
    let right = RowList {
        ids: args.slice("right ids")?,
        rows: args.mat("right rows")?,
    };
    let without = args.slice_opt("without")?.unwrap_or(&[]);
    let to = row_list_mut(args)?;
    args.work(move |site| Ok(embedding::sparse_add(site.cx, left, right, without, to)?))
}

const NO_CONTRIBUTION: Contribution = Contribution {
    lane: 0,
    ids: nothing(),
    source: nothing(),
    coef: None,
    scale: 0.0,
    normalized: None,
    rounded: false,
};

pub(super) const fn nothing<T>() -> Mat<T> {
    Mat {
        ptr: std::ptr::null(),
        rows: 0,
        cols: 0,
        stride: 0,
    }
}
