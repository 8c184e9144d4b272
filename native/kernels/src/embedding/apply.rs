//! The last step of a row's sum: the gradient passes through the normalisation, if any, and to the update rule.

use super::Contribution;
use super::contribution::ReadRows;
use super::half_rows::scale_of;
use crate::gathered::dot;
use crate::mat::{Disjoint, Mat, MatMut};
use crate::optim::{AdamFactors, adam_vector};
use crate::rng::{Key, words};
use crate::rows::{Element, RowsMut, load_vector, store_vector};
use crate::simd::{LANES, Simd};
use crate::with_rows;

/// What to do with a row's gradient: `Update` with precomputed constants, or storing it.
pub(super) enum Rule<'a> {
    Dense(MatMut),
    SquareSum,
    LazyAdam {
        table: RowsMut,
        m: MatMut,
        v: MatMut,
        factors: AdamFactors,
        rounding: Option<Key>,
    },
    RowAdagrad {
        table: RowsMut,
        state: Disjoint<'a, f32>,
        lr: f32,
        eps: f32,
        /// `1 - lr * weight_decay`
        keep: f32,
        grad_scale: f32,
        rounding: Option<Key>,
    },
    /// Stored consecutively, by ascending row.
    List {
        ids: Disjoint<'a, i32>,
        rows: MatMut,
    },
}

impl Rule<'_> {
    /// Whether the rule uses a row's index among the touched ones.
    pub fn numbers_rows(&self) -> bool {
        matches!(self, Rule::List { .. })
    }
}

/// Contributions and the rule for their sums.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    pub read: ReadRows<'a>,
    pub contributions: &'a [Contribution],
    pub rule: &'a Rule<'a>,
    /// The eps of the normalised contributions.
    pub eps: f32,
}

/// The gradient of a normalised row.
pub(super) struct Unit<'a> {
    pub gradient: &'a [f32],
    /// Whether the row was read only in FP16.
    pub rounded: bool,
}

/// The rows as they were read, and the rule for their gradients.
pub(super) struct Target<'a, E> {
    pub read: Mat<E>,
    pub ids: Option<&'a [i32]>,
    pub rule: &'a Rule<'a>,
    /// Lower bound on the norm.
    pub eps: f32,
}

impl<E: Element> Target<'_, E> {
    /// Hands row `id`, the `number`-th touched one, to the rule. Returns the square of the gradient's length if that is the
    /// rule, else 0.
    ///
    /// # Safety
    /// `id` is a row of `read`; this task alone has that row of the rule's memory, and place `number` of its list;
    /// `gradient` holds `cols` numbers and zeros up to whole vectors; target features as for [`Simd`].
    #[inline(always)]
    pub unsafe fn apply<V: Simd>(&self, id: usize, number: usize, gradient: &[f32]) -> f64 {
        let row = self.ids.map_or(id, |ids| ids[id] as usize);
        // SAFETY: by this function's contract.
        unsafe { self.rule.apply::<V>(row, number, gradient.as_ptr(), self.read.cols) }
    }

    /// `to += (g - ehat (ehat . g)) / |e|`, or `g / eps` for a row shorter than eps.
    ///
    /// # Safety
    /// `id` is a row of `read`; both gradients hold `cols` numbers and zeros up to whole vectors; target features as for
    /// [`Simd`].
    #[inline(always)]
    pub unsafe fn add_through_norm<V: Simd>(&self, id: usize, Unit { gradient, rounded }: Unit, to: &mut [f32]) {
        let cols = self.read.cols;
        // SAFETY: guaranteed by the caller.
        unsafe {
            let row = self.read.row(id).as_ptr();
            let scale = match rounded {
                true => Some(scale_of::<V, E>(row, cols)),
                false => None,
            };
            let (mut square, mut product) = (V::zero(), V::zero());
            for k in 0..cols.div_ceil(LANES) {
                let x = read_vector::<V, E>(row, k, cols, scale);
                square = x.fma(x, square);
                product = x.fma(V::load(gradient.as_ptr().add(k * LANES)), product);
            }
            let norm = square.sum().sqrt();
            let inverse = 1.0 / norm.max(self.eps);
            let along = if norm > self.eps {
                product.sum() * inverse * inverse
            } else {
                0.0
            };
            for k in 0..cols.div_ceil(LANES) {
                let g = V::load(gradient.as_ptr().add(k * LANES));
                let inside = read_vector::<V, E>(row, k, cols, scale).fnma(V::splat(along), g);
                let sum = to.as_mut_ptr().add(k * LANES);
                inside.fma(V::splat(inverse), V::load(sum)).store(sum);
            }
        }
    }
}

/// Vector `k` of a row, rounded to FP16 at a scale.
///
/// # Safety
/// As [`load_vector`].
#[inline(always)]
unsafe fn read_vector<V: Simd, E: Element>(row: *const E, k: usize, cols: usize, scale: Option<f32>) -> V {
    // SAFETY: by this function's contract.
    unsafe {
        let x = load_vector::<V, E>(row, k, cols);
        match scale {
            Some(scale) => x.mul(V::splat(scale)).round_half().mul(V::splat(1.0 / scale)),
            None => x,
        }
    }
}

