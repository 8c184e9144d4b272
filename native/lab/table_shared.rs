//! The table's update for R negatives per token, for twice and four times as many, and for R shared by two and by four tokens.

use crate::bench::Bench;
use crate::table_lanes::update;
use turbogr_kernels::Mat;
use turbogr_kernels::embedding::Contribution;

/// `[T, D, R, V]`
pub fn time(b: &Bench, [t, d, r, v]: [usize; 4]) {
    let (mut table, source) = (b.normal(v * d, 2), b.normal(t * d, 1));
    let coef = b.normal(t * 4 * r, 5);
    let ids = b.ids(t, 4 * r, v, 4);
    let (mut m, mut s) = (b.zeros(v * d), b.zeros(v * d));
    for _ in 0..3 {
        for (per, k) in [(r, 1), (2 * r, 1), (4 * r, 1), (r, 2), (r, 4), (2 * r, 2)] {
            // A group of k tokens has k R ids.
            let (rows, cols) = (t / k, per * k);
            let contributions = [Contribution {
                lane: 0,
                ids: Mat::new(&ids[..rows * cols], rows, cols),
                source: Mat::new(&source, t, d),
                coef: Some(Mat::new(&coef[..rows * cols * k], rows, cols * k)),
                scale: 1.0,
                normalized: Some(1e-6),
                rounded: false,
            }];
            let bytes = (rows * cols * k * d * 4) as f64;
            let name = format!("embedding_update lazy adam, R={per} k={k}");
            b.time(&name, bytes, "GB/s of source rows", |cx| {
                update(cx, [&mut table, &mut m, &mut s], [v, d], &contributions);
            });
        }
    }
}
