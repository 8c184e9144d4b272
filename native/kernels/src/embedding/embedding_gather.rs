//! Input embedding: `out = drop(scale * E[id] + pos[i])`, i counting inside each sequence from the oldest event.
//!
//! T tokens, D width, V items, P positions. An id of -1 adds no row. With `accumulate` the row is added to what `out`
//! holds before dropout, so several tables (item, action, context) sum into one input: dropout and positions go with the
//! last of them. The table's gradient is not materialised: `dx` after `backward` is the source of a `Contribution`.

use crate::ctx::Ctx;
use crate::fault::{FaultKind, Outcome, check_ids, check_offsets, fault};
use crate::gathered::prefetch_span;
use crate::mat::{Grad, Mat, MatMut};
use crate::rng::Dropout;
use crate::rows::{Element, Rows, load_vector, store_vector};
use crate::shape::{check_len, check_mat, check_mut, check_table};
use crate::simd::{Kernel, LANES, Simd, dispatch};
use crate::with_rows;

const OP: &str = "embedding_gather";
/// Tokens, and positions, of one task.
const TILE: usize = 64;
/// Tokens whose dropout factors are computed together.
const DROPS: usize = 8;
/// Rows prefetched ahead of their use.
const AHEAD: usize = 8;

pub struct Forward<'a> {
    pub table: Rows,    // [V, D]
    pub ids: &'a [i32], // [T]
    pub scale: f32,
    pub positions: Option<Positions<'a, Mat>>,
    pub dropout: Dropout,
    pub accumulate: bool,
    pub out: MatMut, // [T, D]
}

/// The position table (or its gradient) with the sequences' offsets.
#[derive(Clone, Copy)]
pub struct Positions<'a, M> {
    pub table: M,           // [P, D]
    pub offsets: &'a [i32], // [B + 1]
}

pub struct Backward<'a> {
    pub dropout: Dropout,
    /// In: gradient of `out`; out: gradient of what was summed before dropout.
    pub dx: MatMut, // [T, D]
    pub positions: Option<Positions<'a, Grad>>,
}

/// Number of the element (t, 0) in the dropout stream: rows start on whole vectors.
pub(super) fn first_draw(t: usize, cols: usize) -> u64 {
    (t * cols.next_multiple_of(LANES)) as u64
}

/// The dropout factors of token `t` of a task's `from..to`, made for several tokens at a time in `buffer`.
///
/// # Safety
/// This CPU has `V`'s instructions.
unsafe fn factors_of<V: Simd>(
    dropout: Dropout,
    (t, from, to): (usize, usize, usize),
    cols: usize,
    buffer: &mut [f32],
) -> &[f32] {
    let width = cols.next_multiple_of(LANES);
    let row = (t - from) % DROPS;
    if row == 0 && !dropout.is_off() {
        let buffer = &mut buffer[..width * DROPS.min(to - t)];
        // SAFETY: by this function's contract; no decisions are stored here.
        unsafe { dropout.fill(V::ISA, first_draw(t, cols), buffer) };
    }
    &buffer[row * width..(row + 1) * width]
}

pub fn forward(cx: &Ctx, args: Forward) -> Outcome {
    let (tokens, cols) = (args.out.rows, args.out.cols);
    check_table(OP, "table", args.table, cols)?;
    check_len(OP, "ids", args.ids.len(), tokens)?;
    check_ids(OP, "ids", args.ids, args.table.rows(), true)?;
    if let Some(positions) = args.positions {
        check_mat(OP, "positions", positions.table, positions.table.rows, cols)?;
        check_lengths(positions.offsets, tokens, positions.table.rows)?;
    }
    let mut factors = cx.per_worker::<f32>(DROPS * cols.next_multiple_of(LANES));
    let factors = factors.slots();
    cx.pool.run(tokens.div_ceil(TILE), |task, worker| {
        let from = task * TILE;
        let to = tokens.min(from + TILE);
        // SAFETY: tasks own disjoint tokens; each worker has its own slot while it runs a task.
        unsafe {
            let (args, factors) = (&args, factors.of(worker));
            with_rows!(Rows, args.table, table => dispatch(cx.isa, GatherRows { table, args, from, to, factors }));
        }
    });
    Ok(())
}

struct GatherRows<'a, E> {
    table: Mat<E>,
    args: &'a Forward<'a>,
    from: usize,
    to: usize,
    factors: &'a mut [f32],
}

