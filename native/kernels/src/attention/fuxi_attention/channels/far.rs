//! The products of the time channel with weights that are a series: with coefficients C [queries, terms] and polynomials
//! P [terms, keys] the weights are A = alpha C P, so A V = alpha C (P V) and A^T dO = alpha P^T (C^T dO), and the sum of
//! dO V^T times C P over all pairs is that of (C^T dO) times (P V). A block of weights is never computed.

use crate::attention::bias::BlockPair;
use crate::attention::pack::ColumnForm;
use crate::attention::plan::BLOCK;
use crate::attention::power::WEIGHTS;
use crate::attention::series::{MOST_TERMS, Series};
use crate::attention::tile::{Product, Slope};
use crate::simd::tile::{MR, NR};
use crate::simd::{LANES, Simd};

/// Rows of the largest narrow products: C^T dO of all functions, and P V.
pub(super) const NARROW: usize = (WEIGHTS + 1) * MOST_TERMS;

/// The queries of a block pair that a series serves, against all its keys, for heads of `width` values.
pub(super) struct Far {
    pub series: Series,
    pub pair: BlockPair,
    pub width: usize,
    pub narrow: *mut f32, // [width/16][NARROW][16]
}

impl Far {
    /// The pairs that the series does not serve.
    pub fn rest(far: Option<&Far>, pair: &BlockPair) -> BlockPair {
        BlockPair {
            queries: far.map_or(pair.queries, |far| far.series.first),
            ..*pair
        }
    }

    /// `sums (+)= A V`.
    ///
    /// # Safety
    /// This CPU has `V`'s instructions; `values` hold the pair's keys, `sums` its queries, and both and the scratch are the caller's.
    #[inline(always)]
    pub unsafe fn results<V: Simd>(&self, values: ColumnForm, sums: *mut f32) {
        let Series { terms, first, .. } = self.series;
        let stride = self.width.next_multiple_of(NR);
        // SAFETY: by this function's contract.
        unsafe {
            self.narrow::<V>((self.series.polynomials, terms), self.pair.keys, values, self.narrow);
            self.scale::<V>(terms);
            self.widen::<V>(
                (self.series.coefficients.add(first), terms),
                self.pair.queries - first,
                sums.add(first * stride),
                self.pair.key > 0,
            );
        }
    }

    /// `dv (+)= A^T dO`. With values, also adds to the sums of the gradients of the function.
    ///
    /// # Safety
    /// As [`Far::results`], `d_o` the pair's queries, zero up to whole tiles; `dv` has room for the keys.
    #[inline(always)]
    pub unsafe fn gradients<V: Simd>(
        &self,
        d_o: ColumnForm,
        dv: *mut f32,
        values: Option<(ColumnForm, &mut [f64; WEIGHTS])>,
    ) {
        let Series { terms, first, .. } = self.series;
        let rows = if values.is_some() { WEIGHTS * terms } else { terms };
        let depth = self.pair.queries.next_multiple_of(MR) - first;
        // SAFETY: by this function's contract.
        unsafe {
            let coefficients = self.series.coefficients.add(first);
            self.narrow::<V>((coefficients, rows), depth, d_o.skip_rows(first), self.narrow);
            if let Some((values, sums)) = values {
                let products = self.narrow.add(rows * self.width.next_multiple_of(NR));
                self.narrow::<V>((self.series.polynomials, terms), self.pair.keys, values, products);
                self.sum::<V>(products, sums);
            }
            self.scale::<V>(rows);
            self.widen::<V>((self.series.polynomials, rows), self.pair.keys, dv, first > 0);
        }
    }

    /// `to = A B`, a column form of few rows; A has rows of [`BLOCK`].
    ///
    /// # Safety
    /// As [`Far::results`].
    #[inline(always)]
    unsafe fn narrow<V: Simd>(&self, (a, rows): (*const f32, usize), depth: usize, b: ColumnForm, to: *mut f32) {
        for at in (0..self.width).step_by(NR) {
            let product = Product::<BLOCK, 1> {
                rows,
                from: Slope::flat(0),
                until: Slope::flat(depth),
                a,
                b: b.skip_columns(at),
                c: to.wrapping_add(at * rows),
                stride: NR,
                add: false,
                cols: NR.min(self.width - at),
            };
            // SAFETY: by this function's contract.
            unsafe { product.compute::<V>() };
        }
    }

    /// `to (+)= A^T B`, B the first terms of the narrow product of `narrow_rows`.
    ///
    /// # Safety
    /// As [`Far::results`].
    #[inline(always)]
    unsafe fn widen<V: Simd>(&self, (a, narrow_rows): (*const f32, usize), rows: usize, to: *mut f32, add: bool) {
        let product = Product::<1, BLOCK> {
            rows: rows.next_multiple_of(MR),
            from: Slope::flat(0),
            until: Slope::flat(self.series.terms),
            a,
            b: ColumnForm::of_rows(self.narrow, narrow_rows),
            c: to,
            stride: self.width.next_multiple_of(NR),
            add,
            cols: self.width,
        };
        // SAFETY: by this function's contract.
        unsafe { product.compute::<V>() };
    }

    /// Multiplies the first terms of a narrow product of `rows` rows by alpha.
    ///
    /// # Safety
    /// As [`Far::results`].
    #[inline(always)]
    unsafe fn scale<V: Simd>(&self, rows: usize) {
        for at in (0..self.width).step_by(NR) {
            for term in (0..self.series.terms * NR).step_by(LANES) {
                // SAFETY: by this function's contract.
                unsafe {
                    let x = self.narrow.add(at * rows + term);
                    V::load(x).mul(V::splat(self.series.alpha)).store(x);
                }
            }
        }
    }

    /// Adds the products of C^T dO of each function with P V.
    ///
    /// # Safety
    /// As [`Far::results`].
    #[inline(always)]
    unsafe fn sum<V: Simd>(&self, products: *const f32, sums: &mut [f64; WEIGHTS]) {
        let each = self.series.terms * NR;
        for (function, to) in sums.iter_mut().enumerate() {
            // SAFETY: by this function's contract; of the last sixteen columns only eight are there if no more are needed.
            unsafe {
                let mut sum = V::zero();
                for at in (0..self.width).step_by(LANES) {
                    let (panel, lane) = (at / NR, at % NR);
                    let left = self.narrow.add((panel * WEIGHTS + function) * each + lane);
                    let right = products.add(panel * each + lane);
                    for term in (0..each).step_by(NR) {
                        sum = V::load(left.add(term)).fma(V::load(right.add(term)), sum);
                    }
                }
                *to += f64::from(sum.sum());
            }
        }
    }
}
