//! Times the sparse, loss, optimiser and retrieval kernels. A single thread is timed by its CPU time.
//! `cargo run --release -p turbogr-kernels --example sparse -- [case or "all"] [rounds] [threads]`

mod bench;
mod clock;
mod table_lanes;
mod table_shared;

use bench::Bench;
use turbogr_kernels::embedding::{
    EmbeddingUpdate, Sampler, Update, draw_negatives, embedding_gather, embedding_update,
};
use turbogr_kernels::loss::{FullSoftmax, Logit, Sampled, full_softmax, sampled_softmax};
use turbogr_kernels::measure::{fma_peak, fma_peak_flops, read_bandwidth};
use turbogr_kernels::optim::{Adam, AdamW, adamw, cast_to_f16};
use turbogr_kernels::retrieval::{CountAhead, TopK, count_ahead, top_k};
use turbogr_kernels::rng::{Dropout, Key};
use turbogr_kernels::{Ctx, Grad, Mat, MatMut, Rows, RowsMut};

const LOGIT: Logit = Logit {
    temperature: 0.05,
    normalize_user: true,
    normalize_item: true,
    eps: 1e-6,
};
const ADAM: Adam = Adam {
    lr: 1e-3,
    beta1: 0.9,
    beta2: 0.98,
    eps: 1e-8,
    weight_decay: 0.0,
    step: 7,
};

/// Sampled softmax and the table's update, `[T, D, R, V]`.
fn sampled(b: &Bench, [t, d, r, v]: [usize; 4], half: bool) {
    let (u, mut table) = (b.normal(t * d, 1), b.normal(v * d, 2));
    let (positives, negatives) = (b.ids(t, 1, v, 3), b.ids(t, r, v, 4));
    let mut halves = b.cx.scratch::<u16>(if half { v * d } else { 0 });
    if half {
        cast_to_f16(&b.cx, &table, &mut halves).expect("cast");
        table = b.zeros(0);
    }
    let mut rows = || match half {
        true => RowsMut::F16(MatMut::new(&mut halves, v, d)),
        false => RowsMut::F32(MatMut::new(&mut table, v, d)),
    };
    let (mut du, mut coef, mut uhat) = (vec![0.0; t * d], vec![0.0; t * (1 + r)], vec![0.0; t * d]);
    let mut loss = 0.0;
    let name = format!("T={t} D={d} R={r} V={v} {}", if half { "f16" } else { "f32" });
    let bytes = (t * (r + 1) * d * if half { 2 } else { 4 }) as f64;
    b.time(&format!("sampled_softmax {name}"), bytes, "GB/s of rows", |cx| {
        let args = Sampled {
            u: Mat::new(&u, t, d),
            table: rows().as_ref(),
            vocabulary: rows().as_ref().rows(),
            positives: &positives,
            negatives: Mat::new(&negatives, t, r),
            fetched: None,
            positive_rows: None,
            segment: turbogr_kernels::loss::Segment::whole(t),
            logit: LOGIT,
            mean_over: None,
            loss: &mut loss,
            du: Grad::overwrite(MatMut::new(&mut du, t, d)),
            coef: MatMut::new(&mut coef, t, 1 + r),
            uhat: MatMut::new(&mut uhat, t, d),
        };
        sampled_softmax(cx, args, None).expect("loss");
    });
    let ids = [Mat::new(&positives, t, 1), Mat::new(&negatives, t, r)];
    let contributions = table_lanes::contributions(0, Mat::new(&uhat, t, d), Mat::new(&coef, t, 1 + r), ids);
    let mut apply = |cx: &Ctx, update: Update| {
        let args = EmbeddingUpdate {
            table: rows(),
            staged: None,
            contributions: &contributions,
            update,
            rounding: None,
            grad_scale: None,
        };
        embedding_update(cx, args).expect("update");
    };
    let sources = (t * (r + 2) * d * 4) as f64;
    if v * d <= 100_000_000 {
        let mut grad = b.zeros(v * d);
        b.time(
            &format!("embedding_update dense {name}"),
            sources,
            "GB/s of source rows",
            |cx| {
                let update = Update::Dense {
                    grad: Grad::overwrite(MatMut::new(&mut grad, v, d)),
                };
                apply(cx, update);
            },
        );
    }
    let mut touched = [&positives[..], &negatives[..]].concat();
    touched.sort_unstable();
    touched.dedup();
    let element = if half { 2 } else { 4 };
    let mut state = vec![0.0; v];
    let bytes = (touched.len() * d * 2 * element) as f64;
    b.time(
        &format!("embedding_update row adagrad {name}"),
        bytes,
        "GB/s of touched rows",
        |cx| {
            let update = Update::RowAdagrad {
                state: &mut state,
                lr: 1e-3,
                eps: 1e-8,
                weight_decay: 0.0,
            };
            apply(cx, update);
        },
    );
    let (mut m, mut s) = (b.zeros(v * d), b.zeros(v * d));
    let bytes = (touched.len() * d * (2 * element + 16)) as f64;
    b.time(
        &format!("embedding_update lazy adam {name}"),
        bytes,
        "GB/s of touched rows",
        |cx| {
            let update = Update::LazyAdam {
                m: MatMut::new(&mut m, v, d),
                v: MatMut::new(&mut s, v, d),
                hyper: ADAM,
            };
            apply(cx, update);
        },
    );
}

