//! Softmax over a large catalogue, streamed in rounds of items: a first pass keeps only a running maximum and sum per token, a
//! second one recomputes the logits and converts them to gradients. Four products instead of the three of a stored softmax;
//! memory does not depend on the size of the catalogue.
//!
//! T tokens, D width, V items, S items of a round.

use super::{FullSoftmax, RUN, Smoothing, row_sum};
use crate::arena::Pod;
use crate::ctx::Ctx;
use crate::gemm::{Finish, Right, Shape, multiply, outer};
use crate::loss::norm::unit_rows;
use crate::mat::{Disjoint, Grad, MatMut};
use crate::rows::Rows;
use crate::simd::tile::NR;
use crate::simd::{Elements, LANES, Simd};

/// Weights of a round: 32 MB, in rounds of [`LEAST`] to [`MOST`] items.
const ROUND: usize = 8 << 20;
const LEAST: usize = 512;
const MOST: usize = 2048;

/// The loss of each token, not yet divided, and both gradients.
pub(super) fn solve(cx: &Ctx, args: &FullSoftmax, divisor: f32, losses: &mut [f64]) {
    let (tokens, items) = (args.u.rows, args.table.rows());
    let width = args.u.cols.next_multiple_of(LANES);
    let users = unit_rows(cx, Rows::F32(args.u), args.logit.normalize_user, args.logit.eps);
    let round = (ROUND / tokens.max(1)).clamp(LEAST, MOST) / NR * NR;
    let rounds = || (0..items).step_by(round).map(|from| (from, round.min(items - from)));
    let item_rows = |from, count| {
        let rows = args.table.row_range(from, count);
        unit_rows(cx, rows, args.logit.normalize_item, args.logit.eps)
    };
    let inverse = 1.0 / args.logit.temperature;
    let smoothing = Smoothing::new(args.smoothing, items);

    let mut sums = cx.scratch::<Running>(tokens);
    sums.fill(Running::START);
    for (from, n) in rounds() {
        let rows = item_rows(from, n);
        let running = RunningSums {
            from,
            positives: args.positives,
            inverse,
            smoothing,
            sums: Disjoint::new(&mut sums),
        };
        let shape = Shape { m: tokens, n, k: width };
        multiply(cx, shape, &users.view(), Right::Transposed(rows.view()), &running);
    }
    for ((loss, sum), positive) in losses.iter_mut().zip(&*sums).zip(args.positives) {
        *loss = if *positive < 0 {
            0.0
        } else {
            sum.loss(inverse, smoothing)
        };
    }

    // One line more, so that the rows of a power-of-two round do not share a cache set.
    let mut weights = cx.scratch::<f32>(tokens * (round + NR));
    let weights = MatMut::new(&mut weights, tokens, round + NR);
    let mut user_gradient = cx.scratch::<f32>(tokens * width);
    user_gradient.fill(0.0);
    let user_gradient = MatMut::new(&mut user_gradient, tokens, width);
    let mut item_gradient = cx.scratch::<f32>(round * width);
    for (from, n) in rounds() {
        let rows = item_rows(from, n);
        let weigh = Weigh {
            from,
            positives: args.positives,
            inverse,
            scale: inverse / divisor,
            smoothing,
            sums: &sums,
            weights,
        };
        let shape = Shape { m: tokens, n, k: width };
        multiply(cx, shape, &users.view(), Right::Transposed(rows.view()), &weigh);
        let weights = weights.as_ref().columns(0, n);
        let back = Shape {
            m: tokens,
            n: width,
            k: n,
        };
        multiply(cx, back, &weights, Right::Plain(rows.view()), &Add(user_gradient));
        let summed = MatMut::new(&mut item_gradient, n, width);
        outer(cx, tokens, &weights, &users.view(), Grad::overwrite(summed), None);
        let to = Grad {
            to: args.dtable.to.row_range(from, n),
            ..args.dtable
        };
        rows.through_norm(cx, summed.as_ref(), to);
    }
    users.through_norm(cx, user_gradient.as_ref(), args.du);
}

/// Running state of a token over the items so far.
#[derive(Clone, Copy)]
struct Running {
    /// The largest dot product.
    largest: f32,
    /// The positive's dot product.
    own: f32,
    /// Sum of the dot products; 0 without smoothing.
    sum: f64,
    /// Sum of `e^(inverse * (dot - largest))`; NaN once a logit is not finite.
    total: f64,
}

// SAFETY: every bit pattern of its numbers is a value.
unsafe impl Pod for Running {}

impl Running {
    const START: Running = Running {
        largest: f32::NEG_INFINITY,
        own: 0.0,
        sum: 0.0,
        total: 0.0,
    };

    /// The positive's logit below the largest one.
    fn below(&self, inverse: f32) -> f64 {
        f64::from(self.own - self.largest) * f64::from(inverse)
    }

    fn loss(&self, inverse: f32, smoothing: Smoothing) -> f64 {
        let gain = smoothing.gain(f64::from(self.own), self.sum) * f64::from(inverse);
        self.total.ln() - self.below(inverse) + gain
    }
}

/// The column of a token's positive in the round of items from `from` on, if present.
#[inline(always)]
fn column(positive: i32, from: usize, n: usize) -> Option<usize> {
    let column = (positive as usize).wrapping_sub(from);
    (column < n).then_some(column)
}

/// First pass: adds a round's dot products to each token's running sum.
struct RunningSums<'a> {
    from: usize,
    positives: &'a [i32],
    inverse: f32,
    smoothing: Smoothing,
    sums: Disjoint<'a, Running>,
}

