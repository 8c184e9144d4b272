//! Simple epilogues of a product: bias, dropout, residual; and storing or accumulating a gradient.

use super::dropout_row;
use crate::gemm::Finish;
use crate::mat::{Grad, Mat, MatMut};
use crate::rng::Dropout;
use crate::simd::tile::MR;
use crate::simd::{LANES, Simd};

/// `y = drop(acc + bias) + residual`.
pub struct Residual<'a> {
    pub bias: Option<&'a [f32]>,
    pub dropout: Dropout,
    pub residual: Mat,
    pub y: MatMut,
}

impl Finish for Residual<'_> {
    // A row's dropout factors are cheap only in groups of 64.
    fn whole_rows(&self) -> bool {
        !self.dropout.is_off()
    }

    #[inline(always)]
    unsafe fn ahead<V: Simd>(&self, i: usize, j: usize) {
        // SAFETY: by this function's contract.
        unsafe {
            for i in i..i + MR {
                V::prefetch(self.residual.at(i, j));
                V::prefetch(self.y.at(i, j));
            }
        }
    }

    #[inline(always)]
    unsafe fn take<V: Simd>(&self, i: usize, j: usize, n: usize, acc: *mut f32) {
        // SAFETY: by this function's contract.
        unsafe {
            let residual = self.residual.at(i, j);
            let y = self.y.at(i, j);
            if let Some(bias) = self.bias {
                for at in (0..n).step_by(LANES) {
                    V::load_upto(bias.as_ptr().add(j + at), n - at)
                        .add(V::load(acc.add(at)))
                        .store(acc.add(at));
                }
            }
            drop_row::<V>(&self.dropout, dropout_row(i, self.y.cols) + j as u64, acc, n);
            for at in (0..n).step_by(LANES) {
                V::load_upto(residual.add(at), n - at)
                    .add(V::load(acc.add(at)))
                    .store_upto(y.add(at), n - at);
            }
        }
    }
}

/// `dx (+)= drop(acc)`.
pub struct DroppedGrad {
    pub dropout: Dropout,
    pub dx: Grad,
}

impl Finish for DroppedGrad {
    fn whole_rows(&self) -> bool {
        !self.dropout.is_off()
    }

    #[inline(always)]
    unsafe fn take<V: Simd>(&self, i: usize, j: usize, n: usize, acc: *mut f32) {
        // SAFETY: by this function's contract.
        unsafe {
            let dx = self.dx.to.at(i, j);
            drop_row::<V>(&self.dropout, dropout_row(i, self.dx.to.cols) + j as u64, acc, n);
            for at in (0..n).step_by(LANES) {
                let g = V::load(acc.add(at));
                let g = if self.dx.accumulate {
                    V::load_upto(dx.add(at), n - at).add(g)
                } else {
                    g
                };
                g.store_upto(dx.add(at), n - at);
            }
        }
    }
}

/// Multiplies `x[0..n]` by the dropout's factors from draw `first` on.
///
/// # Safety
/// This CPU has `V`'s instructions; `x` is valid for `n` floats rounded up to 16; stored decisions, if any, cover `n` rounded
/// up to 64.
#[inline(always)]
pub unsafe fn drop_row<V: Simd>(dropout: &Dropout, first: u64, x: *mut f32, n: usize) {
    const GROUP: usize = 64;
    if dropout.is_off() {
        return;
    }
    let mut factors = [0.0f32; GROUP];
    for group in (0..n).step_by(GROUP) {
        // SAFETY: by this function's contract.
        unsafe { dropout.fill(V::ISA, first + group as u64, &mut factors) };
        for at in (group..n.min(group + GROUP)).step_by(LANES) {
            // SAFETY: `at < n`, and eight lanes fit in `n` rounded up.
            unsafe {
                let to = x.add(at);
                V::load(to).mul(V::load(factors.as_ptr().add(at - group))).store(to);
            }
        }
    }
}
