//! Times the linear kernels against the FMA peak of the same run, and against the `gemm` crate.
//!
//! `cargo run --release [-- D... name...]`: rows of D, direction, GFLOP/s and share of peak at 1 and 2 threads, best of the
//! rounds and their median. Rounds of all contestants are interleaved, since the machine is shared.

mod layers;
mod products;

use turbogr_kernels::{Ctx, measure};

/// Tokens of every case.
const TOKENS: usize = 8192;
/// A case is repeated for about this long, within these rounds.
const SECONDS: f64 = 0.5;
const ROUNDS: std::ops::Range<usize> = 5..200;

/// Something to time: its name and its FLOPs.
pub struct Contestant<'a> {
    pub name: &'static str,
    pub flops: f64,
    pub run: Box<dyn FnMut() + 'a>,
}

/// CPU time for one thread, so that a busy machine disturbs less; wall time for several.
fn seconds(threads: usize, f: &mut dyn FnMut()) -> f64 {
    let clock = if threads == 1 {
        libc::CLOCK_THREAD_CPUTIME_ID
    } else {
        libc::CLOCK_MONOTONIC
    };
    let now = || {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the clock writes its time there.
        unsafe { libc::clock_gettime(clock, &mut time) };
        time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
    };
    let start = now();
    f();
    now() - start
}

/// Interleaved rounds of the peak and every contestant; one line each.
fn race(cx: &Ctx, title: &str, mut contestants: Vec<Contestant>) {
    const FMA_ROUNDS: usize = 400_000;
    let mut peaks = Vec::new();
    let mut spent = 0.0;
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| arg.parse::<usize>().is_err())
        .collect();
    contestants.retain(|contestant| wanted.is_empty() || wanted.iter().any(|name| name == contestant.name));
    if contestants.is_empty() {
        return;
    }
    let mut times = vec![Vec::new(); contestants.len()];
    for contestant in &mut contestants {
        (contestant.run)(); // warm
    }
    for round in 0..ROUNDS.end {
        if round >= ROUNDS.start && spent > SECONDS * contestants.len() as f64 {
            break;
        }
        let peak = seconds(cx.pool.threads(), &mut || {
            std::hint::black_box(measure::fma_peak(cx, FMA_ROUNDS));
        });
        peaks.push(measure::fma_peak_flops(cx, FMA_ROUNDS) / peak);
        for (contestant, times) in contestants.iter_mut().zip(&mut times) {
            let time = seconds(cx.pool.threads(), &mut contestant.run);
            times.push(contestant.flops / time);
            spent += time;
        }
    }
    peaks.sort_by(f64::total_cmp);
    let peak = peaks[peaks.len() - 1];
    for (contestant, rates) in contestants.iter().zip(&mut times) {
        rates.sort_by(f64::total_cmp);
        let (best, median) = (rates[rates.len() - 1], rates[rates.len() / 2]);
        println!(
            "{title:<18} {:<26} {:>6.1} GFLOP/s best {:>5.1} % of peak, median {:>5.1} % of median peak",
            contestant.name,
            best / 1e9,
            100.0 * best / peak,
            100.0 * median / peaks[peaks.len() / 2],
        );
    }
}

fn main() {
    let mut widths: Vec<usize> = std::env::args().skip(1).filter_map(|d| d.parse().ok()).collect();
    if widths.is_empty() {
        widths = vec![50, 256, 512, 1024];
    }
    for threads in threads() {
        let cx = Ctx::new(threads);
        for &d in &widths {
            products::race_products(&cx, d);
            layers::race_layers(&cx, d);
        }
    }
}

/// `THREADS=1` restricts the run to one number of threads.
fn threads() -> Vec<usize> {
    match std::env::var("THREADS").ok().and_then(|threads| threads.parse().ok()) {
        Some(threads) => vec![threads],
        None => vec![1, 2],
    }
}
