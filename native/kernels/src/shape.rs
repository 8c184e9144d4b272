//! Shape checks of the kernels' inputs: a mismatch is a fault that names the input.

use crate::fault::{FaultKind, Outcome, check_ids, fault};
use crate::mat::{Grad, Mat, MatMut};
use crate::panels::Panels;
use crate::rows::Rows;
use crate::with_rows;

/// A matrix of `rows` x `cols`.
pub fn check_mat<T: Copy>(op: &'static str, input: &'static str, m: Mat<T>, rows: usize, cols: usize) -> Outcome {
    if (m.rows, m.cols) == (rows, cols) && (m.stride >= cols || rows <= 1) {
        return Ok(());
    }
    let got = format!("[{}, {}] with rows {} apart", m.rows, m.cols, m.stride);
    Err(fault(FaultKind::Shape, op, input, format!("[{rows}, {cols}]"), got))
}

/// The same for a matrix that may be in panels.
pub fn check_panels(op: &'static str, input: &'static str, m: Panels, rows: usize, cols: usize) -> Outcome {
    if let Some(plain) = m.plain() {
        return check_mat(op, input, plain, rows, cols);
    }
    if (m.rows, m.cols) == (rows, cols) {
        return Ok(());
    }
    let got = format!("[{}, {}] in panels", m.rows, m.cols);
    Err(fault(FaultKind::Shape, op, input, format!("[{rows}, {cols}]"), got))
}

/// A matrix to write, of `rows` x `cols`.
pub fn check_mut<T: Copy>(op: &'static str, input: &'static str, m: MatMut<T>, rows: usize, cols: usize) -> Outcome {
    check_mat(op, input, m.as_ref(), rows, cols)
}

/// A gradient of `rows` x `cols`, if requested.
pub fn check_grad(op: &'static str, input: &'static str, g: Option<Grad>, rows: usize, cols: usize) -> Outcome {
    g.map_or(Ok(()), |g| check_mut(op, input, g.to, rows, cols))
}

/// A table whose rows are `cols` wide.
pub fn check_table(op: &'static str, input: &'static str, table: Rows, cols: usize) -> Outcome {
    with_rows!(Rows, table, table => check_mat(op, input, table, table.rows, cols))
}

/// A list of `len` entries.
pub fn check_len(op: &'static str, input: &'static str, got: usize, len: usize) -> Outcome {
    if got == len {
        return Ok(());
    }
    Err(fault(
        FaultKind::Shape,
        op,
        input,
        format!("[{len}]"),
        format!("[{got}]"),
    ))
}

/// Ids into a table of `rows` rows, -1 allowed for "none".
pub fn check_id_mat(op: &'static str, input: &'static str, ids: Mat<i32>, rows: usize) -> Outcome {
    // SAFETY: `i` is a row of the view.
    (0..ids.rows).try_for_each(|i| check_ids(op, input, unsafe { ids.row(i) }, rows, true))
}

/// A vector of `len`, if there is one.
pub fn check_vec(op: &'static str, input: &'static str, v: Option<&[f32]>, len: usize) -> Outcome {
    match v {
        Some(v) if v.len() != len => Err(fault(
            FaultKind::Shape,
            op,
            input,
            format!("[{len}]"),
            format!("[{}]", v.len()),
        )),
        _ => Ok(()),
    }
}
