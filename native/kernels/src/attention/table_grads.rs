//! Gradients of the bias tables: every task of a wave has its own partial sum, and after the wave the partial sums are added in
//! the order of the plan, in double precision. So the result does not depend on the assignment of tasks to threads.

use super::bias::Tables;
use super::bucket::BUCKETS;
use super::plan::{BLOCK, Blocks, Plan, Task};
use crate::arena::Lease;
use crate::ctx::Ctx;
use crate::mat::{Disjoint, Grad};
use crate::simd::LANES;

/// Floats of a partial's distances: key - query within a pair of blocks, and slack for whole vectors.
const DISTANCES: usize = 2 * BLOCK + LANES;

/// The partial sums of one task.
#[derive(Clone, Copy)]
pub struct Partial {
    /// `position[BLOCK - 1 + distance]`, distances counted from that of the blocks' first tokens.
    pub position: *mut f32,
    pub time: *mut f64, // [BUCKETS]
}

/// See the module header.
pub struct TableGrads<'a> {
    position: Lease<'a, f64>, // [n], the past half of pos_w
    time: Lease<'a, f64>,     // [BUCKETS]
}

impl<'a> TableGrads<'a> {
    pub fn new(cx: &'a Ctx, n: usize) -> TableGrads<'a> {
        let mut grads = TableGrads {
            position: cx.scratch(n),
            time: cx.scratch(BUCKETS),
        };
        grads.position.fill(0.0);
        grads.time.fill(0.0);
        grads
    }

    /// Runs `work(task, worker, partial)` for all tasks of the plan, wave by wave, and adds up the partial sums if there
    /// is anything to add to.
    pub fn over_waves(
        mut grads: Option<&mut TableGrads>,
        cx: &Ctx,
        plan: &Plan,
        offsets: &[i32],
        work: impl Fn(Task, usize, Option<Partial>) + Sync,
    ) {
        let most = match grads {
            Some(_) => plan.waves().map(<[Task]>::len).max().unwrap_or(0),
            None => 0,
        };
        let (mut position, mut time) = (cx.scratch::<f32>(most * DISTANCES), cx.scratch::<f64>(most * BUCKETS));
        for wave in plan.waves() {
            let (positions, times) = (Disjoint::new(&mut position), Disjoint::new(&mut time));
            let wanted = grads.is_some();
            cx.pool.run(wave.len(), |index, worker| {
                let partial = wanted.then(|| {
                    // SAFETY: the index is this task's own.
                    let (position, time) = unsafe {
                        (
                            positions.range(index * DISTANCES, DISTANCES),
                            times.range(index * BUCKETS, BUCKETS),
                        )
                    };
                    position.fill(0.0);
                    time.fill(0.0);
                    Partial {
                        position: position.as_mut_ptr(),
                        time: time.as_mut_ptr(),
                    }
                });
                work(wave[index], worker, partial);
            });
            if let Some(grads) = &mut grads {
                for (index, task) in wave.iter().enumerate() {
                    let position = &position[index * DISTANCES..][..DISTANCES];
                    grads.add(task, offsets, position, &time[index * BUCKETS..][..BUCKETS]);
                }
            }
        }
    }

    fn add(&mut self, task: &Task, offsets: &[i32], position: &[f32], time: &[f64]) {
        self.time.iter_mut().zip(time).for_each(|(sum, x)| *sum += x);
        let sequence = task.first as usize;
        let blocks = Blocks::new((offsets[sequence + 1] - offsets[sequence]) as usize);
        let apart = match task.i == task.j {
            true => 0,
            false => blocks.range(task.i as usize).start - blocks.range(task.j as usize).start,
        };
        // Entry p has the distance p - (BLOCK - 1) - apart <= 0, which is entry n - 1 + distance of the table.
        let n = self.position.len();
        let shift = n as isize - (BLOCK + apart) as isize;
        for (p, x) in position[..2 * BLOCK].iter().enumerate() {
            let at = p as isize + shift;
            if (0..n as isize).contains(&at) {
                self.position[at as usize] += f64::from(*x);
            }
        }
    }

    /// Writes or accumulates the sums: `dpos_w` (zero in its future half) and `dts_w`.
    pub fn write(&self, tables: &Tables, dpos_w: Option<Grad>, dts_w: Option<Grad>) {
        let row = |Grad { to, accumulate }: Grad| {
            // SAFETY: one row, checked by the op; nobody else writes it.
            let row = unsafe { to.row(0) };
            if !accumulate {
                row.fill(0.0);
            }
            row
        };
        if let Some(row) = dpos_w.map(row) {
            row.iter_mut()
                .zip(self.position.iter())
                .for_each(|(to, sum)| *to = (f64::from(*to) + sum) as f32);
        }
        if let Some(row) = dts_w.map(row) {
            tables.time_gradient(&self.time, row);
        }
    }
}
