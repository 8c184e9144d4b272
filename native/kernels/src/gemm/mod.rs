//! Matrix products on one register tile of 6 x 16. Nothing else in the crate multiplies matrices but attention, which
//! uses the tile too.
//!
//! The left operand is a [`Source`]: rows computed while they are packed (norm, dropout, gates, activation gradients).
//! The result goes to a [`Finish`] while it is in cache (bias, activation, residual, norm backward). So a fused layer is
//! one product and no pass over tokens besides it.
//!
//! Letters: m rows, n columns and k depth of a product; T tokens.

mod multiply;
mod outer;
mod pack;
mod source;
#[cfg(test)]
mod tests;
mod tile;

pub use multiply::{Finish, Right, Shape, multiply};
pub use outer::outer;
pub use source::{Source, row_as_it_is, rows_ahead};
pub use tile::{Tile, tile};
