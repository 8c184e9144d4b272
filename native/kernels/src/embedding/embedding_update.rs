//! The table's gradient and its use in one op: summands are grouped by row, each touched row's gradient is summed in
//! order in a worker's buffer and handed to the optimiser at once. No gradient row is stored unless asked for (`Dense`).
//!
//! V items, D width. Untouched rows are not read; lazy Adam and row-wise AdaGrad leave them as they are.

use super::sort::{Entry, MAX_CONTRIBUTIONS, MAX_SOURCE_ROWS, sorted};
use crate::ctx::Ctx;
use crate::fault::{FaultKind, Outcome, check_ids, fault};
use crate::gathered::{Terms, add_weighted, dot};
use crate::mat::{Disjoint, Grad, Mat, MatMut};
use crate::optim::{Adam, AdamFactors, adam_vector};
use crate::rows::{Element, RowsMut, load_vector, store_vector};
use crate::simd::{Kernel, LANES, Simd, dispatch};
use crate::with_rows;

const OP: &str = "embedding_update";
/// Sorted entries of one task, which finishes the rows that begin among them.
const TILE: usize = 1024;
/// Source rows asked for ahead of their use.
const AHEAD: usize = 6;
/// Rows zeroed by one task.
const ZERO_TILE: usize = 1024;

/// `scale * sum coef[r, j] * source[r]` over all (r, j) with `ids[r, j]` = row is the row's gradient.
#[derive(Clone, Copy)]
pub struct Contribution {
    /// -1, or a coefficient of 0, touches nothing.
    pub ids: Mat<i32>, // [rows, per]
    pub source: Mat,       // [rows, D]
    pub coef: Option<Mat>, // [rows, per], 1 when absent
    pub scale: f32,
    /// `Some(eps)`: the gradient is that of the row divided by `max(|row|, eps)`, and is taken through it after summing.
    pub normalized: Option<f32>,
}

/// What becomes of a touched row's gradient.
pub enum Update<'a> {
    /// Written to `grad[V, D]` for a dense optimiser; rows not touched are zero (or left, when accumulating).
    Dense { grad: Grad },
    /// Added to the square of the global norm; nothing is updated.
    SquareSum { to: &'a mut f32 },
    /// Adam on touched rows only, bias-corrected by the global step.
    LazyAdam { m: MatMut, v: MatMut, hyper: Adam },
    /// One accumulator a row: `state += mean g^2; row -= lr g / (sqrt(state) + eps)`.
    RowAdagrad {
        state: &'a mut [f32],
        lr: f32,
        eps: f32,
        weight_decay: f32,
    },
}

pub struct EmbeddingUpdate<'a> {
    pub table: RowsMut, // [V, D]
    pub contributions: &'a [Contribution],
    pub update: Update<'a>,
    /// Multiplies the gradient; not used by `Dense` and `SquareSum`, whose readers apply it.
    pub grad_scale: Option<&'a f32>,
}

pub fn embedding_update(cx: &Ctx, args: EmbeddingUpdate) -> Outcome {
    check(&args)?;
    let table = args.table.as_ref();
    let (items, cols) = (table.rows(), table.cols());
    let eps = args.contributions.iter().find_map(|c| c.normalized).unwrap_or(0.0);
    let (entries, count) = sorted(cx, args.contributions, items);
    let entries = &entries[..count];
    let tiles = count.div_ceil(TILE);
    let mut squares = cx.scratch::<f64>(tiles);
    squares.fill(0.0);
    let mut sum = None;
    let rule = match args.update {
        Update::Dense { grad } => {
            if !grad.accumulate {
                zero(cx, grad.to);
            }
            Rule::Dense(grad.to)
        }
        Update::SquareSum { to } => {
            sum = Some(to);
            Rule::SquareSum
        }
        Update::LazyAdam { m, v, hyper } => Rule::LazyAdam {
            m,
            v,
            factors: AdamFactors::new(&hyper, args.grad_scale),
        },
        Update::RowAdagrad {
            state,
            lr,
            eps,
            weight_decay,
        } => Rule::RowAdagrad {
            state: Disjoint::new(state),
            lr,
            eps,
            keep: 1.0 - lr * weight_decay,
            grad_scale: args.grad_scale.copied().unwrap_or(1.0),
        },
    };
    let mut buffers = cx.per_worker::<f32>(3 * cols.next_multiple_of(LANES));
    {
        let (buffers, squares) = (buffers.slots(), Disjoint::new(&mut squares));
        cx.pool.run(tiles, |task, worker| {
            // SAFETY: a row's entries are finished by one task; a worker's buffer is its own while it runs a task.
            unsafe {
                let (buffer, square) = (buffers.of(worker), &mut squares.range(task, 1)[0]);
                let (contributions, rule, from) = (args.contributions, &rule, task * TILE);
                with_rows!(RowsMut, args.table, table => {
                    dispatch(cx.isa, Rows { table, contributions, entries, from, rule, eps, buffer, square })
                });
            }
        });
    }
    if let Some(to) = sum {
        *to = (f64::from(*to) + squares.iter().sum::<f64>()) as f32;
    }
    Ok(())
}

