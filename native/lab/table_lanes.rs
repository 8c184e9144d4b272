//! The table's update with the same tokens in one lane, in eight parts of one lane, and in eight lanes.

use crate::ADAM;
use crate::bench::Bench;
use turbogr_kernels::embedding::{Contribution, EmbeddingUpdate, Update, embedding_update};
use turbogr_kernels::{Ctx, Mat, MatMut, RowsMut};

/// What a lane's input, positives and negatives contribute; `coef` has a column for the positive, then those of the negatives.
pub fn contributions(lane: u32, source: Mat, coef: Mat, [positives, negatives]: [Mat<i32>; 2]) -> [Contribution; 3] {
    let part = |ids: Mat<i32>, from| Contribution {
        lane,
        ids,
        source,
        coef: Some(coef.columns(from, ids.cols)),
        scale: 1.0,
        normalized: Some(1e-6),
        rounded: false,
    };
    let input = Contribution {
        coef: None,
        normalized: None,
        ..part(positives, 0)
    };
    [input, part(positives, 0), part(negatives, 1)]
}

/// `[T, D, R, V]`
pub fn time(b: &Bench, [t, d, r, v]: [usize; 4]) {
    let (mut table, source) = (b.normal(v * d, 2), b.normal(t * d, 1));
    let coef = b.normal(t * (1 + r), 5);
    let (positives, negatives) = (b.ids(t, 1, v, 3), b.ids(t, r, v, 4));
    let (mut m, mut s) = (b.zeros(v * d), b.zeros(v * d));
    let of = |lanes: usize| -> Vec<Contribution> {
        let n = t / lanes;
        (0..lanes)
            .flat_map(|lane| {
                let rows = |per: usize| lane * n * per..(lane + 1) * n * per;
                let source = Mat::new(&source[rows(d)], n, d);
                let coef = Mat::new(&coef[rows(1 + r)], n, 1 + r);
                let positives = Mat::new(&positives[rows(1)], n, 1);
                let negatives = Mat::new(&negatives[rows(r)], n, r);
                contributions(lane as u32, source, coef, [positives, negatives])
            })
            .collect()
    };
    let (one, eight) = (of(1), of(8));
    let parts: Vec<Contribution> = of(8).into_iter().map(|c| Contribution { lane: 0, ..c }).collect();
    for _ in 0..3 {
        for (name, contributions) in [("one lane", &one), ("eight parts", &parts), ("eight lanes", &eight)] {
            let bytes = (t * (r + 2) * d * 4) as f64;
            let name = format!("embedding_update lazy adam, {name}");
            b.time(&name, bytes, "GB/s of source rows", |cx| {
                update(cx, [&mut table, &mut m, &mut s], [v, d], contributions);
            });
        }
    }
}

/// Lazy Adam on a table `[V, D]` with its two moments.
pub fn update(cx: &Ctx, [table, m, s]: [&mut [f32]; 3], [v, d]: [usize; 2], contributions: &[Contribution]) {
    let args = EmbeddingUpdate {
        table: RowsMut::F32(MatMut::new(table, v, d)),
        staged: None,
        contributions,
        update: Update::LazyAdam {
            m: MatMut::new(m, v, d),
            v: MatMut::new(s, v, d),
            hyper: ADAM,
        },
        rounding: None,
        grad_scale: None,
    };
    embedding_update(cx, args).expect("update");
}
