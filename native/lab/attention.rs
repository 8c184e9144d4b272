//! Times the attention kernels against the FMA peak of the same run.
//! `cargo run --release -p turbogr-kernels --example attention -- [hstu|fuxi|softmax] [rounds] [threads]`
//!
//! Useful FLOPs only: causal pairs, nothing padded, scores recomputed in backward not counted.

mod clock;

use clock::clock;
use turbogr_kernels::attention::{
    Backward, Bias, Forward, Inputs, TimeBias, TimeTerm, fuxi_attention, hstu_attention, softmax_attention,
};
use turbogr_kernels::measure::{fma_peak, fma_peak_flops};
use turbogr_kernels::rng::{Dropout, Key, uniform, word};
use turbogr_kernels::{Ctx, Grad, Mat, MatMut};

struct Shape {
    name: &'static str,
    lengths: Vec<usize>,
    heads: usize,
    width: usize,
}

fn draw(i: usize) -> f32 {
    uniform(word(Key(1, 2), i as u64))
}

/// Lengths with this mean, ln of them normally distributed with deviation 0.8, until `tokens` are reached.
fn lognormal(mean: f32, tokens: usize) -> Vec<usize> {
    let (mut lengths, mut total, mut at) = (Vec::new(), 0, 0);
    while total < tokens {
        let normal = (-2.0 * (1.0 - draw(at)).ln()).sqrt() * (std::f32::consts::TAU * draw(at + 1)).cos();
        let length = ((mean.ln() - 0.32 + 0.8 * normal).exp().round() as usize).clamp(1, 20 * mean as usize);
        lengths.push(length.min(tokens - total));
        total += length;
        at += 2;
    }
    lengths
}

/// FLOP/s of nothing but FMAs, now.
fn peak(cx: &Ctx) -> f64 {
    let rounds = 60_000;
    let start = clock(cx);
    std::hint::black_box(fma_peak(cx, rounds));
    fma_peak_flops(cx, rounds) / (clock(cx) - start)
}

/// Shares of the peak, median and best: each run against the better of the peaks before and after it.
fn share(cx: &Ctx, flops: f64, rounds: usize, mut run: impl FnMut()) -> (f64, f64) {
    run();
    let mut shares = Vec::new();
    for _ in 0..rounds {
        let before = peak(cx);
        let start = clock(cx);
        run();
        let speed = flops / (clock(cx) - start);
        shares.push(speed / before.max(peak(cx)));
    }
    shares.sort_by(f64::total_cmp);
    (shares[shares.len() / 2], shares[shares.len() - 1])
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let op = arguments.get(1).map_or("hstu", String::as_str);
    let rounds = arguments.get(2).and_then(|rounds| rounds.parse().ok()).unwrap_or(15);
    let only: Option<usize> = arguments.get(3).and_then(|threads| threads.parse().ok());
    let shape = |name, lengths, heads, width| Shape {
        name,
        lengths,
        heads,
        width,
    };
    let shapes = [
        shape("lognormal 200", lognormal(200.0, 8192), 4, 64),
        shape("lognormal 1000", lognormal(1000.0, 8192), 4, 64),
        shape("2048", vec![2048; 2], 4, 64),
        shape("8192 + 1 + 0", vec![8192, 1, 0], 4, 64),
        shape("lognormal 200", lognormal(200.0, 8192), 8, 32),
        shape("lognormal 200", lognormal(200.0, 8192), 2, 128),
        shape("lognormal 200", lognormal(200.0, 8192), 2, 25),
        shape("lognormal 200", lognormal(200.0, 8192), 1, 50),
    ];
    println!("{op}: share of FMA peak median (best) of {rounds}");
    for Shape {
        name,
        lengths,
        heads,
        width,
    } in shapes
    {
        for (biased, threads) in [(false, 1), (true, 1), (false, 2), (true, 2)] {
            if only.is_some_and(|only| only != threads) {
                continue;
            }
            if op == "softmax" && biased {
                continue;
            }
            let cx = Ctx::new(threads);
            let [forward, backward] = time(&cx, op, &lengths, heads, width, biased, rounds);
            println!(
                "{name:>16} h {heads} x {width:<3} bias {biased:<5} threads {threads}: \
                 forward {:4.1} ({:4.1}) %, backward {:4.1} ({:4.1}) %",
                100.0 * forward.0,
                100.0 * forward.1,
                100.0 * backward.0,
                100.0 * backward.1
            );
        }
    }
}