fn zero(cx: &Ctx, to: MatMut) {
    cx.pool.run(to.rows.div_ceil(ZERO_TILE), |task, _| {
        for row in task * ZERO_TILE..to.rows.min((task + 1) * ZERO_TILE) {
            // SAFETY: tasks own disjoint rows.
            unsafe { to.row(row).fill(0.0) };
        }
    });
}

/// [`Update`] with its constants worked out.
enum Rule<'a> {
    Dense(MatMut),
    SquareSum,
    LazyAdam {
        m: MatMut,
        v: MatMut,
        factors: AdamFactors,
    },
    RowAdagrad {
        state: Disjoint<'a, f32>,
        lr: f32,
        eps: f32,
        keep: f32,
        grad_scale: f32,
    },
}

/// The rows whose entries begin in `from..from + TILE`.
struct Rows<'a, E> {
    table: MatMut<E>,
    contributions: &'a [Contribution],
    entries: &'a [Entry],
    from: usize,
    rule: &'a Rule<'a>,
    eps: f32,
    buffer: &'a mut [f32],
    square: &'a mut f64,
}

impl<E: Element> Kernel for Rows<'_, E> {
    #[inline(always)]
    unsafe fn run<V: Simd>(mut self) {
        let entries = self.entries;
        let end = entries.len().min(self.from + TILE);
        let mut at = self.from;
        if at > 0 {
            let before = entries[at - 1].id;
            at += entries[at..].iter().take_while(|entry| entry.id == before).count();
        }
        while at < end {
            let id = entries[at].id;
            let count = entries[at..].iter().take_while(|entry| entry.id == id).count();
            // SAFETY: ids and shapes were checked; this task alone has row `id`.
            unsafe {
                self.sum::<V>(at, at + count);
                self.apply::<V>(id as usize);
            }
            at += count;
        }
    }
}

impl<E: Element> Rows<'_, E> {
    /// The row's gradient into the first part of the buffer. Entries `from..to` are one row's.
    #[inline(always)]
    unsafe fn sum<V: Simd>(&mut self, from: usize, to: usize) {
        let cols = self.table.cols;
        let width = cols.next_multiple_of(LANES);
        let (plain, rest) = self.buffer.split_at_mut(width);
        let (unit, row) = rest.split_at_mut(width);
        plain.fill(0.0);
        let mut through_norm = false;
        let mut at = from;
        while at < to {
            let number = self.entries[at].contribution();
            let same = self.entries[at..to]
                .iter()
                .take_while(|entry| entry.contribution() == number);
            let count = same.count();
            let contribution = &self.contributions[number];
            if contribution.normalized.is_some() && !through_norm {
                through_norm = true;
                unit.fill(0.0);
            }
            let sum = if contribution.normalized.is_some() {
                &mut *unit
            } else {
                &mut *plain
            };
            let terms = Run {
                source: contribution.source,
                entries: &self.entries[at..],
                count,
            };
            unsafe { add_weighted::<V, f32>(&terms, cols, sum.as_mut_ptr()) };
            at += count;
        }
        if through_norm {
            // SAFETY: the row exists, buffers hold whole vectors.
            unsafe {
                let source = self.table.row(self.entries[from].id as usize).as_ptr();
                for k in 0..width / LANES {
                    load_vector::<V, E>(source, k, cols).store(row.as_mut_ptr().add(k * LANES));
                }
                add_through_norm::<V>(row, unit, self.eps, plain);
            }
        }
    }

    #[inline(always)]
    unsafe fn apply<V: Simd>(&mut self, id: usize) {
        let cols = self.table.cols;
        let vectors = cols.div_ceil(LANES);
        let gradient = self.buffer.as_ptr();
        // SAFETY: this task alone has row `id` of the table and of the optimiser's state.
        unsafe {
            let table = self.table.row(id).as_mut_ptr();
            match self.rule {
                Rule::Dense(to) => {
                    let to = to.row(id).as_mut_ptr();
                    for k in 0..vectors {
                        let sum = V::load(gradient.add(k * LANES)).add(load_vector::<V, f32>(to, k, cols));
                        store_vector::<V, f32>(sum, to, k, cols);
                    }
                }
                Rule::SquareSum => *self.square += f64::from(dot::<V>(gradient, gradient, cols)),
                Rule::LazyAdam { m, v, factors } => {
                    let (m, v) = (m.row(id).as_mut_ptr(), v.row(id).as_mut_ptr());
                    for k in 0..vectors {
                        let (p1, m1, v1) = adam_vector::<V>(
                            factors,
                            load_vector::<V, E>(table, k, cols),
                            V::load(gradient.add(k * LANES)),
                            load_vector::<V, f32>(m, k, cols),
                            load_vector::<V, f32>(v, k, cols),
                        );
                        store_vector::<V, E>(p1, table, k, cols);
                        store_vector::<V, f32>(m1, m, k, cols);
                        store_vector::<V, f32>(v1, v, k, cols);
                    }
                }
                Rule::RowAdagrad {
                    state,
                    lr,
                    eps,
                    keep,
                    grad_scale,
                } => {
                    let state = &mut state.range(id, 1)[0];
                    *state += dot::<V>(gradient, gradient, cols) * grad_scale * grad_scale / cols as f32;
                    let rate = V::splat(lr * grad_scale / (state.sqrt() + eps));
                    for k in 0..vectors {
                        let p = load_vector::<V, E>(table, k, cols).mul(V::splat(*keep));
                        let p = V::load(gradient.add(k * LANES)).fnma(rate, p);
                        store_vector::<V, E>(p, table, k, cols);
                    }
                }
            }
        }
    }
}

