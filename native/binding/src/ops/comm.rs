//! Exchanges between tensors of different ranks, on the `comm` stream. Counts are tensors, since the number of rows is often
//! known only on the device; a count is in units of `unit` elements, such as the width of a row.

use crate::allocations::exempt;
use crate::args::Args;
use crate::fault::{Outcome, fault};
use crate::ranks::{self, shim::Exchange};
use crate::view::Dtype;

/// Bytes and offsets per rank, from counts.
struct Layout {
    bytes: Vec<i64>,
    at: Vec<i64>,
}

impl Layout {
    /// Refuses counts that exceed `room` bytes.
    fn new(op: &str, input: &str, room: usize, counts: &[i64], width: usize) -> Outcome<Layout> {
        let mut layout = Layout {
            bytes: Vec::with_capacity(counts.len()),
            at: Vec::with_capacity(counts.len()),
        };
        let mut end = 0i64;
        for count in counts {
            let bytes = count * width as i64;
            layout.bytes.push(bytes);
            layout.at.push(end);
            end += bytes;
            if *count < 0 || end > room as i64 {
                let got = format!("counts that ask for {end} bytes or more");
                return Err(fault("shape", op, input, format!("at most {room} bytes"), got));
            }
        }
        Ok(layout)
    }
}

fn same_dtype(op: &str, send: Dtype, receive: Dtype) -> Outcome {
    match send == receive {
        true => Ok(()),
        false => Err(fault("dtype", op, "receive", send.name(), receive.name())),
    }
}

/// All-to-all: rank i gets the i-th part of `send`; part i of `receive` comes from rank i.
pub fn comm_all_to_all_v(args: &mut Args) -> Outcome {
    let comm = args.usize("comm")? as i32;
    let unit = args.usize("unit")?;
    let ((send, dtype), send_counts) = (args.raw("send")?, args.slice::<i64>("send_counts")?);
    let ((receive, received), receive_counts) = (args.raw_mut("receive")?, args.slice::<i64>("receive_counts")?);
    same_dtype(args.op, dtype, received)?;
    let (op, width) = (args.op, unit * dtype.bytes());
    if send_counts.is_empty() || send_counts.len() != receive_counts.len() {
        let got = format!("{} and {}", send_counts.len(), receive_counts.len());
        return Err(fault("shape", op, "counts", "one for each rank", got));
    }
    args.work(move |_| {
        exempt(|| {
            let from = Layout::new(op, "send_counts", send.len(), send_counts, width)?;
            let to = Layout::new(op, "receive_counts", receive.len(), receive_counts, width)?;
            ranks::exchange(
                comm,
                Exchange::AllToAll {
                    send: send.as_ptr(),
                    send_bytes: from.bytes.as_ptr(),
                    send_at: from.at.as_ptr(),
                    receive: receive.as_mut_ptr(),
                    receive_bytes: to.bytes.as_ptr(),
                    receive_at: to.at.as_ptr(),
                },
            )
        })
    })
}

/// All-gather: part i of `receive` comes from rank i; this rank's part is `send`, or already in place.
pub fn comm_all_gather_v(args: &mut Args) -> Outcome {
    let comm = args.usize("comm")? as i32;
    let rank = args.usize("rank")?;
    let unit = args.usize("unit")?;
    let send = args.raw_opt("send")?;
    let ((receive, received), counts) = (args.raw_mut("receive")?, args.slice::<i64>("counts")?);
    if let Some((_, dtype)) = send {
        same_dtype(args.op, dtype, received)?;
    }
    let (op, width) = (args.op, unit * received.bytes());
    args.work(move |_| {
        exempt(|| {
            let to = Layout::new(op, "counts", receive.len(), counts, width)?;
            let bytes = to.bytes.get(rank).copied().unwrap_or(0);
            let into = receive.as_mut_ptr();
            let from = match send {
                Some((send, _)) => {
                    Layout::new(op, "send", send.len(), &[bytes], 1)?;
                    send.as_ptr()
                }
                None => into.wrapping_add(to.at.get(rank).copied().unwrap_or(0) as usize),
            };
            ranks::exchange(
                comm,
                Exchange::AllGather {
                    send: from,
                    bytes,
                    receive: into,
                    receive_bytes: to.bytes.as_ptr(),
                    receive_at: to.at.as_ptr(),
                },
            )
        })
    })
}

/// Broadcast from `root`: all of `data`, or its first `counts[index]` units. Ranks have the same counts.
pub fn comm_broadcast(args: &mut Args) -> Outcome {
    let comm = args.usize("comm")? as i32;
    let root = args.usize("root")? as i32;
    let (unit, index) = (args.usize("unit")?, args.usize("index")?);
    let (data, dtype) = args.raw_mut("data")?;
    let counts = args.slice_opt::<i64>("counts")?;
    let (op, width) = (args.op, unit * dtype.bytes());
    args.work(move |_| {
        exempt(|| {
            let bytes = match counts {
                None => data.len() as i64,
                Some(counts) => {
                    let one = counts.get(index..index + 1).unwrap_or_default();
                    let layout = Layout::new(op, "counts", data.len(), one, width)?;
                    layout.bytes.first().copied().unwrap_or(0)
                }
            };
            let exchange = Exchange::Broadcast {
                data: data.as_mut_ptr(),
                bytes,
                root,
            };
            ranks::exchange(comm, exchange)
        })
    })
}

/// Counts the ids of a list before its padding of -1, into `counts[index]`, for exchanging the list.
pub fn comm_count_ids(args: &mut Args) -> Outcome {
    let index = args.usize("index")?;
    let ids = args.slice::<i32>("ids")?;
    let counts = args.slice_mut::<i64>("counts")?;
    if index >= counts.len() {
        let expected = format!("an index below {}", counts.len());
        return Err(fault("argument", args.op, "index", expected, format!("{index}")));
    }
    args.work(move |_| {
        counts[index] = ids.partition_point(|id| *id >= 0) as i64;
        Ok(())
    })
}

/// Waits until every rank has arrived.
pub fn comm_barrier(args: &mut Args) -> Outcome {
    let comm = args.usize("comm")? as i32;
    args.work(move |_| exempt(|| ranks::exchange(comm, Exchange::Barrier)))
}
