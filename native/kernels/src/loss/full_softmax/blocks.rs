//! Softmax over a small catalogue: three products per block of tokens (logits, user gradient, item gradient), the
//! softmax done on each row of logits while it is in cache.
//!
//! T tokens, D width, V items, S tokens of a block. Only one block's S x V probabilities exist at a time.

use super::{FullSoftmax, RUN, Smoothing, row_sum};
use crate::ctx::Ctx;
use crate::gemm::{Finish, Right, Shape, multiply, outer};
use crate::loss::norm::{UnitRows, unit_rows};
use crate::mat::{Disjoint, Grad, MatMut};
use crate::rows::{Rows, store_vector};
use crate::simd::{LANES, Simd};

/// Probabilities of one block: 16 MB, or more if that leaves fewer tokens than [`LEAST`].
const BLOCK: usize = 4 << 20;
const LEAST: usize = 192;

/// The loss of each token, not yet divided, and both gradients.
pub(super) fn solve(cx: &Ctx, args: &FullSoftmax, divisor: f32, losses: &mut [f64]) {
    let (tokens, items, cols) = (args.u.rows, args.table.rows(), args.u.cols);
    let width = cols.next_multiple_of(LANES);
    let users = unit_rows(cx, Rows::F32(args.u), args.logit.normalize_user, args.logit.eps);
    let rows = unit_rows(cx, args.table, args.logit.normalize_item, args.logit.eps);
    let block = (BLOCK / items.max(1)).max(LEAST).min(tokens.max(1));
    let mut weights = cx.scratch::<f32>(block * items);
    let mut item_gradient = cx.scratch::<f32>(items * width);
    item_gradient.fill(0.0);
    let weights = MatMut::new(&mut weights, block, items);
    let summed = Grad::accumulate(MatMut::new(&mut item_gradient, items, width));
    {
        let losses = Disjoint::new(losses);
        for from in (0..tokens).step_by(block) {
            let count = block.min(tokens - from);
            let unit = users.view().row_range(from, count);
            let softmax = Softmax {
                positives: &args.positives[from..from + count],
                inverse: 1.0 / args.logit.temperature,
                scale: 1.0 / (args.logit.temperature * divisor),
                smoothing: Smoothing::new(args.smoothing, items),
                // SAFETY: blocks follow one another.
                losses: Disjoint::new(unsafe { losses.range(from, count) }),
                weights,
            };
            let logits = Shape {
                m: count,
                n: items,
                k: width,
            };
            multiply(cx, logits, &unit, Right::Transposed(rows.view()), &softmax);
            let weights = weights.as_ref().row_range(0, count);
            let gradient = UserGradient {
                from,
                users: &users,
                to: args.du,
            };
            let back = Shape {
                m: count,
                n: width,
                k: items,
            };
            multiply(cx, back, &weights, Right::Plain(rows.view()), &gradient);
            outer(cx, count, &weights, &unit, summed, None);
        }
    }
    rows.through_norm(cx, summed.to.as_ref(), args.dtable);
}

/// Converts a row of dot products to d loss / d (dot product).
struct Softmax<'a> {
    positives: &'a [i32],
    inverse: f32,
    scale: f32,
    smoothing: Smoothing,
    losses: Disjoint<'a, f64>,
    weights: MatMut,
}

impl Finish for Softmax<'_> {
    fn whole_rows(&self) -> bool {
        true
    }
    #[inline(always)]
    unsafe fn take<V: Simd>(&self, i: usize, _j: usize, n: usize, acc: *mut f32) {
        // SAFETY: row `i` is this call's; `acc` holds `n` numbers rounded up to whole vectors.
        unsafe {
            let out = self.weights.row(i);
            let loss = &mut self.losses.range(i, 1)[0];
            let Ok(positive) = usize::try_from(self.positives[i]) else {
                *loss = 0.0;
                out.fill(0.0);
                return;
            };
            let vectors = n.div_ceil(LANES);
            let smoothing = self.smoothing;
            let sum = if smoothing.share > 0.0 {
                row_sum::<V>(acc, n) * f64::from(self.inverse)
            } else {
                0.0
            };
            let row = std::slice::from_raw_parts_mut(acc, vectors * LANES);
            row[n..].fill(f32::MIN); // adds nothing to the sum of powers
            let inverse = V::splat(self.inverse);
            let (mut largest, mut poison) = (V::splat(f32::NEG_INFINITY), V::zero());
            for k in 0..vectors {
                let logit = V::load(acc.add(k * LANES));
                largest = largest.max(logit);
                poison = logit.fma(V::zero(), poison); // NaN once any logit is NaN or infinite
            }
            let largest = largest.lanes_max() * self.inverse;
            let own = row[positive] * self.inverse;
            let mut total = 0.0;
            for run in row.chunks_mut(RUN) {
                let mut sum = V::zero();
                for power in run.chunks_exact_mut(LANES) {
                    let logit = V::load(power.as_ptr()).mul(inverse);
                    let x = logit.sub(V::splat(largest)).exp();
                    x.store(power.as_mut_ptr());
                    sum = sum.add(x);
                }
                total += f64::from(sum.sum());
            }
            let below = f64::from(own - largest);
            let others = total - f64::from(row[positive]);
            let share = V::splat((f64::from(self.scale) / total) as f32);
            let each = V::splat(smoothing.each * self.scale);
            for k in 0..vectors {
                let weight = V::load(acc.add(k * LANES)).mul(share).sub(each);
                store_vector::<V, f32>(weight, out.as_mut_ptr(), k, n);
            }
            out[positive] = ((smoothing.lost() - others / total) * f64::from(self.scale)) as f32;
            *loss = total.ln() - below + smoothing.gain(f64::from(own), sum) + f64::from(poison.sum());
        }
    }
}

struct UserGradient<'a> {
    from: usize,
    users: &'a UnitRows<'a>,
    to: Grad,
}

impl Finish for UserGradient<'_> {
    fn whole_rows(&self) -> bool {
        true
    }
    #[inline(always)]
    unsafe fn take<V: Simd>(&self, i: usize, _j: usize, _n: usize, acc: *mut f32) {
        // SAFETY: row `from + i` is this call's; `acc` holds a padded row.
        unsafe { self.users.row_through_norm::<V>(self.from + i, acc, self.to) }
    }
}
