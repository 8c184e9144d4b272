//! Arithmetic on scattered rows: dot products with eight of them at a time, weighted sums of many. The inner loops of sampled
//! losses and embedding updates.

use crate::rows::{Element, load_vector};
use crate::simd::{LANES, Simd};

/// Vectors held in registers while summing. Eight chains would hide the latency of the FMA; the more, the fewer times rows
/// are read.
const CHUNK: usize = 12;

/// Eight rows to prefetch: one cache line at a time while computing with other rows, since more outstanding requests would stall
/// each other.
pub(crate) struct Ahead<E> {
    rows: [*const E; LANES],
    /// Lines of all rows.
    lines: usize,
    asked: usize,
    /// Lines prefetched per computed vector.
    pace: usize,
}

impl<E: Element> Ahead<E> {
    /// Rows of `cols` numbers, prefetched during `passes` passes over rows of the same size.
    pub fn new(rows: [*const E; LANES], cols: usize, passes: usize) -> Ahead<E> {
        let lines = LANES * (cols * size_of::<E>()).div_ceil(64);
        let pace = lines.div_ceil((cols / LANES * passes).max(1));
        let asked = 0;
        Ahead {
            rows,
            lines,
            asked,
            pace,
        }
    }

    /// Prefetches nothing.
    #[inline(always)]
    fn none() -> Ahead<E> {
        let rows = [std::ptr::null(); LANES];
        Ahead {
            rows,
            lines: 0,
            asked: 0,
            pace: 0,
        }
    }

    /// # Safety
    /// Target features as for [`Simd`].
    #[inline(always)]
    unsafe fn ask<V: Simd>(&mut self) {
        for _ in 0..self.pace {
            if self.asked < self.lines {
                let (line, row) = (self.asked / LANES, self.asked % LANES);
                // SAFETY: by this function's contract; prefetched addresses need not be valid.
                unsafe { V::prefetch(self.rows[row].cast::<f32>().wrapping_add(16 * line)) };
                self.asked += 1;
            }
        }
    }
}

/// Lane `i` is `u . rows[i]`. `u` holds `cols` numbers rounded up to whole vectors.
///
/// # Safety
/// The rows hold `cols` numbers; target features as for [`Simd`].
#[inline(always)]
pub(crate) unsafe fn dots<V: Simd, E: Element>(u: *const f32, rows: [*const E; LANES], cols: usize) -> V {
    // SAFETY: by this function's contract.
    unsafe { dots_asking::<V, E>(u, rows, cols, &mut Ahead::none()) }
}

/// As [`dots`], and prefetches the rows that are read next.
///
/// # Safety
/// As [`dots`].
#[inline(always)]
pub(crate) unsafe fn dots_asking<V: Simd, E: Element>(
    u: *const f32,
    rows: [*const E; LANES],
    cols: usize,
    ahead: &mut Ahead<E>,
) -> V {
    // SAFETY: by this function's contract.
    unsafe {
        let mut sums = [V::zero(); LANES];
        for k in 0..cols / LANES {
            ahead.ask::<V>();
            let x = V::load(u.add(k * LANES));
            for (sum, row) in sums.iter_mut().zip(rows) {
                *sum = E::load::<V>(row.add(k * LANES)).fma(x, *sum);
            }
        }
        if !cols.is_multiple_of(LANES) {
            let k = cols / LANES;
            let x = V::load(u.add(k * LANES));
            for (sum, row) in sums.iter_mut().zip(rows) {
                *sum = load_vector::<V, E>(row, k, cols).fma(x, *sum);
            }
        }
        V::sums(sums)
    }
}

/// Lane `i` is `rows[i] . rows[i]`.
///
/// # Safety
/// As [`dots`].
#[inline(always)]
pub(crate) unsafe fn square_norms<V: Simd, E: Element>(rows: [*const E; LANES], cols: usize) -> V {
    // SAFETY: by this function's contract.
    unsafe { square_norms_asking::<V, E>(rows, cols, &mut Ahead::none()) }
}

