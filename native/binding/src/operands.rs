//! What the current command reads and writes. Every tensor of a call goes through [`Operands`]: an [`Input`] gives read-only
//! views, an [`Output`] writable ones, and neither can be created without being listed. The list determines the waits between
//! streams (`tensors.rs`), the propagation of failures (`failures.rs`) and the refusal of aliased operands.

use crate::fault::{Outcome, fault};
use crate::tensors::Tensors;
use crate::view::{Dtype, View};
use turbogr_kernels::{Mat, MatMut, Panels, PanelsMut};

/// Maximum operands of a command.
pub const MOST_OPERANDS: usize = 96;

/// A tensor that a command uses.
pub struct Operand {
    pub storage: u32,
    /// The allocation that this handle belongs to; see `Tensors::life`.
    pub life: u64,
    pub written: bool,
    input: &'static str,
    extent: Extent,
}

#[derive(Default)]
pub struct Operands {
    list: Vec<Operand>,
}

impl Operands {
    pub fn clear(&mut self) {
        self.list.clear();
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Operand> {
        self.list.iter()
    }

    pub fn read(&mut self, tensors: &Tensors, of: Named, handle: f64) -> Outcome<Input> {
        Ok(Input(self.add(tensors, of, handle, false)?))
    }

    pub fn write(&mut self, tensors: &Tensors, of: Named, handle: f64) -> Outcome<Output> {
        Ok(Output(self.add(tensors, of, handle, true)?))
    }

    fn add(&mut self, tensors: &Tensors, Named { op, input }: Named, handle: f64, written: bool) -> Outcome<View> {
        let view = *tensors.view(op, input, handle)?;
        let extent = Extent::of(&view);
        for other in &self.list {
            if other.storage == view.storage && (written || other.written) && other.extent.overlaps(&extent) {
                let [writes, shares] = if written {
                    [input, other.input]
                } else {
                    [other.input, input]
                };
                let got = format!("memory that {shares} uses too");
                return Err(fault(
                    "alias",
                    op,
                    writes,
                    "memory of its own, since it is written",
                    got,
                ));
            }
        }
        if self.list.len() == MOST_OPERANDS {
            let expected = format!("at most {MOST_OPERANDS} tensors");
            return Err(fault("op", op, input, expected, "one more"));
        }
        self.list.push(Operand {
            storage: view.storage,
            life: tensors.life(view.storage),
            written,
            input,
            extent,
        });
        Ok(view)
    }
}

/// The current op and the name of one of its inputs.
#[derive(Clone, Copy)]
pub struct Named {
    pub op: &'static str,
    pub input: &'static str,
}

/// The bytes of a view: `count` runs of `run` bytes, `period` bytes apart.
struct Extent {
    start: usize,
    run: usize,
    period: usize,
    count: usize,
}

impl Extent {
    fn of(view: &View) -> Extent {
        let start = view.ptr.addr();
        let bytes = view.dtype.bytes();
        if view.in_panels {
            // Whole panels are contiguous.
            let run = view.cols / Panels::WIDTH * Panels::size(view.rows) * bytes;
            return Extent {
                start,
                run,
                period: run,
                count: 1,
            };
        }
        let (run, period) = (view.cols * bytes, view.stride * bytes);
        match view.is_contiguous() {
            true => Extent {
                start,
                run: run * view.rows,
                period: run * view.rows,
                count: 1,
            },
            false => Extent {
                start,
                run,
                period,
                count: view.rows,
            },
        }
    }

    /// Exact for column ranges of one tensor; for different shapes, whether their address ranges overlap.
    fn overlaps(&self, other: &Extent) -> bool {
        let empty = |extent: &Extent| extent.run == 0 || extent.count == 0;
        let end = |extent: &Extent| extent.start + (extent.count - 1) * extent.period + extent.run;
        if empty(self) || empty(other) || self.start >= end(other) || other.start >= end(self) {
            return false;
        }
        if self.count == 1 || other.count == 1 || self.period != other.period {
            return true;
        }
        // Column ranges with equal row length overlap in every row or in none.
        let (low, high) = if self.start <= other.start {
            (self, other)
        } else {
            (other, self)
        };
        let apart = (high.start - low.start) % self.period;
        apart < low.run || apart + high.run > self.period
    }
}

/// Properties of an operand that need no access to its memory.
macro_rules! describe_operand {
    ($operand:ty) => {
        impl $operand {
            pub fn shape(&self) -> [usize; 2] {
                [self.0.rows, self.0.cols]
            }
            pub fn dtype(&self) -> Dtype {
                self.0.dtype
            }
            pub fn in_panels(&self) -> bool {
                self.0.in_panels
            }
            pub fn is_contiguous(&self) -> bool {
                self.0.is_contiguous()
            }
        }
    };
}
describe_operand!(Input);
describe_operand!(Output);

/// A tensor that the command reads. `'static` in its views means "until the command has run": memory is returned to the system
/// only when the runtime closes, after its streams have drained, and reuse waits for earlier commands.
pub struct Input(View);

impl Input {
    /// The elements of a contiguous tensor as `rows` rows, which must divide them.
    pub fn reshape(self, rows: usize) -> Input {
        let cols = self.0.rows * self.0.cols / rows;
        Input(View {
            rows,
            cols,
            stride: cols,
            ..self.0
        })
    }

