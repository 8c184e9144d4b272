//! FuXi attention with its time channel as a function of time against the bucketed one, interleaved in one process.
//! `cargo run --release -p turbogr-kernels --example time_channel -- [rounds] [threads] [heads]`
//!
//! Prints milliseconds (shortest) and buckets / function: median of the rounds' ratios, and ratio of the shortest times.

mod clock;

use clock::clock;
use turbogr_kernels::attention::{Backward, Bias, Forward, Inputs, TimeBias, TimeTerm, fuxi_attention};
use turbogr_kernels::rng::{Key, uniform, word};
use turbogr_kernels::{Ctx, Grad, Mat, MatMut};

const WIDTH: usize = 64;
const TOKENS: usize = 8192;
const DAY: f32 = 86_400.0;

fn draw(i: usize) -> f32 {
    uniform(word(Key(1, 2), i as u64))
}

/// Lengths of mean 200, ln of them normally distributed with deviation 0.8.
fn lognormal() -> Vec<usize> {
    let (mut lengths, mut left, mut at) = (Vec::new(), TOKENS, 0);
    while left > 0 {
        let normal = (-2.0 * (1.0 - draw(at)).ln()).sqrt() * (std::f32::consts::TAU * draw(at + 1)).cos();
        let length = (200.0 * (0.8 * normal - 0.32).exp()).round().max(2.0) as usize;
        lengths.push(length.min(left));
        left -= length.min(left);
        at += 2;
    }
    lengths
}

fn main() {
    let argument = |at: usize, default: usize| {
        let given = std::env::args().nth(at);
        given.and_then(|x| x.parse().ok()).unwrap_or(default)
    };
    let (rounds, threads, heads) = (argument(1, 9), argument(2, 1), argument(3, 8));
    let cx = Ctx::new(threads);
    println!("{heads} heads of {WIDTH}, {threads} threads, {rounds} rounds: forward, backward, both");
    for (name, lengths) in [("mean 200", lognormal()), ("2048", vec![2048; 4])] {
        for (beta, weight) in [("1", 0.5413), ("0.5", -0.4328), ("2", 1.8546)] {
            compare(&cx, &format!("{name} beta {beta}"), &lengths, heads, weight, rounds);
        }
    }
}

fn compare(cx: &Ctx, name: &str, lengths: &[usize], heads: usize, beta: f32, rounds: usize) {
    let wide = heads * WIDTH;
    let n = lengths.iter().max().copied().unwrap_or(1);
    let (mut offsets, mut times, mut query_times) = (vec![0], Vec::new(), Vec::new());
    for length in lengths {
        offsets.push(offsets[offsets.len() - 1] + *length as i32);
        // Minutes within a session, occasionally days between sessions, as in `src/bench/random-batch.ts`.
        let mut now = 1_650_000_000;
        for _ in 0..*length {
            times.push(now);
            let at = times.len();
            let far = if draw(at + 90_000) < 0.05 { 1500.0 } else { 1.0 };
            now += (-60.0 * (1.0 - draw(at)).ln() * far).round() as i64;
            query_times.push(now);
        }
    }
    let fill = |len: usize| {
        let mut lease = cx.scratch::<f32>(len);
        lease.iter_mut().enumerate().for_each(|(i, x)| *x = draw(i) - 0.5);
        lease
    };
    let qkv = fill(TOKENS * 3 * wide);
    let (d_o, pos_w, ts_w) = (fill(TOKENS * wide * 3), fill(2 * n - 1), fill(129));
    let all = Mat::new(&qkv, TOKENS, 3 * wide);
    let [q, k, v] = [0, wide, 2 * wide].map(|from| all.columns(from, wide).into());
    let (mut o, mut d_qkv, mut dpos, mut dts) = (
        fill(TOKENS * wide * 3),
        fill(TOKENS * 3 * wide),
        fill(2 * n - 1),
        fill(129),
    );
    let (o, grads) = (
        MatMut::new(&mut o, TOKENS, wide * 3),
        MatMut::new(&mut d_qkv, TOKENS, 3 * wide),
    );
    let [dq, dk, dv] = [0, wide, 2 * wide].map(|from| Grad::overwrite(grads.columns(from, wide).into()));
    let weights = [0.02, beta, 1.3863];
    let terms = [
        TimeTerm::Buckets(&ts_w),
        TimeTerm::Power {
            weights: &weights,
            unit: DAY,
        },
    ];
    let mut taken = [const { [const { Vec::new() }; 3] }; 2];
    for round in 0..=rounds {
        for (term, taken) in terms.into_iter().zip(&mut taken) {
            let entries = if matches!(term, TimeTerm::Buckets(_)) { 129 } else { 3 };
            let time = Some(TimeBias {
                term,
                times: &times,
                query_times: &query_times,
            });
            let bias = Some(Bias { pos_w: &pos_w, time });
            let x = Inputs {
                q,
                k,
                v,
                heads,
                offsets: &offsets,
                n,
                bias,
            };
            let start = clock(cx);
            fuxi_attention::forward(cx, &Forward { x, o }).expect("valid input");
            let middle = clock(cx);
            let backward = Backward {
                x,
                d_o: Mat::new(&d_o, TOKENS, wide * 3),
                dq,
                dk,
                dv,
                dpos_w: Some(Grad::overwrite(MatMut::new(&mut dpos, 1, 2 * n - 1))),
                dts_w: Some(Grad::overwrite(MatMut::new(&mut dts[..entries], 1, entries))),
            };
            fuxi_attention::backward(cx, &backward).expect("valid input");
            let end = clock(cx);
            if round > 0 {
                let times = [middle - start, end - middle, end - start];
                taken.iter_mut().zip(times).for_each(|(all, time)| all.push(time));
            }
        }
    }
    let least = |times: &[f64]| times.iter().copied().fold(f64::MAX, f64::min);
    print!("{name:>18}");
    let [buckets, function] = &taken;
    for (buckets, function) in buckets.iter().zip(function) {
        let mut ratios: Vec<f64> = buckets.iter().zip(function).map(|(b, f)| b / f).collect();
        ratios.sort_by(f64::total_cmp);
        print!(
            "   {:6.1} -> {:6.1} ms x{:.3} (x{:.3})",
            1e3 * least(buckets),
            1e3 * least(function),
            ratios[ratios.len() / 2],
            least(buckets) / least(function)
        );
    }
    println!();
}