/// As [`square_norms`], and prefetches the rows that are read next.
///
/// # Safety
/// As [`dots`].
#[inline(always)]
pub(crate) unsafe fn square_norms_asking<V: Simd, E: Element>(
    rows: [*const E; LANES],
    cols: usize,
    ahead: &mut Ahead<E>,
) -> V {
    // SAFETY: by this function's contract.
    unsafe {
        let mut sums = [V::zero(); LANES];
        for k in 0..cols.div_ceil(LANES) {
            ahead.ask::<V>();
            for (sum, row) in sums.iter_mut().zip(rows) {
                let x = load_vector::<V, E>(row, k, cols);
                *sum = x.fma(x, *sum);
            }
        }
        V::sums(sums)
    }
}

/// `a . b` for two buffers of `cols` numbers rounded up to whole vectors, zero beyond.
///
/// # Safety
/// As [`dots`].
#[inline(always)]
pub(crate) unsafe fn dot<V: Simd>(a: *const f32, b: *const f32, cols: usize) -> f32 {
    // SAFETY: by this function's contract.
    unsafe {
        let mut sum = V::zero();
        for k in 0..cols.div_ceil(LANES) {
            sum = V::load(a.add(k * LANES)).fma(V::load(b.add(k * LANES)), sum);
        }
        sum.sum()
    }
}

/// The rows to sum and their weights.
pub(crate) trait Terms<E> {
    fn count(&self) -> usize;
    /// Start of row `j` and its weight.
    ///
    /// # Safety
    /// `j < count()`.
    unsafe fn term(&self, j: usize) -> (*const E, f32);
    /// Address of term `j`, for prefetching; may be past the end.
    ///
    /// # Safety
    /// As [`Terms::term`].
    #[inline(always)]
    unsafe fn upcoming(&self, _j: usize) -> Option<*const E> {
        None
    }
}

/// A single row.
pub(crate) struct One<E>(pub *const E, pub f32);

impl<E: Element> Terms<E> for One<E> {
    #[inline(always)]
    fn count(&self) -> usize {
        1
    }
    #[inline(always)]
    unsafe fn term(&self, _j: usize) -> (*const E, f32) {
        (self.0, self.1)
    }
}

/// `out += sum_j weight_j * row_j`, in the order of j. `out` holds `cols` numbers rounded up to whole vectors.
///
/// # Safety
/// As [`dots`].
#[inline(always)]
pub(crate) unsafe fn add_weighted<V: Simd, E: Element>(terms: &impl Terms<E>, cols: usize, out: *mut f32) {
    // SAFETY: by this function's contract.
    unsafe {
        let full = cols / LANES;
        let mut k = 0;
        while k + CHUNK <= full {
            add_chunk::<V, E, CHUNK>(terms, k * LANES, out);
            k += CHUNK;
        }
        match full - k {
            11 => add_chunk::<V, E, 11>(terms, k * LANES, out),
            10 => add_chunk::<V, E, 10>(terms, k * LANES, out),
            9 => add_chunk::<V, E, 9>(terms, k * LANES, out),
            8 => add_chunk::<V, E, 8>(terms, k * LANES, out),
            7 => add_chunk::<V, E, 7>(terms, k * LANES, out),
            6 => add_chunk::<V, E, 6>(terms, k * LANES, out),
            5 => add_chunk::<V, E, 5>(terms, k * LANES, out),
            4 => add_chunk::<V, E, 4>(terms, k * LANES, out),
            3 => add_chunk::<V, E, 3>(terms, k * LANES, out),
            2 => add_chunk::<V, E, 2>(terms, k * LANES, out),
            1 => add_chunk::<V, E, 1>(terms, k * LANES, out),
            _ => {}
        }
        let rest = cols % LANES;
        if rest > 0 {
            let at = full * LANES;
            let mut sum = V::load(out.add(at));
            for j in 0..terms.count() {
                let (row, weight) = terms.term(j);
                sum = E::load_part::<V>(row.add(at), rest).fma(V::splat(weight), sum);
            }
            sum.store(out.add(at));
        }
    }
}

