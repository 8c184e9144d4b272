//! Embedding tables and the ids that name their rows, as arguments of an op.

use super::Args;
use crate::fault::{NativeFault, Outcome, fault};
use crate::view::Dtype;
use turbogr_kernels::embedding::MappedRows;
use turbogr_kernels::mat::Mat;
use turbogr_kernels::{Rows, RowsMut};

impl Args<'_> {
    /// An embedding table, f32 or in 16 bits.
    pub fn rows(&mut self, input: &'static str) -> Outcome<Rows> {
        let rows = self.rows_opt(input)?;
        self.there(input, rows)
    }

    pub fn rows_opt(&mut self, input: &'static str) -> Outcome<Option<Rows>> {
        let Some(tensor) = self.read_opt(input)? else {
            return Ok(None);
        };
        match tensor.dtype() {
            Dtype::F32 => Ok(Some(Rows::F32(tensor.mat()))),
            Dtype::F16 => Ok(Some(Rows::F16(tensor.mat()))),
            Dtype::Bf16 => Ok(Some(Rows::Bf16(tensor.mat()))),
            other => Err(self.not_rows(input, other)),
        }
    }

    pub fn rows_mut(&mut self, input: &'static str) -> Outcome<RowsMut> {
        let tensor = self.write(input)?;
        match tensor.dtype() {
            Dtype::F32 => Ok(RowsMut::F32(tensor.mat_mut())),
            Dtype::F16 => Ok(RowsMut::F16(tensor.mat_mut())),
            Dtype::Bf16 => Ok(RowsMut::Bf16(tensor.mat_mut())),
            other => Err(self.not_rows(input, other)),
        }
    }

    fn not_rows(&self, input: &str, got: Dtype) -> NativeFault {
        fault("dtype", self.op, input, "f32, f16 or bf16", got.name())
    }

    /// Location of a tensor's rows, for page advice: they are neither read nor written, so the tensor is not an operand and
    /// causes no waits.
    pub fn mapped_rows(&mut self, input: &'static str) -> Outcome<MappedRows> {
        let handle = self.next(input)?;
        let view = self.tensors.view(self.op, input, handle)?;
        self.is_whole(input, view.is_contiguous())?;
        Ok(MappedRows {
            start: view.ptr.addr(),
            row_bytes: view.cols * view.dtype.bytes(),
            rows: view.rows,
        })
    }

    /// A contiguous tensor of ids, reshaped to this many rows.
    pub fn ids(&mut self, input: &'static str, rows: usize) -> Outcome<Mat<i32>> {
        let tensor = self.read(input)?;
        self.is::<i32>(input, tensor.dtype())?;
        let [own_rows, cols] = tensor.shape();
        if own_rows == rows || !tensor.is_contiguous() {
            return Ok(tensor.mat());
        }
        if rows == 0 || own_rows * cols % rows != 0 {
            let got = format!("{own_rows} x {cols}");
            return Err(fault("shape", self.op, input, format!("ids for {rows} rows"), got));
        }
        Ok(tensor.reshape(rows).mat())
    }
}