/// `[T, D, V]`
fn full(b: &Bench, [t, d, v]: [usize; 3]) {
    let (u, table, positives) = (b.normal(t * d, 1), b.normal(v * d, 2), b.ids(t, 1, v, 3));
    let (mut du, mut dtable, mut loss) = (vec![0.0; t * d], vec![0.0; v * d], 0.0);
    b.time(
        &format!("full_softmax T={t} D={d} V={v}"),
        6.0 * (t * d * v) as f64,
        "GFLOP/s",
        |cx| {
            let args = FullSoftmax {
                u: Mat::new(&u, t, d),
                table: Rows::F32(Mat::new(&table, v, d)),
                positives: &positives,
                logit: LOGIT,
                smoothing: 0.0,
                mean_over: None,
                loss: &mut loss,
                du: Grad::overwrite(MatMut::new(&mut du, t, d)),
                dtable: Grad::overwrite(MatMut::new(&mut dtable, v, d)),
            };
            full_softmax(cx, args).expect("loss");
        },
    );
}

/// `[Q, D, V]`
fn retrieval(b: &Bench, [q, d, v]: [usize; 3], k: usize) {
    let (queries, table, targets) = (b.normal(q * d, 1), b.normal(v * d, 2), b.ids(q, 1, v, 3));
    let bars = b.normal(q, 4);
    let (mut ids, mut scores, mut counts) = (vec![0; q * k], vec![0.0; q * k], vec![0; q]);
    let flops = 2.0 * (q * d * v) as f64;
    let (queries, table) = (Mat::new(&queries, q, d), Rows::F32(Mat::new(&table, v, d)));
    b.time(&format!("top_k Q={q} D={d} V={v} k={k}"), flops, "GFLOP/s", |cx| {
        let (ids, scores) = (MatMut::new(&mut ids, q, k), MatMut::new(&mut scores, q, k));
        top_k(
            cx,
            TopK {
                queries,
                table,
                excluded: None,
                ids,
                scores,
            },
        )
        .expect("top_k");
    });
    b.time(&format!("count_ahead Q={q} D={d} V={v}"), flops, "GFLOP/s", |cx| {
        let args = CountAhead {
            queries,
            table,
            bars: &bars,
            places: &targets,
            excluded: None,
            counts: &mut counts,
        };
        count_ahead(cx, args).expect("count_ahead");
    });
}

fn dense(b: &Bench) {
    let n = 8 << 20;
    let (mut p, g, mut m, mut v) = (b.normal(n, 1), b.normal(n, 2), b.zeros(n), b.zeros(n));
    b.time("adamw 8 M parameters", (n * 28) as f64, "GB/s", |cx| {
        adamw(
            cx,
            AdamW {
                p: &mut p,
                g: &g,
                m: &mut m,
                v: &mut v,
                hyper: ADAM,
                grad_scale: None,
            },
        )
        .expect("step");
    });
    let (t, d, items) = (15_000, 50, 3883);
    let (table, ids) = (b.normal(items * d, 3), b.ids(t, 1, items, 4));
    let mut out = vec![0.0; t * d];
    let dropout = Dropout::new(Key(1, 2), 0.2);
    b.time(
        "embedding_gather T=15000 D=50 dropout",
        (t * d * 8) as f64,
        "GB/s",
        |cx| {
            let args = embedding_gather::Forward {
                table: Rows::F32(Mat::new(&table, items, d)),
                ids: &ids,
                scale: 7.07,
                positions: None,
                dropout,
                accumulate: false,
                out: MatMut::new(&mut out, t, d),
            };
            embedding_gather::forward(cx, args).expect("gather");
        },
    );
    let mut drawn = vec![0; t * 128];
    b.time(
        "draw_negatives uniform T=15000 R=128",
        (t * 128 * 4) as f64,
        "GB/s",
        |cx| {
            let sampler = Sampler::Uniform {
                first: 0,
                count: items as u32,
            };
            draw_negatives(cx, Key(1, 2), sampler, MatMut::new(&mut drawn, t, 128)).expect("draws");
        },
    );
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let number = |at: usize, default: usize| args.get(at).map_or(default, |x| x.parse().expect("a number"));
    let case = args.get(1).cloned().unwrap_or("all".into());
    let b = Bench {
        cx: Ctx::new(number(3, 1)),
        case,
        rounds: number(2, 7),
    };
    b.time("fma peak", fma_peak_flops(&b.cx, 200_000), "GFLOP/s", |cx| {
        std::hint::black_box(fma_peak(cx, 200_000));
    });
    if b.case != "small" {
        let big = b.normal(64 << 20, 9);
        b.time("read bandwidth 256 MB", 4.0 * big.len() as f64, "GB/s", |cx| {
            std::hint::black_box(read_bandwidth(cx, &big));
        });
    }
    if b.wants("small") {
        sampled(&b, [15_000, 50, 128, 3883], false);
    }
    if b.wants("large") {
        sampled(&b, [8192, 256, 128, 100_000], false);
        sampled(&b, [8192, 256, 128, 100_000], true);
    }
    if b.wants("huge") {
        sampled(&b, [2048, 256, 128, 1_000_000], true);
    }
    if b.wants("lanes") {
        table_lanes::time(&b, [16_384, 256, 128, 10_000]);
        table_lanes::time(&b, [1024, 256, 512, 2500]);
    }
    if b.wants("shared") {
        table_shared::time(&b, [8192, 256, 32, 200_000]);
    }
    if b.wants("full") {
        full(&b, [15_000, 50, 3883]);
        full(&b, [2048, 256, 20_000]);
    }
    if b.wants("retrieval") {
        retrieval(&b, [6040, 50, 3883], 10);
        retrieval(&b, [512, 256, 100_000], 200);
        retrieval(&b, [1, 256, 100_000], 100);
    }
    if b.wants("dense") {
        dense(&b);
    }
}
