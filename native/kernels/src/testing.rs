//! Shared by kernel tests: matrices with guarded padding, comparison with the oracle, and all contexts that must
//! give the same answer.

use crate::arena::Arena;
use crate::ctx::Ctx;
use crate::isa::{Isa, available};
use crate::mat::{Grad, Mat, MatMut};
use crate::rng::{Key, uniform, word};
use std::sync::Arc;

const GUARD: f32 = -7.5e8;
/// Columns of padding, so that no row starts on a boundary.
const PAD: usize = 3;

/// Numbers in [-1, 1), the same for the same seed.
pub fn numbers(seed: u64, len: usize) -> Vec<f64> {
    let key = Key::new(seed, 0, 0);
    (0..len)
        .map(|i| f64::from(uniform(word(key, i as u64)) * 2.0 - 1.0))
        .collect()
}

/// A matrix whose rows are further apart than they are wide; the padding must survive the kernel.
#[derive(Clone, PartialEq, Debug)]
pub struct Padded {
    data: Vec<f32>,
    rows: usize,
    cols: usize,
}

impl Padded {
    pub fn from(values: &[f64], rows: usize, cols: usize) -> Padded {
        let mut padded = Padded {
            data: vec![GUARD; rows * (cols + PAD)],
            rows,
            cols,
        };
        for (row, from) in padded.data.chunks_mut(cols + PAD).zip(values.chunks(cols.max(1))) {
            row.iter_mut().zip(from).for_each(|(to, x)| *to = *x as f32);
        }
        padded
    }
    /// Filled with NaN: everything must be overwritten.
    pub fn unset(rows: usize, cols: usize) -> Padded {
        Padded::from(&vec![f64::NAN; rows * cols], rows, cols)
    }
    pub fn mat(&self) -> Mat {
        Mat {
            ptr: self.data.as_ptr(),
            rows: self.rows,
            cols: self.cols,
            stride: self.cols + PAD,
        }
    }
    pub fn mat_mut(&mut self) -> MatMut {
        MatMut {
            ptr: self.data.as_mut_ptr(),
            rows: self.rows,
            cols: self.cols,
            stride: self.cols + PAD,
        }
    }
    pub fn overwrite(&mut self) -> Grad {
        Grad::overwrite(self.mat_mut())
    }
    pub fn accumulate(&mut self) -> Grad {
        Grad::accumulate(self.mat_mut())
    }
    pub fn bits(&self) -> Vec<u32> {
        self.data.iter().map(|x| x.to_bits()).collect()
    }

    /// Every element within `tolerance + tolerance * |want|` of the oracle's, and the padding untouched.
    pub fn assert_close(&self, want: &[f64], tolerance: f64, what: &str) {
        assert_eq!(want.len(), self.rows * self.cols, "{what}: size");
        for (i, row) in self.data.chunks(self.cols + PAD).enumerate() {
            assert!(
                row[self.cols..].iter().all(|x| *x == GUARD),
                "{what}: row {i} wrote beyond its end"
            );
            for (j, got) in row[..self.cols].iter().enumerate() {
                let want = want[i * self.cols + j];
                let error = (f64::from(*got) - want).abs();
                assert!(
                    error <= tolerance * (1.0 + want.abs()),
                    "{what}: [{i}, {j}] is {got}, oracle {want}"
                );
            }
        }
    }
}

/// Contexts of every instruction set and of 1, 2 and 3 threads.
pub fn contexts() -> Vec<Vec<Ctx>> {
    available()
        .map(|isa| {
            (1..=3)
                .map(|threads| Ctx::with(threads, isa, Arc::new(Arena::new())))
                .collect()
        })
        .collect()
}

/// Runs `kernel` in every context. Its outputs are the same bits for any number of threads, and with AVX2 and AVX-512. Returns the
/// outputs of each set.
pub fn on_every_context(contexts: &[Vec<Ctx>], kernel: impl Fn(&Ctx) -> Vec<Padded>) -> Vec<Vec<Padded>> {
    let mut outputs: Vec<Vec<Padded>> = Vec::new();
    let mut fused: Option<(Isa, Vec<Padded>)> = None;
    for set in contexts {
        let mut runs = set.iter().map(|cx| (cx, kernel(cx)));
        let (cx, first) = runs.next().expect("a context");
        for (cx, run) in runs {
            assert_same_bits(
                &first,
                &run,
                &format!("{:?}, 1 and {} threads", cx.isa, cx.pool.threads()),
            );
        }
        if cx.isa != Isa::Portable {
            if let Some((isa, others)) = &fused {
                assert_same_bits(others, &first, &format!("{isa:?} and {:?}", cx.isa));
            }
            fused = Some((cx.isa, first.clone()));
        }
        outputs.push(first);
    }
    outputs
}

fn assert_same_bits(these: &[Padded], those: &[Padded], what: &str) {
    for (output, (a, b)) in these.iter().zip(those).enumerate() {
        assert!(a.bits() == b.bits(), "{what}: output {output} differs");
    }
}

/// Central differences of `loss` at every element of `at`.
pub fn finite_differences(at: &[f64], loss: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let step = 1e-5;
    let mut x = at.to_vec();
    (0..at.len())
        .map(|i| {
            x[i] = at[i] + step;
            let up = loss(&x);
            x[i] = at[i] - step;
            let down = loss(&x);
            x[i] = at[i];
            (up - down) / (2.0 * step)
        })
        .collect()
}

/// Gradients of an oracle against its own finite differences.
pub fn assert_gradient(got: &[f64], want: &[f64], what: &str) {
    assert_eq!(got.len(), want.len(), "{what}: size");
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        assert!(
            (got - want).abs() <= 1e-7 * (1.0 + want.abs()),
            "{what}[{i}]: {got}, differences {want}"
        );
    }
}