/// `to += (g - ehat (ehat . g)) / |e|`, or `g / eps` for a row shorter than eps.
#[inline(always)]
unsafe fn add_through_norm<V: Simd>(row: &[f32], gradient: &[f32], eps: f32, to: &mut [f32]) {
    unsafe {
        let norm = dot::<V>(row.as_ptr(), row.as_ptr(), row.len()).sqrt();
        let inverse = 1.0 / norm.max(eps);
        let along = match norm > eps {
            true => dot::<V>(row.as_ptr(), gradient.as_ptr(), row.len()) * inverse * inverse,
            false => 0.0,
        };
        for k in (0..row.len()).step_by(LANES) {
            let g = V::load(gradient.as_ptr().add(k));
            let inside = V::load(row.as_ptr().add(k)).fnma(V::splat(along), g);
            inside
                .fma(V::splat(inverse), V::load(to.as_ptr().add(k)))
                .store(to.as_mut_ptr().add(k));
        }
    }
}

/// Consecutive entries of one row from one contribution. `entries` runs on to the end, for prefetching.
struct Run<'a> {
    source: Mat,
    entries: &'a [Entry],
    count: usize,
}

impl Terms<f32> for Run<'_> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.count
    }
    #[inline(always)]
    unsafe fn term(&self, j: usize) -> (*const f32, f32) {
        unsafe {
            let entry = self.entries.get_unchecked(j);
            (self.source.ptr.add(entry.row() * self.source.stride), entry.weight)
        }
    }
    #[inline(always)]
    unsafe fn upcoming(&self, j: usize) -> Option<*const f32> {
        let entry = self.entries.get(j + AHEAD)?;
        Some(self.source.ptr.wrapping_add(entry.row() * self.source.stride))
    }
}

fn check(args: &EmbeddingUpdate) -> Outcome {
    let table = args.table.as_ref();
    let (items, cols) = (table.rows(), table.cols());
    let shape = |input, expected: (usize, usize), got: (usize, usize)| {
        if expected == got {
            return Ok(());
        }
        let text = |(rows, cols)| format!("[{rows}, {cols}]");
        Err(fault(FaultKind::Shape, OP, input, text(expected), text(got)))
    };
    let number = args.contributions.len();
    if number > MAX_CONTRIBUTIONS {
        let expected = format!("at most {MAX_CONTRIBUTIONS}");
        return Err(fault(
            FaultKind::Argument,
            OP,
            "contributions",
            expected,
            format!("{number}"),
        ));
    }
    let mut eps = None;
    for c in args.contributions {
        shape("source", (c.ids.rows, cols), (c.source.rows, c.source.cols))?;
        if let Some(coef) = c.coef {
            shape("coef", (c.ids.rows, c.ids.cols), (coef.rows, coef.cols))?;
        }
        if c.ids.rows >= MAX_SOURCE_ROWS {
            let expected = format!("fewer than {MAX_SOURCE_ROWS} rows");
            return Err(fault(
                FaultKind::Shape,
                OP,
                "source",
                expected,
                format!("{}", c.ids.rows),
            ));
        }
        if let (Some(first), Some(this)) = (eps, c.normalized)
            && first != this
        {
            return Err(fault(
                FaultKind::Argument,
                OP,
                "normalized",
                format!("one eps, {first}"),
                format!("{this}"),
            ));
        }
        eps = eps.or(c.normalized);
        for row in 0..c.ids.rows {
            // SAFETY: `row` is a row of the view.
            check_ids(OP, "ids", unsafe { c.ids.row(row) }, items, true)?;
        }
    }
    match &args.update {
        Update::Dense { grad } => shape("grad", (items, cols), (grad.to.rows, grad.to.cols)),
        Update::SquareSum { .. } => Ok(()),
        Update::LazyAdam { m, v, hyper } => {
            shape("m", (items, cols), (m.rows, m.cols))?;
            shape("v", (items, cols), (v.rows, v.cols))?;
            hyper.check(OP)
        }
        Update::RowAdagrad {
            state,
            lr,
            eps,
            weight_decay,
        } => {
            shape("state", (items, 1), (state.len(), 1))?;
            if [lr, eps, weight_decay].iter().all(|x| x.is_finite()) {
                return Ok(());
            }
            let got = format!("{lr}, {eps}, {weight_decay}");
            Err(fault(
                FaultKind::Argument,
                OP,
                "lr, eps, weight_decay",
                "finite numbers",
                got,
            ))
        }
    }
}
