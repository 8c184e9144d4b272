//! Staging and routing of table rows: distinct ids, copies, requests to owners, and rows changed since.

use super::embedding::{count, nothing, row_list_mut};
use crate::args::Args;
use crate::fault::Outcome;
use crate::operands::MOST_OPERANDS;
use turbogr_kernels::embedding::{
    self, Agreed, Asked, Changed, CopyRows, IdList, MAX_ASKED, MAX_CHANGED, MAX_ID_LISTS, Places, Requests, Routed,
    RoutedIds, RowList,
};
use turbogr_kernels::mat::MatMut;

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

pub fn route_ids(args: &mut Args) -> Outcome {
    let (ids, by_place) = (args.slice("ids")?, args.flag("byPlace")?);
    let to = Routed {
        local: args.slice_mut("local")?,
        order: args.slice_mut("order")?,
        counts: args.slice_mut("counts")?,
    };
    let places = args.slice_mut_opt("places")?;
    args.work(move |_| Ok(embedding::route_ids(ids, by_place, places, to)?))
}

pub fn local_ids(args: &mut Args) -> Outcome {
    let ids = args.slice("ids")?;
    let (owner, owners) = (args.usize("owner")?, args.usize("owners")?);
    let to = args.slice_mut("to")?;
    args.work(move |_| Ok(embedding::local_ids(ids, owner, owners, to)?))
}

pub fn pick_rows(args: &mut Args) -> Outcome {
    let (rows, ids) = (args.rows("rows")?, args.slice("ids")?);
    let (counts, to) = (args.slice_opt("counts")?, args.rows_mut("to")?);
    args.work(move |site| Ok(embedding::pick_rows(site.cx, rows, ids, counts, to)?))
}

pub fn pick_agreed(args: &mut Args) -> Outcome {
    let list = RowList {
        ids: args.slice("ids")?,
        rows: args.mat("rows")?,
    };
    let agreed = Agreed {
        ids: args.slice("agreed")?,
        order: args.slice("order")?,
        counts: args.slice("counts")?,
    };
    let to = args.mat_mut("to")?;
    args.work(move |site| Ok(embedding::pick_agreed(site.cx, list, agreed, to)?))
}

pub fn spread_rows(args: &mut Args) -> Outcome {
    let (rows, factors) = (args.rows("rows")?, args.slice_opt("factors")?);
    let (places, to) = (args.slice("places")?, args.mat_mut("to")?);
    args.work(move |site| Ok(embedding::spread_rows(site.cx, rows, factors, places, to)?))
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

/// Besides its lists, `keep_routed` has six operands.
const _: () = assert!(2 * MAX_ASKED + 6 <= MOST_OPERANDS);

fn several_requests(args: &mut Args) -> Outcome<([Requests<'static>; MAX_ASKED], usize)> {
    let mut lists = [Requests { ids: &[], counts: &[] }; MAX_ASKED];
    let count = count(args, "lists", MAX_ASKED)?;
    for list in &mut lists[..count] {
        *list = requests(args)?;
    }
    Ok((lists, count))
}

const NOTHING_ASKED: Asked = Asked {
    requests: Requests { ids: &[], counts: &[] },
    senders: 0..0,
};

pub fn asked_rows(args: &mut Args) -> Outcome {
    let (least, count) = (args.usize("least")?, count(args, "lists", MAX_ASKED)?);
    let mut lists = [const { NOTHING_ASKED }; MAX_ASKED];
    for list in &mut lists[..count] {
        *list = Asked {
            requests: requests(args)?,
            senders: args.usize("from")?..args.usize("to")?,
        };
    }
    let to = args.slice_mut("to")?;
    args.work(move |site| Ok(embedding::asked_rows(site.cx, &lists[..count], least, to)?))
}

pub fn keep_routed(args: &mut Args) -> Outcome {
    let ids = RoutedIds {
        local: args.slice("local")?,
        order: args.slice("order")?,
        counts: args.slice("counts")?,
    };
    let (marked, count) = several_requests(args)?;
    let inside = args.flag("inside")?;
    let to = Routed {
        local: args.slice_mut("to local")?,
        order: args.slice_mut("to order")?,
        counts: args.slice_mut("to counts")?,
    };
    args.work(move |_| Ok(embedding::keep_routed(ids, &marked[..count], inside, to)?))
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
