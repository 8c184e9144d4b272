//! Reads an op's arguments: numbers and tensor handles in the order that the op's decoder asks for them. What is wrong
//! with a handle, a dtype or a layout is found here, at the enqueue; what is wrong with shapes and data, by the kernel.

use crate::command::Command;
use crate::queue::Site;
use crate::refusal::{Outcome, refusal};
use crate::tensors::{Dtype, Tensors, View};
use turbogr_kernels::mat::{Grad, Mat, MatMut};
use turbogr_kernels::rng::{Dropout, Key};
use turbogr_kernels::{Panels, Rows, RowsMut};

pub struct Args<'a> {
    pub op: &'static str,
    values: std::slice::Iter<'a, f64>,
    tensors: &'a Tensors,
    /// Storages that the command will use.
    touched: &'a mut Vec<u32>,
    command: &'a mut Command,
}

/// Where decoding leaves its results.
pub struct Decoded<'a> {
    pub touched: &'a mut Vec<u32>,
    pub command: &'a mut Command,
}

impl<'a> Args<'a> {
    pub fn new(op: &'static str, values: &'a [f64], tensors: &'a Tensors, into: Decoded<'a>) -> Args<'a> {
        Args {
            op,
            values: values.iter(),
            tensors,
            touched: into.touched,
            command: into.command,
        }
    }

    /// What the stream is to run with the arguments. Skipped when the stream has failed before.
    pub fn work<F: FnOnce(&Site) -> Outcome + Send + 'static>(&mut self, work: F) -> Outcome {
        self.command.work(self.op, work);
        Ok(())
    }

    /// Every argument must have been asked for.
    pub fn finish(self) -> Outcome {
        match self.values.len() {
            0 => Ok(()),
            left => Err(refusal("op", self.op, "arguments", "fewer", format!("{left} too many"))),
        }
    }

    fn next(&mut self, input: &str) -> Outcome<f64> {
        let value = self.values.next().copied();
        value.ok_or_else(|| refusal("op", self.op, input, "an argument", "the end of the arguments"))
    }

    pub fn f64(&mut self, input: &str) -> Outcome<f64> {
        let value = self.next(input)?;
        if value.is_nan() {
            return Err(refusal("argument", self.op, input, "a number", "NaN"));
        }
        Ok(value)
    }

    pub fn f32(&mut self, input: &str) -> Outcome<f32> {
        Ok(self.f64(input)? as f32)
    }

    pub fn whole(&mut self, input: &str) -> Outcome<u64> {
        let value = self.next(input)?;
        if !(value >= 0.0 && value.fract() == 0.0 && value <= 9_007_199_254_740_992.0) {
            return Err(refusal(
                "argument",
                self.op,
                input,
                "a whole number",
                format!("{value}"),
            ));
        }
        Ok(value as u64)
    }

    pub fn usize(&mut self, input: &str) -> Outcome<usize> {
        Ok(self.whole(input)? as usize)
    }

    pub fn flag(&mut self, input: &str) -> Outcome<bool> {
        self.choice(input, &[false, true])
    }

    /// One of `options`, by index.
    pub fn choice<T: Copy>(&mut self, input: &str, options: &[T]) -> Outcome<T> {
        let index = self.usize(input)?;
        options.get(index).copied().ok_or_else(|| {
            let expected = format!("an option below {}", options.len());
            refusal("argument", self.op, input, expected, format!("{index}"))
        })
    }

    /// Seed, step and purpose of a random op.
    pub fn key(&mut self) -> Outcome<Key> {
        Ok(Key::new(
            self.whole("seed")?,
            self.whole("step")?,
            self.whole("purpose")?,
        ))
    }

    /// Drop probability and key.
    pub fn dropout(&mut self) -> Outcome<Dropout> {
        let p = self.f32("dropout")?;
        let key = self.key()?;
        if !(0.0..1.0).contains(&p) {
            return Err(refusal(
                "argument",
                self.op,
                "dropout",
                "a probability in [0, 1)",
                format!("{p}"),
            ));
        }
        Ok(if p == 0.0 { Dropout::off() } else { Dropout::new(key, p) })
    }

    /// A view in any layout, or none for handle 0.
    fn any_view_opt(&mut self, input: &str) -> Outcome<Option<View>> {
        match self.next(input)? {
            0.0 => Ok(None),
            handle => {
                let view = *self.tensors.view(self.op, input, handle)?;
                self.touched.push(view.storage);
                Ok(Some(view))
            }
        }
    }

    fn there<T>(&self, input: &str, view: Option<T>) -> Outcome<T> {
        view.ok_or_else(|| refusal("handle", self.op, input, "a live tensor of this device", "no tensor"))
    }

    /// A view in rows.
    pub fn view(&mut self, input: &str) -> Outcome<View> {
        let view = self.view_opt(input)?;
        self.there(input, view)
    }

    /// A view in rows, or none for handle 0.
    pub fn view_opt(&mut self, input: &str) -> Outcome<Option<View>> {
        match self.any_view_opt(input)? {
            Some(View { in_panels: true, .. }) => {
                Err(refusal("shape", self.op, input, "a tensor in rows", "one in panels"))
            }
            view => Ok(view),
        }
    }

    pub fn typed(&self, input: &str, view: View, dtype: Dtype) -> Outcome<View> {
        if view.dtype == dtype {
            return Ok(view);
        }
        Err(refusal("dtype", self.op, input, dtype.name(), view.dtype.name()))
    }

    pub fn mat(&mut self, input: &str) -> Outcome<Mat> {
        let view = self.view(input)?;
        Ok(mat(self.typed(input, view, Dtype::F32)?))
    }

    pub fn mat_opt(&mut self, input: &str) -> Outcome<Option<Mat>> {
        let view = self.view_opt(input)?;
        view.map(|view| Ok(mat(self.typed(input, view, Dtype::F32)?)))
            .transpose()
    }

    pub fn panels_opt(&mut self, input: &str) -> Outcome<Option<Panels>> {
        let view = self.any_view_opt(input)?;
        view.map(|view| Ok(panels(self.typed(input, view, Dtype::F32)?)))
            .transpose()
    }

    /// Floats in rows or in panels.
    pub fn panels(&mut self, input: &str) -> Outcome<Panels> {
        let view = self.panels_opt(input)?;
        self.there(input, view)
    }

    pub fn mat_mut(&mut self, input: &str) -> Outcome<MatMut> {
        let view = self.view(input)?;
        Ok(mat_mut(self.typed(input, view, Dtype::F32)?))
    }

    pub fn mat_mut_of_opt<T: Element>(&mut self, input: &str) -> Outcome<Option<MatMut<T>>> {
        let view = self.view_opt(input)?;
        view.map(|view| Ok(mat_mut(self.typed(input, view, T::DTYPE)?)))
            .transpose()
    }

    pub fn mat_mut_of<T: Element>(&mut self, input: &str) -> Outcome<MatMut<T>> {
        let view = self.view(input)?;
        Ok(mat_mut(self.typed(input, view, T::DTYPE)?))
    }

    /// A gradient's destination and whether to add to it.
    pub fn grad(&mut self, input: &str) -> Outcome<Grad> {
        let to = self.mat_mut(input)?;
        Ok(Grad {
            to,
            accumulate: self.flag(input)?,
        })
    }

    /// The same in rows or in panels.
    pub fn panels_grad(&mut self, input: &str) -> Outcome<Grad<Panels>> {
        let to = self.panels(input)?;
        Ok(Grad {
            to,
            accumulate: self.flag(input)?,
        })
    }

    pub fn grad_opt(&mut self, input: &str) -> Outcome<Option<Grad>> {
        let to = self.mat_mut_of_opt(input)?;
        let accumulate = self.flag(input)?;
        Ok(to.map(|to| Grad { to, accumulate }))
    }

    fn flat(&self, input: &str, view: View, dtype: Dtype) -> Outcome<View> {
        let view = self.typed(input, view, dtype)?;
        if view.is_contiguous() {
            return Ok(view);
        }
        Err(refusal(
            "shape",
            self.op,
            input,
            "a whole tensor",
            "a column range of a wider one",
        ))
    }

    pub fn slice<T: Element>(&mut self, input: &str) -> Outcome<&'static [T]> {
        let view = self.view(input)?;
        Ok(slice(self.flat(input, view, T::DTYPE)?))
    }

    pub fn slice_opt<T: Element>(&mut self, input: &str) -> Outcome<Option<&'static [T]>> {
        let view = self.view_opt(input)?;
        view.map(|view| Ok(slice(self.flat(input, view, T::DTYPE)?)))
            .transpose()
    }

    pub fn slice_mut<T: Element>(&mut self, input: &str) -> Outcome<&'static mut [T]> {
        let view = self.view(input)?;
        Ok(slice_mut(self.flat(input, view, T::DTYPE)?))
    }

    /// Floats, perhaps of a column range, for ops that go row by row.
    pub fn floats(&mut self, input: &str) -> Outcome<View> {
        let view = self.view(input)?;
        self.typed(input, view, Dtype::F32)
    }

    /// Floats for an op to which their order means nothing.
    pub fn unordered_floats(&mut self, input: &str) -> Outcome<View> {
        let view = self.any_view_opt(input)?;
        let view = self.there(input, view)?;
        Ok(self.typed(input, view, Dtype::F32)?.unordered())
    }

    fn one<'s, T>(&self, input: &str, first: Option<&'s T>) -> Outcome<&'s T> {
        first.ok_or_else(|| refusal("shape", self.op, input, "one element", "none"))
    }

    pub fn scalar(&mut self, input: &str) -> Outcome<&'static f32> {
        let slice = self.slice(input)?;
        self.one(input, slice.first())
    }

    pub fn scalar_opt(&mut self, input: &str) -> Outcome<Option<&'static f32>> {
        let slice = self.slice_opt(input)?;
        slice.map(|slice| self.one(input, slice.first())).transpose()
    }

    pub fn scalar_mut(&mut self, input: &str) -> Outcome<&'static mut f32> {
        let first = self.slice_mut(input)?.first_mut();
        first.ok_or_else(|| refusal("shape", self.op, input, "one element", "none"))
    }

    /// An embedding table, f32 or FP16.
    pub fn rows(&mut self, input: &str) -> Outcome<Rows> {
        Ok(self.rows_mut(input)?.as_ref())
    }

    pub fn rows_mut(&mut self, input: &str) -> Outcome<RowsMut> {
        let view = self.view(input)?;
        match view.dtype {
            Dtype::F32 => Ok(RowsMut::F32(mat_mut(view))),
            Dtype::F16 => Ok(RowsMut::F16(mat_mut(view))),
            other => Err(refusal("dtype", self.op, input, "f32 or f16", other.name())),
        }
    }

    /// A matrix of ids with this many rows, whatever rows a contiguous tensor has itself.
    pub fn ids(&mut self, input: &str, rows: usize) -> Outcome<Mat<i32>> {
        let view = self.view(input)?;
        let view = self.typed(input, view, Dtype::I32)?;
        if view.rows == rows || !view.is_contiguous() {
            return Ok(mat(view));
        }
        let count = view.rows * view.cols;
        if rows == 0 || count % rows != 0 {
            let got = format!("{} x {}", view.rows, view.cols);
            return Err(refusal("shape", self.op, input, format!("ids for {rows} rows"), got));
        }
        let cols = count / rows;
        Ok(mat(View {
            rows,
            cols,
            stride: cols,
            ..view
        }))
    }
}