/// # Safety
/// As [`add_weighted`]; `N` vectors from column `at` lie within the rows and `out`.
#[inline(always)]
unsafe fn add_chunk<V: Simd, E: Element, const N: usize>(terms: &impl Terms<E>, at: usize, out: *mut f32) {
    // SAFETY: by this function's contract.
    unsafe {
        let mut sums = [V::zero(); N];
        for (v, sum) in sums.iter_mut().enumerate() {
            *sum = V::load(out.add(at + v * LANES));
        }
        for j in 0..terms.count() {
            if let Some(row) = terms.upcoming(j) {
                prefetch_span::<V, E>(row.wrapping_add(at), N * LANES);
            }
            let (row, weight) = terms.term(j);
            let weight = V::splat(weight);
            for (v, sum) in sums.iter_mut().enumerate() {
                *sum = E::load::<V>(row.add(at + v * LANES)).fma(weight, *sum);
            }
        }
        for (v, sum) in sums.into_iter().enumerate() {
            sum.store(out.add(at + v * LANES));
        }
    }
}

/// Prefetches the cache lines of `len` numbers from `p` on; `p` need not be valid.
///
/// # Safety
/// Target features as for [`Simd`].
#[inline(always)]
pub(crate) unsafe fn prefetch_span<V: Simd, E: Element>(p: *const E, len: usize) {
    let lines = (len * size_of::<E>()).div_ceil(64);
    for line in 0..lines {
        // SAFETY: by this function's contract.
        unsafe { V::prefetch(p.cast::<f32>().wrapping_add(16 * line)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::available;
    use crate::simd_fn;

    struct Plain<'a> {
        rows: &'a [Vec<f32>],
        weights: &'a [f32],
    }

    impl Terms<f32> for Plain<'_> {
        fn count(&self) -> usize {
            self.rows.len()
        }
        unsafe fn term(&self, j: usize) -> (*const f32, f32) {
            (self.rows[j].as_ptr(), self.weights[j])
        }
    }

    /// The sums, and one number after the other.
    ///
    /// # Safety
    /// This CPU has `V`'s instructions; rows, `fast` and `plain` hold `cols` floats, the latter two rounded up to eight.
    #[inline(always)]
    unsafe fn both_body<V: Simd>(terms: &Plain, cols: usize, fast: *mut f32, plain: *mut f32) {
        // SAFETY: by this function's contract.
        unsafe {
            add_weighted::<V, f32>(terms, cols, fast);
            for c in 0..cols {
                let mut sum = V::splat(*plain.add(c));
                for (row, weight) in terms.rows.iter().zip(terms.weights) {
                    sum = V::splat(row[c]).fma(V::splat(*weight), sum);
                }
                sum.store_part(plain.add(c), 1);
            }
        }
    }
    simd_fn!(fn both = both_body(terms: &Plain, cols: usize, fast: *mut f32, plain: *mut f32));

    #[test]
    fn weighted_sums_add_up_in_order_to_the_bit() {
        let number = |i: usize| (i as f32 * 0.7).sin();
        for isa in available() {
            for cols in 1..230 {
                let rows: Vec<Vec<f32>> = (0..5)
                    .map(|j| (0..cols).map(|c| number(j * 1000 + c)).collect())
                    .collect();
                let weights: Vec<f32> = (0..5).map(|j| number(9000 + j)).collect();
                let mut fast: Vec<f32> = (0..cols.next_multiple_of(LANES)).map(|c| number(5000 + c)).collect();
                let mut plain = fast.clone();
                let (rows, weights) = (&rows[..], &weights[..]);
                // SAFETY: rows hold `cols` numbers, the sums whole vectors; `isa` is one this CPU has.
                unsafe {
                    both(
                        isa,
                        &Plain { rows, weights },
                        cols,
                        fast.as_mut_ptr(),
                        plain.as_mut_ptr(),
                    )
                };
                assert_eq!(fast[..cols], plain[..cols], "{isa:?}, {cols} columns");
            }
        }
    }
}