impl Finish for RunningSums<'_> {
    fn whole_rows(&self) -> bool {
        true
    }
    #[inline(always)]
    unsafe fn take<V: Simd>(&self, i: usize, _j: usize, n: usize, acc: *mut f32) {
        // SAFETY: row `i` is this call's; `acc` holds `n` numbers rounded up to 16.
        unsafe {
            let positive = self.positives[i];
            if positive < 0 {
                return;
            }
            let sum = &mut self.sums.range(i, 1)[0];
            if self.smoothing.share > 0.0 {
                sum.sum += row_sum::<V>(acc, n);
            }
            let row = std::slice::from_raw_parts_mut(acc, n.next_multiple_of(NR));
            row[n..].fill(f32::MIN); // adds nothing to the sum of powers
            let (mut largest, mut poison) = ([V::splat(f32::NEG_INFINITY); 2], [V::zero(); 2]);
            for line in row.chunks_exact(NR) {
                for half in 0..2 {
                    let logit = V::load(line.as_ptr().add(half * LANES));
                    largest[half] = largest[half].max(logit);
                    poison[half] = logit.fma(V::zero(), poison[half]); // NaN once any logit is NaN or infinite
                }
            }
            if let Some(own) = column(positive, self.from, n) {
                sum.own = row[own];
            }
            let largest = largest[0].max(largest[1]).lanes_max();
            let largest = if largest > sum.largest { largest } else { sum.largest };
            let fallen = f64::from(sum.largest - largest) * f64::from(self.inverse);
            let before = sum.total * fallen.exp();
            let total = powers::<V>(row, self.inverse, largest);
            let poison = poison[0].add(poison[1]).sum();
            *sum = Running {
                largest,
                total: before + total + f64::from(poison),
                ..*sum
            };
        }
    }
}

/// `e^(inverse * (dot - largest))` of dot products.
struct Power<L> {
    factor: L,
    shift: L,
}

impl<L: Elements> Power<L> {
    /// # Safety
    /// Called from a SIMD entry point.
    #[inline(always)]
    unsafe fn new(inverse: f32, largest: f32) -> Power<L> {
        // SAFETY: by this function's contract.
        unsafe {
            let factor = L::constant(inverse * std::f32::consts::LOG2_E);
            let shift = L::constant(largest).mul(factor);
            Power { factor, shift }
        }
    }

    /// # Safety
    /// Called from a SIMD entry point.
    #[inline(always)]
    unsafe fn of(&self, dots: L) -> L {
        // SAFETY: by this function's contract.
        let [power] = unsafe { L::exp2_clamped([dots.mul(self.factor).sub(self.shift)]) };
        power
    }
}

/// Dot products become `e^(inverse * (dot - largest))`, whose sum is returned.
///
/// # Safety
/// The row holds whole lines; called from a SIMD entry point.
#[inline(always)]
unsafe fn powers<V: Simd>(row: &mut [f32], inverse: f32, largest: f32) -> f64 {
    let mut total = 0.0;
    // SAFETY: lines are sixteen floats.
    unsafe {
        let power = Power::<V::Line>::new(inverse, largest);
        for run in row.chunks_mut(RUN) {
            let mut sums = V::Line::zero();
            for line in run.chunks_exact_mut(NR) {
                let power = power.of(V::Line::load(line.as_ptr()));
                power.store(line.as_mut_ptr());
                sums = sums.add(power);
            }
            let [low, high] = V::halves(sums);
            total += f64::from(low.add(high).sum());
        }
    }
    total
}

/// Second pass: a round's dot products become d loss / d (dot product).
struct Weigh<'a> {
    from: usize,
    positives: &'a [i32],
    inverse: f32,
    /// Factors from the token's loss to the mean, and from dot products to logits.
    scale: f32,
    smoothing: Smoothing,
    sums: &'a [Running],
    weights: MatMut,
}

impl Finish for Weigh<'_> {
    fn whole_rows(&self) -> bool {
        true
    }
    #[inline(always)]
    unsafe fn take<V: Simd>(&self, i: usize, _j: usize, n: usize, acc: *mut f32) {
        // SAFETY: row `i` is this call's, and holds a line more than a round; `acc` holds `n` numbers rounded up to 16.
        unsafe {
            let positive = self.positives[i];
            let to = &mut self.weights.row(i)[..n.next_multiple_of(NR)];
            if positive < 0 {
                to.fill(0.0);
                return;
            }
            let sum = &self.sums[i];
            let share = f64::from(self.scale) / sum.total;
            let power = Power::<V::Line>::new(self.inverse, sum.largest);
            let multiplier = V::Line::constant(share as f32);
            let each = V::Line::constant(self.smoothing.each * self.scale);
            for (line, to) in (0..).step_by(NR).zip(to.chunks_exact_mut(NR)) {
                let power = power.of(V::Line::load(acc.add(line)));
                power.mul(multiplier).sub(each).store(to.as_mut_ptr());
            }
            if let Some(own) = column(positive, self.from, n) {
                // 1 - p as a difference of sums, so that a confident model keeps its last digits.
                let power = sum.below(self.inverse).exp();
                let lost = self.smoothing.lost() * f64::from(self.scale);
                to[own] = (lost - (sum.total - power).max(0.0) * share) as f32;
            }
        }
    }
}

/// Adds the results to a matrix.
struct Add(MatMut);

impl Finish for Add {
    #[inline(always)]
    unsafe fn take<V: Simd>(&self, i: usize, j: usize, n: usize, acc: *mut f32) {
        for at in (0..n).step_by(LANES) {
            // SAFETY: the columns are this call's, whole vectors as the width is.
            unsafe {
                let to = self.0.at(i, j + at);
                V::load(acc.add(at)).add(V::load(to)).store(to);
            }
        }
    }
}