/// A Rust type that tensors hold.
pub trait Element: 'static {
    const DTYPE: Dtype;
}
impl Element for f32 {
    const DTYPE: Dtype = Dtype::F32;
}
impl Element for u16 {
    const DTYPE: Dtype = Dtype::F16;
}
impl Element for i32 {
    const DTYPE: Dtype = Dtype::I32;
}
impl Element for i64 {
    const DTYPE: Dtype = Dtype::I64;
}

pub fn mat<T>(view: View) -> Mat<T> {
    Mat {
        ptr: view.ptr.cast(),
        rows: view.rows,
        cols: view.cols,
        stride: view.stride,
    }
}

fn panels(view: View) -> Panels {
    match view.in_panels {
        true => Panels::new(view.ptr.cast(), view.rows, view.cols),
        false => mat::<f32>(view).into(),
    }
}

pub fn mat_mut<T>(view: View) -> MatMut<T> {
    MatMut {
        ptr: view.ptr.cast(),
        rows: view.rows,
        cols: view.cols,
        stride: view.stride,
    }
}

/// The elements of a contiguous view. `'static` stands for "until the command has run": memory goes back to the system
/// only when the runtime closes, after its streams have drained, and reuse follows stream order.
pub fn slice<T>(view: View) -> &'static [T] {
    // SAFETY: `view` is contiguous and its block holds rows x cols elements, aligned to 64 bytes.
    unsafe { std::slice::from_raw_parts(view.ptr.cast(), view.rows * view.cols) }
}

/// As [`slice`], for an output: the stream runs one command at a time and a kernel takes each output once.
pub fn slice_mut<T>(view: View) -> &'static mut [T] {
    // SAFETY: as in `slice`.
    unsafe { std::slice::from_raw_parts_mut(view.ptr.cast(), view.rows * view.cols) }
}
