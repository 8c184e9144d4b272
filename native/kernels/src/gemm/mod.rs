//! Matrix products on a register tile of 6 x 16. All matrix products of the crate are here, except attention, which uses the
//! same tile.
//!
//! The left operand is a [`Source`]: rows computed while they are packed (norm, dropout, gates, activation gradients).
//! The result goes to a [`Finish`] while it is in cache (bias, activation, residual, norm backward). So a fused layer is
//! one product without further passes over the tokens.
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
pub use pack::PackPanel;
pub use source::{Source, row_as_it_is, rows_ahead};
pub use tile::{Tile, tile};