impl Rule<'_> {
    /// Applies a gradient to row `row` of the table; `number` is its index in a list.
    ///
    /// # Safety
    /// This task alone has the row and the place; `gradient` holds `cols` numbers rounded up to whole vectors, zero
    /// beyond; target features as for [`Simd`].
    #[inline(always)]
    pub unsafe fn apply<V: Simd>(&self, row: usize, number: usize, gradient: *const f32, cols: usize) -> f64 {
        let vectors = cols.div_ceil(LANES);
        // SAFETY: guaranteed by the caller.
        unsafe {
            match self {
                Rule::Dense(to) => {
                    let to = to.row(row).as_mut_ptr();
                    for k in 0..vectors {
                        let sum = V::load(gradient.add(k * LANES)).add(load_vector::<V, f32>(to, k, cols));
                        store_vector::<V, f32>(sum, to, k, cols);
                    }
                }
                Rule::SquareSum => return f64::from(dot::<V>(gradient, gradient, cols)),
                Rule::LazyAdam {
                    table,
                    m,
                    v,
                    factors,
                    rounding,
                } => {
                    let (m, v) = (m.row(row).as_mut_ptr(), v.row(row).as_mut_ptr());
                    let rounding = Rounding::new(*rounding, row, cols);
                    with_rows!(RowsMut, *table, table => {
                        adam_row::<V, _>(factors, [m, v], table.row(row), gradient, rounding)
                    });
                }
                Rule::RowAdagrad {
                    table,
                    state,
                    lr,
                    eps,
                    keep,
                    grad_scale,
                    rounding,
                } => {
                    let state = &mut state.range(row, 1)[0];
                    *state += dot::<V>(gradient, gradient, cols) * grad_scale * grad_scale / cols as f32;
                    let rate = lr * grad_scale / (state.sqrt() + eps);
                    let rounding = Rounding::new(*rounding, row, cols);
                    with_rows!(RowsMut, *table, table => {
                        descend::<V, _>(table.row(row), gradient, [*keep, rate], rounding)
                    });
                }
                Rule::List { ids, rows } => {
                    ids.range(number, 1)[0] = row as i32;
                    let to = rows.row(number).as_mut_ptr();
                    for k in 0..vectors {
                        store_vector::<V, f32>(V::load(gradient.add(k * LANES)), to, k, cols);
                    }
                }
            }
            0.0
        }
    }
}

/// How the elements of a row are rounded to its storage: to nearest, or stochastically with random words that are a function of
/// the key and of the element's position in the table.
struct Rounding {
    key: Option<Key>,
    /// Number of the row's first word.
    first: u64,
    words: [u32; Rounding::WORDS],
}

impl Rounding {
    const WORDS: usize = 64;

    fn new(key: Option<Key>, row: usize, cols: usize) -> Rounding {
        Rounding {
            key,
            first: (row * cols.next_multiple_of(LANES)) as u64,
            words: [0; Rounding::WORDS],
        }
    }

    /// Stores vector `k` of a row; vectors must come in order.
    ///
    /// # Safety
    /// As [`store_vector`].
    #[inline(always)]
    unsafe fn store<V: Simd, E: Element>(&mut self, v: V, p: *mut E, k: usize, cols: usize) {
        let Some(key) = self.key else {
            // SAFETY: guaranteed by the caller.
            return unsafe { store_vector::<V, E>(v, p, k, cols) };
        };
        let at = k * LANES;
        if at.is_multiple_of(Rounding::WORDS) {
            // SAFETY: by this function's contract this CPU has `V`'s instructions.
            unsafe { words(V::ISA, key, self.first + at as u64, &mut self.words) };
        }
        let mut lanes = [0f32; LANES];
        // SAFETY: the row has `cols` numbers.
        unsafe {
            v.store(lanes.as_mut_ptr());
            let words = &self.words[at % Rounding::WORDS..];
            for (i, (lane, word)) in lanes.iter().zip(words).enumerate().take(cols - at) {
                *p.add(at + i) = E::narrow_randomly(*lane, *word);
            }
        }
    }
}

/// One step of Adam on a row.
///
/// # Safety
/// The moments are as long as the row, `gradient` rounded up to whole vectors; target features as for [`Simd`].
#[inline(always)]
unsafe fn adam_row<V: Simd, E: Element>(
    factors: &AdamFactors,
    [m, v]: [*mut f32; 2],
    row: &mut [E],
    gradient: *const f32,
    mut rounding: Rounding,
) {
    let (table, cols) = (row.as_mut_ptr(), row.len());
    // SAFETY: guaranteed by the caller.
    unsafe {
        for k in 0..cols.div_ceil(LANES) {
            let (p0, g) = (load_vector::<V, E>(table, k, cols), V::load(gradient.add(k * LANES)));
            let (m0, v0) = (load_vector::<V, f32>(m, k, cols), load_vector::<V, f32>(v, k, cols));
            let (p1, m1, v1) = adam_vector::<V>(factors, p0, g, m0, v0);
            rounding.store::<V, E>(p1, table, k, cols);
            store_vector::<V, f32>(m1, m, k, cols);
            store_vector::<V, f32>(v1, v, k, cols);
        }
    }
}

/// `row = keep row - rate gradient`.
///
/// # Safety
/// `gradient` is as long as the row, rounded up to whole vectors; target features as for [`Simd`].
#[inline(always)]
unsafe fn descend<V: Simd, E: Element>(
    row: &mut [E],
    gradient: *const f32,
    [keep, rate]: [f32; 2],
    mut rounding: Rounding,
) {
    let (table, cols) = (row.as_mut_ptr(), row.len());
    // SAFETY: guaranteed by the caller.
    unsafe {
        for k in 0..cols.div_ceil(LANES) {
            let p = load_vector::<V, E>(table, k, cols).mul(V::splat(keep));
            let p = V::load(gradient.add(k * LANES)).fnma(V::splat(rate), p);
            rounding.store::<V, E>(p, table, k, cols);
        }
    }
}
