//! Plain products of the shapes of a block's input projection, N = 4D: forward, data gradient, weight gradient.

use crate::{Contestant, TOKENS, race};
use turbogr_kernels::gemm::{Finish, Right, Shape, multiply, outer};
use turbogr_kernels::simd::{LANES, Simd};
use turbogr_kernels::{Ctx, Grad, Mat, MatMut};

/// Stores the product and nothing else.
struct Store(MatMut);

impl Finish for Store {
    #[inline(always)]
    unsafe fn take<V: Simd>(&self, i: usize, j: usize, n: usize, acc: *mut f32) {
        for at in (0..n).step_by(LANES) {
            // SAFETY: the driver's promise: `n` results of row `i` from column `j` on.
            unsafe { V::load(acc.add(at)).store_upto(self.0.at(i, j + at), n - at) };
        }
    }
}

/// `dst = A B` by the `gemm` crate; strides are `[column, row]`.
fn by_gemm(
    cx: &Ctx,
    [m, n, k]: [usize; 3],
    dst: MatMut,
    (a, a_strides): (Mat, [isize; 2]),
    (b, b_strides): (Mat, [isize; 2]),
) {
    let parallelism = match cx.pool.threads() {
        1 => gemm::Parallelism::None,
        threads => gemm::Parallelism::Rayon(threads),
    };
    // SAFETY: the views cover the shapes.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            dst.ptr,
            1,
            dst.stride as isize,
            false,
            a.ptr,
            a_strides[0],
            a_strides[1],
            b.ptr,
            b_strides[0],
            b_strides[1],
            0.0,
            1.0,
            false,
            false,
            false,
            parallelism,
        );
    }
}

pub fn race_products(cx: &Ctx, d: usize) {
    let (t, n) = (TOKENS, 4 * d);
    let fill = |len: usize| -> Vec<f32> { (0..len).map(|i| (i % 17) as f32 * 0.1 - 0.8).collect() };
    let mut buffers = [
        cx.scratch::<f32>(t * d),
        cx.scratch(t * n),
        cx.scratch(d * n),
        cx.scratch(t * n.max(d)),
        cx.scratch(d * n),
    ];
    for buffer in &mut buffers {
        let values = fill(buffer.len());
        buffer.copy_from_slice(&values);
    }
    let [x, dy, w, out, dw] = &mut buffers;
    let (x, dy, w) = (Mat::new(x, t, d), Mat::new(dy, t, n), Mat::new(w, d, n));
    let (y, dx, dw) = (MatMut::new(out, t, n), MatMut::new(out, t, d), MatMut::new(dw, d, n));
    let flops = 2.0 * (t * d * n) as f64;
    let row = |m: Mat| (m, [1, m.stride as isize]);
    let turned = |m: Mat| (m, [m.stride as isize, 1]);
    let contest = |name, run: Box<dyn FnMut()>| Contestant { name, flops, run };
    let title = format!("{} thr  D={d}", cx.pool.threads());
    let contestants = vec![
        contest(
            "forward",
            Box::new(|| multiply(cx, Shape { m: t, n, k: d }, &x, Right::Plain(w), &Store(y))),
        ),
        contest(
            "forward, gemm crate",
            Box::new(|| by_gemm(cx, [t, n, d], y, row(x), row(w))),
        ),
        contest(
            "data gradient",
            Box::new(|| multiply(cx, Shape { m: t, n: d, k: n }, &dy, Right::Transposed(w), &Store(dx))),
        ),
        contest(
            "data gradient, gemm crate",
            Box::new(|| by_gemm(cx, [t, d, n], dx, row(dy), turned(w))),
        ),
        contest(
            "weight gradient",
            Box::new(|| outer(cx, t, &x, &dy, Grad::overwrite(dw), None)),
        ),
        contest(
            "weight gradient, gemm crate",
            Box::new(|| by_gemm(cx, [d, n, t], dw, turned(x), row(dy))),
        ),
    ];
    race(cx, &title, contestants);
}