impl<E: Element> Kernel for GatherRows<'_, E> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        let GatherRows { table, args, .. } = self;
        let cols = table.cols;
        let mut sequence = args.positions.map_or(0, |p| sequence_of(p.offsets, self.from));
        self.factors.fill(1.0);
        for t in self.from..self.to {
            // SAFETY: ids and positions were checked; the tokens are this task's.
            unsafe {
                if let Some(&ahead) = args.ids.get(t + AHEAD) {
                    prefetch_span::<V, E>(table.ptr.wrapping_add(ahead.max(0) as usize * table.stride), cols);
                }
                let out = args.out.row(t).as_mut_ptr();
                let row = usize::try_from(args.ids[t]).ok().map(|id| table.row(id).as_ptr());
                let position = args.positions.map(|positions| {
                    while positions.offsets[sequence + 1] as usize <= t {
                        sequence += 1;
                    }
                    positions.table.row(t - positions.offsets[sequence] as usize).as_ptr()
                });
                let factors = factors_of::<V>(args.dropout, (t, self.from, self.to), cols, self.factors);
                for k in 0..cols.div_ceil(LANES) {
                    let mut x = V::zero();
                    if args.accumulate {
                        x = load_vector::<V, f32>(out, k, cols);
                    }
                    if let Some(row) = row {
                        x = load_vector::<V, E>(row, k, cols).fma(V::splat(args.scale), x);
                    }
                    if let Some(position) = position {
                        x = x.add(load_vector::<V, f32>(position, k, cols));
                    }
                    let factor = V::load(factors.as_ptr().add(k * LANES));
                    store_vector::<V, f32>(x.mul(factor), out, k, cols);
                }
            }
        }
    }
}

/// The sequence that token `t` belongs to, or the first that could.
fn sequence_of(offsets: &[i32], t: usize) -> usize {
    offsets
        .partition_point(|&offset| offset as usize <= t)
        .saturating_sub(1)
}

pub fn backward(cx: &Ctx, args: Backward) -> Outcome {
    let (tokens, cols) = (args.dx.rows, args.dx.cols);
    if let Some(positions) = args.positions {
        let table = positions.table.to;
        check_mut(OP, "positions", table, table.rows, cols)?;
        check_lengths(positions.offsets, tokens, table.rows)?;
    }
    if !args.dropout.is_off() {
        let mut factors = cx.per_worker::<f32>(DROPS * cols.next_multiple_of(LANES));
        let factors = factors.slots();
        cx.pool.run(tokens.div_ceil(TILE), |task, worker| {
            let from = task * TILE;
            let to = tokens.min(from + TILE);
            // SAFETY: as in `forward`.
            unsafe {
                dispatch(
                    cx.isa,
                    DropRows {
                        args: &args,
                        from,
                        to,
                        factors: factors.of(worker),
                    },
                )
            };
        });
    }
    if let Some(positions) = args.positions {
        cx.pool.run(positions.table.to.rows.div_ceil(TILE), |task, _| {
            let from = task * TILE;
            let to = positions.table.to.rows.min(from + TILE);
            // SAFETY: tasks own disjoint positions and only read `dx`.
            unsafe {
                dispatch(
                    cx.isa,
                    SumPositions {
                        positions,
                        dx: args.dx.as_ref(),
                        from,
                        to,
                    },
                )
            };
        });
    }
    Ok(())
}

struct DropRows<'a> {
    args: &'a Backward<'a>,
    from: usize,
    to: usize,
    factors: &'a mut [f32],
}

impl Kernel for DropRows<'_> {
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        let cols = self.args.dx.cols;
        for t in self.from..self.to {
            // SAFETY: by the contract of `dispatch`.
            let factors = unsafe { factors_of::<V>(self.args.dropout, (t, self.from, self.to), cols, self.factors) };
            // SAFETY: the tokens are this task's.
            unsafe {
                let dx = self.args.dx.row(t).as_mut_ptr();
                for k in 0..cols.div_ceil(LANES) {
                    let factor = V::load(factors.as_ptr().add(k * LANES));
                    store_vector::<V, f32>(load_vector::<V, f32>(dx, k, cols).mul(factor), dx, k, cols);
                }
            }
        }
    }
}

struct SumPositions<'a> {
    positions: Positions<'a, Grad>,
    dx: Mat,
    from: usize,
    to: usize,
}

impl Kernel for SumPositions<'_> {
    /// Sequence by sequence, in order: each position's sum is formed by one task.
    #[inline(always)]
    unsafe fn run<V: Simd>(self) {
        let SumPositions {
            positions,
            dx,
            from,
            to,
        } = self;
        let Grad { to: grad, accumulate } = positions.table;
        // SAFETY: positions `from..to` are this task's; a sequence's tokens are rows of `dx`.
        unsafe {
            if !accumulate {
                (from..to).for_each(|p| grad.row(p).fill(0.0));
            }
            for bounds in positions.offsets.windows(2) {
                let (first, end) = (bounds[0] as usize, bounds[1] as usize);
                for p in from..to.min(end - first) {
                    let (sum, row) = (grad.row(p).as_mut_ptr(), dx.row(first + p).as_ptr());
                    for k in 0..dx.cols.div_ceil(LANES) {
                        let x = load_vector::<V, f32>(row, k, dx.cols);
                        store_vector::<V, f32>(x.add(load_vector::<V, f32>(sum, k, dx.cols)), sum, k, dx.cols);
                    }
                }
            }
        }
    }
}

fn check_lengths(offsets: &[i32], tokens: usize, positions: usize) -> Outcome {
    check_offsets(OP, offsets, tokens)?;
    match offsets
        .windows(2)
        .position(|pair| (pair[1] - pair[0]) as usize > positions)
    {
        None => Ok(()),
        Some(s) => {
            let got = format!("sequence {s} of length {}", offsets[s + 1] - offsets[s]);
            let expected = format!("sequences of at most {positions} tokens, the rows of the position table");
            Err(fault(FaultKind::Range, OP, "offsets", expected, got))
        }
    }
}
