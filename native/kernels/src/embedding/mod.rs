//! Embedding tables: reading rows, drawing negatives, and the deduplicating update that never stores a gradient row.

mod apply;
mod draw_negatives;
pub mod embedding_gather;
mod embedding_update;
pub mod naive;
mod parts;
mod runs;
mod sort;

pub use draw_negatives::{Alias, Sampler, alias_table, draw_negatives};
pub use embedding_update::{Contribution, EmbeddingUpdate, Update, embedding_update};

#[cfg(test)]
mod tests;
