//! Clocks and reference measurements, run in stream order like any op.

use crate::args::Args;
use crate::fault::{Outcome, fault};
use crate::spans;
use turbogr_kernels::measure;

fn nanoseconds() -> i64 {
    spans::nanoseconds() as i64
}

fn counters(args: &mut Args, least: usize) -> Outcome<&'static mut [i64]> {
    let out = args.slice_mut::<i64>("out")?;
    match out.len() >= least {
        true => Ok(out),
        false => Err(fault(
            "shape",
            args.op,
            "out",
            format!("{least} elements or more"),
            format!("{}", out.len()),
        )),
    }
}

/// Writes the time at this point of the stream, in nanoseconds, to element `index` of an i64 tensor.
pub fn clock(args: &mut Args) -> Outcome {
    let index = args.usize("index")?;
    let out = counters(args, index + 1)?;
    args.work(move |_| {
        out[index] = nanoseconds();
        Ok(())
    })
}

/// Runs only FMAs on every thread; writes FLOPs and nanoseconds.
pub fn fma_peak(args: &mut Args) -> Outcome {
    let rounds = args.usize("rounds")?;
    let out = counters(args, 2)?;
    args.work(move |site| {
        let start = nanoseconds();
        std::hint::black_box(measure::fma_peak(site.cx, rounds));
        out[1] = nanoseconds() - start;
        out[0] = measure::fma_peak_flops(site.cx, rounds) as i64;
        Ok(())
    })
}

/// Reads a tensor once over every thread; writes bytes and nanoseconds.
pub fn read_bandwidth(args: &mut Args) -> Outcome {
    let data = args.slice::<f32>("data")?;
    let out = counters(args, 2)?;
    args.work(move |site| {
        let start = nanoseconds();
        std::hint::black_box(measure::read_bandwidth(site.cx, data));
        out[1] = nanoseconds() - start;
        out[0] = size_of_val(data) as i64;
        Ok(())
    })
}
