//! Location of a tensor's elements: type, shape, stride and address.

use crate::fault::{Outcome, fault};
use turbogr_kernels::Panels;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dtype {
    F32,
    F16,
    I32,
    I64,
    Bf16,
}

impl Dtype {
    pub const ALL: [Dtype; 5] = [Dtype::F32, Dtype::F16, Dtype::I32, Dtype::I64, Dtype::Bf16];

    pub fn bytes(self) -> usize {
        match self {
            Dtype::F16 | Dtype::Bf16 => 2,
            Dtype::F32 | Dtype::I32 => 4,
            Dtype::I64 => 8,
        }
    }
    pub fn name(self) -> &'static str {
        match self {
            Dtype::F32 => "f32",
            Dtype::F16 => "f16",
            Dtype::Bf16 => "bf16",
            Dtype::I32 => "i32",
            Dtype::I64 => "i64",
        }
    }
}

/// A tensor or a column range of one: `rows` x `cols`, `stride` elements from row to row; or in [`Panels`].
#[derive(Clone, Copy)]
pub struct View {
    pub ptr: *mut u8,
    pub dtype: Dtype,
    pub rows: usize,
    pub cols: usize,
    pub stride: usize,
    pub in_panels: bool,
    pub storage: u32,
}

// SAFETY: an address and a shape; streams order the accesses.
unsafe impl Send for View {}

impl View {
    /// Whether rows are contiguous.
    pub fn is_contiguous(&self) -> bool {
        !self.in_panels && (self.stride == self.cols || self.rows <= 1)
    }
    /// Element `(i, j)` and those that follow it in the row, or in the panel.
    pub fn at(&self, i: usize, j: usize) -> *mut u8 {
        let (panels, within) = match self.in_panels {
            true => (j / Panels::WIDTH, j % Panels::WIDTH),
            false => (0, j),
        };
        let elements = panels * Panels::size(self.rows) + i * self.stride + within;
        self.ptr.wrapping_add(elements * self.dtype.bytes())
    }
    /// Columns `[from, from + cols)`.
    pub fn columns(&self, from: usize, cols: usize) -> Outcome<View> {
        let refuse = |expected: String| {
            let got = format!("{cols} from {from}");
            Err(fault("shape", "view", "columns", expected, got))
        };
        if from.checked_add(cols).is_none_or(|end| end > self.cols) {
            return refuse(format!("a range within {} columns", self.cols));
        }
        let divides = |n: usize| n.is_multiple_of(Panels::WIDTH);
        if self.in_panels && !(divides(from) && divides(cols)) {
            return refuse(format!("whole panels of {}", Panels::WIDTH));
        }
        Ok(View {
            ptr: self.at(0, from),
            cols,
            in_panels: self.in_panels && cols > Panels::WIDTH,
            ..*self
        })
    }
    /// Elements `[from, from + count)` in the order of the rows, as one row.
    pub fn range(&self, from: usize, count: usize) -> Outcome<View> {
        let elements = self.rows * self.cols;
        if !self.is_contiguous() || from.checked_add(count).is_none_or(|end| end > elements) {
            let expected = format!("a range of a whole tensor in rows, which has {elements} elements");
            return Err(fault(
                "shape",
                "range",
                "elements",
                expected,
                format!("{count} from {from}"),
            ));
        }
        Ok(View {
            ptr: self.ptr.wrapping_add(from * self.dtype.bytes()),
            rows: 1,
            cols: count,
            stride: count,
            ..*self
        })
    }
    /// The same memory in storage order, including padding.
    pub fn unordered(self) -> View {
        match self.in_panels {
            true => View {
                rows: Panels::size(self.rows) * (self.cols / Panels::WIDTH) / Panels::WIDTH,
                cols: Panels::WIDTH,
                in_panels: false,
                ..self
            },
            false => self,
        }
    }
    pub fn bytes(&self) -> usize {
        self.rows * self.cols * self.dtype.bytes()
    }
    /// Calls `copy(address, offset, bytes)` for every run of bytes that is contiguous both here and in packed form.
    pub fn each_run(&self, copy: impl Fn(*mut u8, usize, usize)) {
        let width = match self.in_panels {
            true => Panels::WIDTH,
            false => self.cols.max(1),
        };
        let (rows, run) = match self.is_contiguous() {
            true => (1, self.bytes()),
            false => (self.rows, width * self.dtype.bytes()),
        };
        for i in 0..rows {
            for j in (0..self.cols).step_by(width) {
                copy(self.at(i, j), (i * self.cols + j) * self.dtype.bytes(), run);
            }
        }
    }
}
