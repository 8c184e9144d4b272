//! Embedding tables: reading and staging rows, their gradients as updates and as lists, drawing negatives.

use super::optim::adam_hyper;
use crate::args::Args;
use crate::fault::{Outcome, fault};
use turbogr_kernels::Mat;
use turbogr_kernels::embedding::embedding_gather::{self, Positions};
use turbogr_kernels::embedding::{
    self, Alias, Changed, Contribution, CopyRows, EmbeddingApply, EmbeddingUpdate, FetchNegatives, IdList, MAX_CHANGED,
    MAX_CONTRIBUTIONS, MAX_ID_LISTS, Places, ReadRows, Requests, Routed, RowList, RowListMut, Sampler, Update,
};
use turbogr_kernels::mat::MatMut;
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

/// Whether rows are rounded randomly, and the key of the random numbers.
fn rounding(args: &mut Args) -> Outcome<Option<Key>> {
    let random = args.flag("rounding")?;
    let key = args.key()?;
    Ok(random.then_some(key))
}

/// How many arguments of a kind follow, `most` at most.
fn count(args: &mut Args, input: &str, most: usize) -> Outcome<usize> {
    let count = args.usize(input)?;
    if count <= most {
        return Ok(count);
    }
    let expected = format!("at most {most}");
    Err(fault("argument", args.op, input, expected, format!("{count}")))
}

/// The contributions of a call, first `count` of the array.
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

fn row_list_mut(args: &mut Args) -> Outcome<RowListMut<'static>> {
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
    let to = row_list_mut(args)?;
    args.work(move |site| Ok(embedding::sparse_add(site.cx, left, right, to)?))
}

pub fn unique_ids(args: &mut Args) -> Outcome {
    let nothing = IdList {
        ids: nothing(),
        places: MatMut {
            ptr: std::ptr::null_mut(),
            rows: 0,
            cols: 0,
            stride: 0,
        },
    };
    let mut lists = [nothing; MAX_ID_LISTS];
    let vocabulary = args.usize("vocabulary")?;
    let count = count(args, "lists", MAX_ID_LISTS)?;
    for slot in &mut lists[..count] {
        *slot = IdList {
            ids: args.mat_of("ids")?,
            places: args.mat_mut_of("places")?,
        };
    }
    let to = args.slice_mut("to")?;
    args.work(move |site| Ok(embedding::unique_ids(site.cx, &lists[..count], vocabulary, to)?))
}

pub fn stage_rows(args: &mut Args) -> Outcome {
    let (table, ids, to) = (args.rows("table")?, args.slice("ids")?, args.rows_mut("to")?);
    args.work(move |site| Ok(embedding::stage_rows(site.cx, table, ids, to)?))
}

pub fn read_ahead(args: &mut Args) -> Outcome {
    let (table, ids) = (args.mapped_rows("table")?, args.mat_of("ids")?);
    args.work(move |site| Ok(embedding::read_ahead(site.cx, table, ids)?))
}

pub fn copy_rows(args: &mut Args) -> Outcome {
    let work = CopyRows {
        rows: args.rows("rows")?,
        from: args.usize("from")?,
        to: args.rows_mut("to")?,
        at: args.usize("at")?,
        count: args.usize("count")?,
    };
    args.work(move |site| Ok(embedding::copy_rows(site.cx, work)?))
}

pub fn fetch_negatives(args: &mut Args) -> Outcome {
    let (table, ids) = (args.rows("table")?, args.mat_of("ids")?);
    let (from, count) = (args.usize("from")?, args.usize("count")?);
    let work = FetchNegatives {
        table,
        ids,
        positions: from..from + count,
        normalize: Some(args.f32("normalizedEps")?).filter(|eps| *eps > 0.0),
        places: args.mat_mut_of("places")?,
        rows: args.rows_mut("rows")?,
        factors: args.slice_mut("factors")?,
    };
    args.work(move |site| Ok(embedding::fetch_negatives(site.cx, work)?))
}

pub fn route_ids(args: &mut Args) -> Outcome {
    let (ids, by_place) = (args.slice("ids")?, args.flag("byPlace")?);
    let to = Routed {
        local: args.slice_mut("local")?,
        order: args.slice_mut("order")?,
        counts: args.slice_mut("counts")?,
    };
    args.work(move |_| Ok(embedding::route_ids(ids, by_place, to)?))
}

pub fn pick_rows(args: &mut Args) -> Outcome {
    let (rows, ids) = (args.rows("rows")?, args.slice("ids")?);
    let (counts, to) = (args.slice_opt("counts")?, args.rows_mut("to")?);
    args.work(move |site| Ok(embedding::pick_rows(site.cx, rows, ids, counts, to)?))
}

pub fn take_list(args: &mut Args) -> Outcome {
    let list = (args.slice("ids")?, args.mat("rows")?);
    let (counts, index) = (args.slice("counts")?, args.usize("index")?);
    let to = row_list_mut(args)?;
    args.work(move |site| Ok(embedding::take_list(site.cx, list, counts, index, to)?))
}

fn requests(args: &mut Args) -> Outcome<Requests<'static>> {
    Ok(Requests {
        ids: args.slice("ids")?,
        counts: args.slice("counts")?,
    })
}

pub fn changed_rows(args: &mut Args) -> Outcome {
    let (requests, list, by_list) = (requests(args)?, args.slice("list")?, args.flag("byList")?);
    let to = Changed {
        at: args.slice_mut("at")?,
        from: args.slice_mut("from")?,
        counts: args.slice_mut("to counts")?,
    };
    args.work(move |_| Ok(embedding::changed_rows(requests, list, by_list, to)?))
}

pub fn count_changed(args: &mut Args) -> Outcome {
    let requests = requests(args)?;
    let mut lists: [&[i32]; MAX_CHANGED] = [&[]; MAX_CHANGED];
    let count = count(args, "lists", MAX_CHANGED)?;
    for list in &mut lists[..count] {
        *list = args.slice("list")?;
    }
    let to = args.slice_mut("to")?;
    args.work(move |_| Ok(embedding::count_changed(requests, &lists[..count], to)?))
}

pub fn put_rows(args: &mut Args) -> Outcome {
    let rows = args.rows("rows")?;
    let places = Places {
        at: args.slice("at")?,
        counts: args.slice("counts")?,
        parts: args.slice("parts")?,
        order: args.slice_opt("order")?,
    };
    let to = args.rows_mut("to")?;
    args.work(move |site| Ok(embedding::put_rows(site.cx, rows, places, to)?))
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