    pub fn mat<T>(&self) -> Mat<T> {
        Mat {
            ptr: self.0.ptr.cast(),
            rows: self.0.rows,
            cols: self.0.cols,
            stride: self.0.stride,
        }
    }

    pub fn panels(&self) -> Panels {
        match self.0.in_panels {
            true => Panels::new(self.0.ptr.cast_const().cast(), self.0.rows, self.0.cols),
            false => self.mat::<f32>().into(),
        }
    }

    /// The elements of a contiguous tensor.
    pub fn slice<T>(&self) -> &'static [T] {
        assert!(self.is_contiguous());
        // SAFETY: the block holds rows x cols elements, aligned to 64 bytes; nobody writes them while the command
        // runs: writers of other streams wait, and an overlapping output of this command was refused.
        unsafe { std::slice::from_raw_parts(self.0.ptr.cast(), self.0.rows * self.0.cols) }
    }

    /// The bytes of a contiguous tensor of any type.
    pub fn raw(&self) -> &'static [u8] {
        assert!(self.is_contiguous());
        // SAFETY: as in `slice`.
        unsafe { std::slice::from_raw_parts(self.0.ptr, self.0.bytes()) }
    }

    /// Row `i` of a tensor in rows.
    pub fn row<T>(&self, i: usize) -> &'static [T] {
        assert!(i < self.0.rows && !self.0.in_panels);
        // SAFETY: as in `slice`; a row is contiguous.
        unsafe { std::slice::from_raw_parts(self.0.at(i, 0).cast_const().cast(), self.0.cols) }
    }

    /// Copies the elements, row after row, to `packed`.
    ///
    /// # Safety
    /// `packed` is valid for writes of the tensor's bytes and overlaps no tensor.
    pub unsafe fn copy_to(&self, packed: *mut u8) {
        // SAFETY: `each_run` stays within the view, the caller vouches for the other side.
        self.0
            .each_run(|inside, at, run| unsafe { packed.add(at).copy_from_nonoverlapping(inside, run) });
    }

    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

/// A tensor that the command writes, and may read. Views are taken once: the accessors consume it.
pub struct Output(View);

impl Output {
    /// The same memory for an op that does not depend on the order of elements: includes padding rows between panels.
    pub fn unordered(self) -> Output {
        Output(self.0.unordered())
    }

    pub fn mat_mut<T>(self) -> MatMut<T> {
        MatMut {
            ptr: self.0.ptr.cast(),
            rows: self.0.rows,
            cols: self.0.cols,
            stride: self.0.stride,
        }
    }

    pub fn panels_mut(self) -> PanelsMut {
        match self.0.in_panels {
            true => PanelsMut::new(self.0.ptr.cast(), self.0.rows, self.0.cols),
            false => self.mat_mut::<f32>().into(),
        }
    }

    /// The bytes of a contiguous tensor of any type.
    pub fn raw_mut(self) -> &'static mut [u8] {
        assert!(self.is_contiguous());
        // SAFETY: as in `slice_mut`.
        unsafe { std::slice::from_raw_parts_mut(self.0.ptr, self.0.bytes()) }
    }

    /// The elements of a contiguous tensor.
    pub fn slice_mut<T>(self) -> &'static mut [T] {
        assert!(self.is_contiguous());
        // SAFETY: the block holds rows x cols elements, aligned to 64 bytes. This command has them alone: commands of
        // other streams wait, an overlapping operand was refused, and `self` is consumed.
        unsafe { std::slice::from_raw_parts_mut(self.0.ptr.cast(), self.0.rows * self.0.cols) }
    }

    /// The rows of a tensor in rows, one by one.
    pub fn rows_mut<T: 'static>(self) -> impl Iterator<Item = &'static mut [T]> {
        assert!(!self.0.in_panels);
        // SAFETY: as in `slice_mut`; a row is contiguous, and rows do not overlap.
        (0..self.0.rows).map(move |i| unsafe { std::slice::from_raw_parts_mut(self.0.at(i, 0).cast(), self.0.cols) })
    }

    /// Fills the tensor from `packed`, row after row.
    ///
    /// # Safety
    /// `packed` is valid for reads of the tensor's bytes and overlaps no tensor.
    pub unsafe fn copy_from(self, packed: *const u8) {
        // SAFETY: `each_run` stays within the view, the caller vouches for the other side.
        self.0
            .each_run(|inside, at, run| unsafe { inside.copy_from_nonoverlapping(packed.add(at), run) });
    }
}
