//! Reads an op's arguments: numbers and tensor handles in the order of the op's decoder. Invalid handles, dtypes, layouts and
//! aliases are detected here, at enqueue; invalid shapes and data by the kernel.
//!
//! Whether an operand is read or written follows from the accessor: `mat`, `slice`, `rows`, `panels`, `ids`, `scalar`
//! read; their `_mut` forms and `grad` write. See `operands.rs`.

mod tables;
mod tensors;

use crate::command::Command;
use crate::fault::{Outcome, fault};
use crate::operands::Operands;
use crate::queue::Site;
use crate::tensors::Tensors;
use turbogr_kernels::rng::{Dropout, Key};

pub struct Args<'a> {
    pub op: &'static str,
    values: std::slice::Iter<'a, f64>,
    tensors: &'a Tensors,
    operands: &'a mut Operands,
    command: &'a mut Command,
}

/// Where decoding leaves its results.
pub struct Decoded<'a> {
    pub operands: &'a mut Operands,
    pub command: &'a mut Command,
}

impl<'a> Args<'a> {
    pub fn new(op: &'static str, values: &'a [f64], tensors: &'a Tensors, into: Decoded<'a>) -> Args<'a> {
        Args {
            op,
            values: values.iter(),
            tensors,
            operands: into.operands,
            command: into.command,
        }
    }

    /// The work that the stream runs with the arguments. Skipped if an operand results from failed work.
    pub fn work<F: FnOnce(&Site) -> Outcome + Send + 'static>(&mut self, work: F) -> Outcome {
        self.command.work(self.op, work);
        Ok(())
    }

    /// Checks that every argument was read.
    pub fn finish(self) -> Outcome {
        match self.values.len() {
            0 => Ok(()),
            left => Err(fault("op", self.op, "arguments", "fewer", format!("{left} too many"))),
        }
    }

    fn next(&mut self, input: &str) -> Outcome<f64> {
        let value = self.values.next().copied();
        value.ok_or_else(|| fault("op", self.op, input, "an argument", "the end of the arguments"))
    }

    pub fn f64(&mut self, input: &str) -> Outcome<f64> {
        let value = self.next(input)?;
        if value.is_nan() {
            return Err(fault("argument", self.op, input, "a number", "NaN"));
        }
        Ok(value)
    }

    pub fn f32(&mut self, input: &str) -> Outcome<f32> {
        Ok(self.f64(input)? as f32)
    }

    pub fn whole(&mut self, input: &str) -> Outcome<u64> {
        let value = self.next(input)?;
        if !(value >= 0.0 && value.fract() == 0.0 && value <= 9_007_199_254_740_992.0) {
            return Err(fault("argument", self.op, input, "a whole number", format!("{value}")));
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
            fault("argument", self.op, input, expected, format!("{index}"))
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
            return Err(fault(
                "argument",
                self.op,
                "dropout",
                "a probability in [0, 1)",
                format!("{p}"),
            ));
        }
        Ok(if p == 0.0 { Dropout::off() } else { Dropout::new(key, p) })
    }
}
