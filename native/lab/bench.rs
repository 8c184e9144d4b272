//! Timing and inputs for the cases of `sparse`.

use crate::clock::clock;
use turbogr_kernels::arena::Lease;
use turbogr_kernels::embedding::{Sampler, draw_negatives};
use turbogr_kernels::optim::fill_normal;
use turbogr_kernels::rng::Key;
use turbogr_kernels::{Ctx, MatMut};

pub struct Bench {
    pub cx: Ctx,
    pub case: String,
    pub rounds: usize,
}

impl Bench {
    /// Median and best time; `work` is bytes moved (unit "GB/s") or FLOPs ("GFLOP/s").
    pub fn time(&self, name: &str, work: f64, unit: &str, mut run: impl FnMut(&Ctx)) {
        run(&self.cx);
        let mut times: Vec<f64> = (0..self.rounds)
            .map(|_| {
                let start = clock(&self.cx);
                run(&self.cx);
                clock(&self.cx) - start
            })
            .collect();
        times.sort_by(f64::total_cmp);
        let (median, best) = (times[times.len() / 2], times[0]);
        let speed = work / median / 1e9;
        println!(
            "{name:58} {:9.3} ms (best {:9.3})  {speed:8.2} {unit}",
            median * 1e3,
            best * 1e3
        );
    }

    pub fn wants(&self, case: &str) -> bool {
        self.case == "all" || self.case == case
    }

    /// From the arena, as a run's tables are: huge pages matter to random rows.
    pub fn normal(&self, len: usize, purpose: u64) -> Lease<'_, f32> {
        let mut x = self.cx.scratch(len);
        fill_normal(&self.cx, Key::new(1, 0, purpose), 0.0, 1.0, &mut x).expect("fill");
        x
    }

    pub fn zeros(&self, len: usize) -> Lease<'_, f32> {
        let mut x = self.cx.scratch(len);
        x.fill(0.0);
        x
    }

    pub fn ids(&self, rows: usize, per: usize, items: usize, purpose: u64) -> Vec<i32> {
        let mut ids = vec![0; rows * per];
        let sampler = Sampler::Uniform {
            first: 0,
            count: items as u32,
        };
        draw_negatives(
            &self.cx,
            Key::new(2, 0, purpose),
            sampler,
            MatMut::new(&mut ids, rows, per),
        )
        .expect("draws");
        ids
    }
}
