//! Validates the arguments of attention before any work starts.

use super::bucket::COARSE;
use super::{Bias, Inputs, TimeTerm, power};
use crate::fault::{Fault, FaultKind, Outcome, check_offsets, check_times, fault};
use crate::mat::Grad;
use crate::panels::{Panels, PanelsMut};

type Op = &'static str;

fn shape(op: Op, input: &'static str, expected: String, got: String) -> Fault {
    fault(FaultKind::Shape, op, input, expected, got)
}

/// `view` is `rows` x `cols`.
pub fn view(op: Op, input: &'static str, view: impl Into<Panels>, rows: usize, cols: usize) -> Outcome {
    let view = view.into();
    if (view.rows, view.cols) == (rows, cols) {
        return Ok(());
    }
    let (expected, got) = (format!("{rows} x {cols}"), format!("{} x {}", view.rows, view.cols));
    Err(shape(op, input, expected, got))
}

/// A gradient of the same shape as its input, with no panel shared by heads.
pub fn grad(op: Op, input: &'static str, grad: &Grad<PanelsMut>, like: Panels, heads: usize) -> Outcome {
    let to = grad.to.as_ref();
    view(op, input, to, like.rows, like.cols)?;
    undivided(op, input, to, heads)
}

/// No panel holds columns of two heads.
fn undivided(op: Op, input: &'static str, view: Panels, heads: usize) -> Outcome {
    let width = view.cols / heads;
    match view.plain().is_some() || width.is_multiple_of(Panels::WIDTH) {
        true => Ok(()),
        false => {
            let expected = format!("rows, or heads of whole panels of {} columns", Panels::WIDTH);
            Err(shape(op, input, expected, format!("panels and heads of {width}")))
        }
    }
}

/// Gradients of the bias tables: one row each, only if the table is present.
pub fn bias_grads(op: Op, bias: Option<&Bias>, dpos_w: &Option<Grad>, dts_w: &Option<Grad>) -> Outcome {
    let tables = [
        ("dpos_w", dpos_w, bias.map(|bias| bias.pos_w)),
        (
            "dts_w",
            dts_w,
            bias.and_then(|bias| bias.time).map(|time| time.term.weights()),
        ),
    ];
    for (input, grad, table) in tables {
        match (grad, table) {
            (None, _) => {}
            (Some(grad), Some(table)) => view(op, input, grad.to.as_ref(), 1, table.len())?,
            (Some(_), None) => {
                let expected = "no gradient for a bias that the forward pass did not have";
                return Err(fault(FaultKind::Argument, op, input, expected, "one"));
            }
        }
    }
    Ok(())
}

/// Queries, keys and values with consistent shapes that divide evenly by the heads.
pub fn heads(op: Op, [q, k, v]: [Panels; 3], heads: usize) -> Outcome {
    if heads == 0 {
        return Err(fault(FaultKind::Argument, op, "heads", "at least 1", "0"));
    }
    view(op, "k", k, q.rows, q.cols)?;
    view(op, "v", v, q.rows, v.cols)?;
    for (input, cols) in [("q", q.cols), ("v", v.cols)] {
        if cols == 0 || cols % heads != 0 {
            let expected = format!("a width that is a positive multiple of {heads} heads");
            return Err(shape(op, input, expected, format!("{cols}")));
        }
    }
    [("q", q), ("k", k), ("v", v)]
        .into_iter()
        .try_for_each(|(input, view)| undivided(op, input, view, heads))
}

/// Everything [`Inputs`] promises.
pub fn inputs(op: Op, x: &Inputs) -> Outcome {
    heads(op, [x.q, x.k, x.v], x.heads)?;
    check_offsets(op, x.offsets, x.q.rows)?;
    if x.n == 0 {
        return Err(fault(FaultKind::Argument, op, "n", "at least 1", "0"));
    }
    let lengths = x.offsets.windows(2).map(|ends| (ends[1] - ends[0]) as usize);
    if let Some((sequence, length)) = lengths.enumerate().find(|(_, length)| *length > x.n) {
        return Err(fault(
            FaultKind::Range,
            op,
            "offsets",
            format!("sequences of at most n = {} tokens", x.n),
            format!("sequence {sequence} of {length} tokens"),
        ));
    }
    x.bias
        .as_ref()
        .map_or(Ok(()), |bias| bias_tables(op, bias, x.n, x.q.rows))
}

fn bias_tables(op: Op, bias: &Bias, n: usize, tokens: usize) -> Outcome {
    let length = |input, got: usize, expected: usize| match got == expected {
        true => Ok(()),
        false => Err(shape(op, input, format!("{expected} entries"), format!("{got}"))),
    };
    length("pos_w", bias.pos_w.len(), 2 * n - 1)?;
    let Some(time) = &bias.time else { return Ok(()) };
    match time.term {
        TimeTerm::Buckets(ts_w) if !COARSE.contains(&ts_w.len()) => {
            return Err(shape(
                op,
                "ts_w",
                format!("one of {COARSE:?} entries"),
                format!("{}", ts_w.len()),
            ));
        }
        TimeTerm::Buckets(_) => {}
        TimeTerm::Power { weights, unit } => {
            length("ts_w", weights.len(), power::WEIGHTS)?;
            if !(unit > 0.0 && unit.is_finite()) {
                return Err(fault(
                    FaultKind::Argument,
                    op,
                    "time unit",
                    "a number above 0",
                    format!("{unit}"),
                ));
            }
        }
    }
    length("times", time.times.len(), tokens)?;
    length("query_times", time.query_times.len(), tokens)?;
    check_times(op, "times", time.times)?;
    check_times(op, "query_times", time.query_times)
}