fn time(
    cx: &Ctx,
    op: &str,
    lengths: &[usize],
    heads: usize,
    width: usize,
    biased: bool,
    rounds: usize,
) -> [(f64, f64); 2] {
    let (tokens, wide) = (lengths.iter().sum::<usize>(), heads * width);
    let channels = if op == "fuxi" { 3 } else { 1 };
    let mut offsets = vec![0];
    lengths
        .iter()
        .for_each(|n| offsets.push(offsets[offsets.len() - 1] + *n as i32));
    let n = lengths.iter().max().unwrap() + 11;
    // From the arena, as tensors are: large blocks lie in huge pages.
    let fill = |len: usize| {
        let mut lease = cx.scratch::<f32>(len);
        lease.iter_mut().enumerate().for_each(|(i, x)| *x = draw(i) - 0.5);
        lease
    };
    // [U|V|Q|K] as the projection leaves it.
    let uvqk = fill(tokens * 4 * wide);
    let (d_o, pos_w, ts_w) = (fill(tokens * wide * channels), fill(2 * n - 1), fill(129));
    // Events in sessions: seconds to minutes apart, now and then a day.
    let mut times = Vec::new();
    let mut now = 1_600_000_000;
    for i in 0..tokens {
        now += (10f32.powf(3.0 * draw(i)) * if draw(i + 7) < 0.05 { 100.0 } else { 1.0 }) as i64;
        times.push(now);
    }
    let query_times: Vec<i64> = (0..tokens)
        .map(|i| if i + 1 < tokens { times[i + 1] } else { times[i] })
        .collect();
    let all = Mat::new(&uvqk, tokens, 4 * wide);
    let (v, q, k) = (
        all.columns(wide, wide).into(),
        all.columns(2 * wide, wide).into(),
        all.columns(3 * wide, wide).into(),
    );
    let time = Some(TimeBias {
        term: TimeTerm::Buckets(&ts_w),
        times: &times,
        query_times: &query_times,
    });
    let bias = biased.then_some(Bias { pos_w: &pos_w, time });
    let x = Inputs {
        q,
        k,
        v,
        heads,
        offsets: &offsets,
        n,
        bias,
    };
    let (mut o, mut lse) = (fill(tokens * wide * channels), fill(tokens * heads));
    let (mut duvqk, mut dpos, mut dts) = (fill(tokens * 4 * wide), fill(2 * n - 1), fill(129));
    let (o, lse) = (
        MatMut::new(&mut o, tokens, wide * channels),
        MatMut::new(&mut lse, tokens, heads),
    );
    let d_o = Mat::new(&d_o, tokens, wide * channels);
    let grads = MatMut::new(&mut duvqk, tokens, 4 * wide);
    let [dv, dq, dk] = [wide, 2 * wide, 3 * wide].map(|from| Grad::overwrite(grads.columns(from, wide).into()));
    let dpos_w = biased.then(|| Grad::overwrite(MatMut::new(&mut dpos, 1, 2 * n - 1)));
    let dts_w = biased.then(|| Grad::overwrite(MatMut::new(&mut dts, 1, 129)));
    let pairs: usize = lengths.iter().map(|n| n * (n + 1) / 2).sum();
    // Products of a pair and head in forward, each 2 * width FLOPs; twice as many in backward.
    let products = if op == "fuxi" && biased { 4 } else { 2 };
    let flops = (pairs * heads * 2 * width * products) as f64;
    let softmax = softmax_attention::SoftmaxInputs {
        q,
        k,
        v,
        heads,
        offsets: &offsets,
        scale: 0.125,
        dropout: Dropout::off(),
    };
    let forward = share(cx, flops, rounds, || {
        match op {
            "hstu" => hstu_attention::forward(cx, &Forward { x, o }),
            "fuxi" => fuxi_attention::forward(cx, &Forward { x, o }),
            _ => softmax_attention::forward(cx, &softmax_attention::Forward { x: softmax, o, lse }),
        }
        .expect("valid input")
    });
    let relative = Backward {
        x,
        d_o,
        dq,
        dk,
        dv,
        dpos_w,
        dts_w,
    };
    let backward = share(cx, 2.0 * flops, rounds, || {
        match op {
            "hstu" => hstu_attention::backward(cx, &relative),
            "fuxi" => fuxi_attention::backward(cx, &relative),
            _ => {
                let (o, lse) = (o.as_ref(), lse.as_ref());
                softmax_attention::backward(
                    cx,
                    &softmax_attention::Backward {
                        x: softmax,
                        o,
                        lse,
                        d_o,
                        dq,
                        dk,
                        dv,
                    },
                )
            }
        }
        .expect("valid input")
    });
    [forward, backward]
}
