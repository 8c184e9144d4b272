//! The tensor arguments of an op: each is listed as read or written when it is taken.

use super::Args;
use crate::fault::{NativeFault, Outcome, fault};
use crate::operands::{Input, Named, Output};
use crate::view::Dtype;
use turbogr_kernels::exact_sum::{ExactSum, WORDS};
use turbogr_kernels::mat::{Grad, Mat, MatMut};
use turbogr_kernels::rows::Bf16;
use turbogr_kernels::{Panels, PanelsMut};

impl Args<'_> {
    /// An input in any layout; `None` for handle 0.
    fn read_any(&mut self, input: &'static str) -> Outcome<Option<Input>> {
        let of = Named { op: self.op, input };
        match self.next(input)? {
            0.0 => Ok(None),
            handle => self.operands.read(self.tensors, of, handle).map(Some),
        }
    }

    /// An output in any layout; `None` for handle 0.
    fn write_any(&mut self, input: &'static str) -> Outcome<Option<Output>> {
        let of = Named { op: self.op, input };
        match self.next(input)? {
            0.0 => Ok(None),
            handle => self.operands.write(self.tensors, of, handle).map(Some),
        }
    }

    /// A row-major input; `None` for handle 0.
    pub(super) fn read_opt(&mut self, input: &'static str) -> Outcome<Option<Input>> {
        match self.read_any(input)? {
            Some(tensor) if tensor.in_panels() => Err(self.in_panels(input)),
            tensor => Ok(tensor),
        }
    }

    /// A row-major output; `None` for handle 0.
    fn write_opt(&mut self, input: &'static str) -> Outcome<Option<Output>> {
        match self.write_any(input)? {
            Some(tensor) if tensor.in_panels() => Err(self.in_panels(input)),
            tensor => Ok(tensor),
        }
    }

    pub(super) fn read(&mut self, input: &'static str) -> Outcome<Input> {
        let tensor = self.read_opt(input)?;
        self.there(input, tensor)
    }

    pub(super) fn write(&mut self, input: &'static str) -> Outcome<Output> {
        let tensor = self.write_opt(input)?;
        self.there(input, tensor)
    }

    fn in_panels(&self, input: &str) -> NativeFault {
        fault("shape", self.op, input, "a tensor in rows", "one in panels")
    }

    pub(super) fn there<T>(&self, input: &str, tensor: Option<T>) -> Outcome<T> {
        tensor.ok_or_else(|| fault("handle", self.op, input, "a live tensor of this device", "no tensor"))
    }

    pub(super) fn is<T: TensorElement>(&self, input: &str, dtype: Dtype) -> Outcome {
        match dtype == T::DTYPE {
            true => Ok(()),
            false => Err(fault("dtype", self.op, input, T::DTYPE.name(), dtype.name())),
        }
    }

    pub(super) fn is_whole(&self, input: &str, contiguous: bool) -> Outcome {
        match contiguous {
            true => Ok(()),
            false => Err(fault(
                "shape",
                self.op,
                input,
                "a whole tensor",
                "a column range of a wider one",
            )),
        }
    }

    pub fn mat_of_opt<T: TensorElement>(&mut self, input: &'static str) -> Outcome<Option<Mat<T>>> {
        let Some(tensor) = self.read_opt(input)? else {
            return Ok(None);
        };
        self.is::<T>(input, tensor.dtype())?;
        Ok(Some(tensor.mat()))
    }

    pub fn mat_of<T: TensorElement>(&mut self, input: &'static str) -> Outcome<Mat<T>> {
        let mat = self.mat_of_opt(input)?;
        self.there(input, mat)
    }

    pub fn mat_opt(&mut self, input: &'static str) -> Outcome<Option<Mat>> {
        self.mat_of_opt(input)
    }

    pub fn mat(&mut self, input: &'static str) -> Outcome<Mat> {
        self.mat_of(input)
    }

    pub fn mat_mut_of_opt<T: TensorElement>(&mut self, input: &'static str) -> Outcome<Option<MatMut<T>>> {
        let Some(tensor) = self.write_opt(input)? else {
            return Ok(None);
        };
        self.is::<T>(input, tensor.dtype())?;
        Ok(Some(tensor.mat_mut()))
    }

    pub fn mat_mut_of<T: TensorElement>(&mut self, input: &'static str) -> Outcome<MatMut<T>> {
        let mat = self.mat_mut_of_opt(input)?;
        self.there(input, mat)
    }

    pub fn mat_mut(&mut self, input: &'static str) -> Outcome<MatMut> {
        self.mat_mut_of(input)
    }

    pub fn panels_opt(&mut self, input: &'static str) -> Outcome<Option<Panels>> {
        let Some(tensor) = self.read_any(input)? else {
            return Ok(None);
        };
        self.is::<f32>(input, tensor.dtype())?;
        Ok(Some(tensor.panels()))
    }

    /// Floats in rows or in panels.
    pub fn panels(&mut self, input: &'static str) -> Outcome<Panels> {
        let panels = self.panels_opt(input)?;
        self.there(input, panels)
    }

    pub fn panels_mut_opt(&mut self, input: &'static str) -> Outcome<Option<PanelsMut>> {
        let Some(tensor) = self.write_any(input)? else {
            return Ok(None);
        };
        self.is::<f32>(input, tensor.dtype())?;
        Ok(Some(tensor.panels_mut()))
    }

    pub fn panels_mut(&mut self, input: &'static str) -> Outcome<PanelsMut> {
        let panels = self.panels_mut_opt(input)?;
        self.there(input, panels)
    }

    /// A gradient's destination and whether to add to it.
    pub fn grad(&mut self, input: &'static str) -> Outcome<Grad> {
        let to = self.mat_mut(input)?;
        Ok(Grad {
            to,
            accumulate: self.flag(input)?,
        })
    }

    /// The same in rows or in panels.
    pub fn panels_grad(&mut self, input: &'static str) -> Outcome<Grad<PanelsMut>> {
        let to = self.panels_mut(input)?;
        Ok(Grad {
            to,
            accumulate: self.flag(input)?,
        })
    }

    pub fn grad_opt(&mut self, input: &'static str) -> Outcome<Option<Grad>> {
        let to = self.mat_mut_of_opt(input)?;
        let accumulate = self.flag(input)?;
        Ok(to.map(|to| Grad { to, accumulate }))
    }

    pub fn slice_opt<T: TensorElement>(&mut self, input: &'static str) -> Outcome<Option<&'static [T]>> {
        let Some(tensor) = self.read_opt(input)? else {
            return Ok(None);
        };
        self.is::<T>(input, tensor.dtype())?;
        self.is_whole(input, tensor.is_contiguous())?;
        Ok(Some(tensor.slice()))
    }

    pub fn slice<T: TensorElement>(&mut self, input: &'static str) -> Outcome<&'static [T]> {
        let slice = self.slice_opt(input)?;
        self.there(input, slice)
    }

    pub fn slice_mut_opt<T: TensorElement>(&mut self, input: &'static str) -> Outcome<Option<&'static mut [T]>> {
        let Some(tensor) = self.write_opt(input)? else {
            return Ok(None);
        };
        self.is::<T>(input, tensor.dtype())?;
        self.is_whole(input, tensor.is_contiguous())?;
        Ok(Some(tensor.slice_mut()))
    }

    pub fn slice_mut<T: TensorElement>(&mut self, input: &'static str) -> Outcome<&'static mut [T]> {
        let slice = self.slice_mut_opt(input)?;
        self.there(input, slice)
    }

    /// The bytes of a whole tensor of any type, and that type.
    pub fn raw_opt(&mut self, input: &'static str) -> Outcome<Option<(&'static [u8], Dtype)>> {
        let Some(tensor) = self.read_opt(input)? else {
            return Ok(None);
        };
        self.is_whole(input, tensor.is_contiguous())?;
        Ok(Some((tensor.raw(), tensor.dtype())))
    }

    pub fn raw(&mut self, input: &'static str) -> Outcome<(&'static [u8], Dtype)> {
        let raw = self.raw_opt(input)?;
        self.there(input, raw)
    }

    pub fn raw_mut(&mut self, input: &'static str) -> Outcome<(&'static mut [u8], Dtype)> {
        let tensor = self.write(input)?;
        self.is_whole(input, tensor.is_contiguous())?;
        let dtype = tensor.dtype();
        Ok((tensor.raw_mut(), dtype))
    }

    /// Floats, perhaps of a column range, for ops that go row by row.
    pub fn floats(&mut self, input: &'static str) -> Outcome<Input> {
        let tensor = self.read(input)?;
        self.is::<f32>(input, tensor.dtype())?;
        Ok(tensor)
    }

    pub fn floats_mut(&mut self, input: &'static str) -> Outcome<Output> {
        let tensor = self.write(input)?;
        self.is::<f32>(input, tensor.dtype())?;
        Ok(tensor)
    }

    /// Floats for an op that does not depend on their order.
    pub fn unordered_floats_mut(&mut self, input: &'static str) -> Outcome<Output> {
        let tensor = self.write_any(input)?;
        let tensor = self.there(input, tensor)?;
        self.is::<f32>(input, tensor.dtype())?;
        Ok(tensor.unordered())
    }

    fn one<T>(&self, input: &str, first: Option<T>) -> Outcome<T> {
        first.ok_or_else(|| fault("shape", self.op, input, "one element", "none"))
    }

    pub fn scalar_opt(&mut self, input: &'static str) -> Outcome<Option<&'static f32>> {
        let slice = self.slice_opt(input)?;
        slice.map(|slice| self.one(input, slice.first())).transpose()
    }

    pub fn scalar_mut(&mut self, input: &'static str) -> Outcome<&'static mut f32> {
        let slice = self.slice_mut(input)?;
        self.one(input, slice.first_mut())
    }

    /// Exact sums, one after the other.
    pub fn exact_sums(&mut self, input: &'static str) -> Outcome<&'static [ExactSum]> {
        let words = self.slice(input)?;
        ExactSum::of(words).ok_or_else(|| self.not_sums(input, words.len()))
    }

    pub fn exact_sum_mut(&mut self, input: &'static str) -> Outcome<&'static mut ExactSum> {
        let words = self.slice_mut(input)?;
        let count = words.len();
        ExactSum::of_mut(words).ok_or_else(|| self.not_sums(input, count))
    }

    fn not_sums(&self, input: &str, got: usize) -> NativeFault {
        fault("shape", self.op, input, format!("{WORDS} words"), format!("{got}"))
    }
}

/// A Rust type that tensors hold.
pub trait TensorElement: 'static {
    const DTYPE: Dtype;
}
impl TensorElement for f32 {
    const DTYPE: Dtype = Dtype::F32;
}
impl TensorElement for u16 {
    const DTYPE: Dtype = Dtype::F16;
}
impl TensorElement for Bf16 {
    const DTYPE: Dtype = Dtype::Bf16;
}
impl TensorElement for i32 {
    const DTYPE: Dtype = Dtype::I32;
}
impl TensorElement for i64 {
    const DTYPE: Dtype = Dtype::I64;
}
