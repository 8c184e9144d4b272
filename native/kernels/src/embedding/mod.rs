//! Embedding tables: reading and staging rows, drawing negatives, and gradients that are summed row by row: at once in
//! the optimiser's update, or into lists that add up.

mod absent_rows;
mod apply;
mod changed_rows;
mod contribution;
mod copy_rows;
mod direct;
mod draw_negatives;
pub mod embedding_gather;
mod embedding_reduce;
mod embedding_update;
mod fetch_negatives;
mod half_rows;
mod lane_rows;
pub mod naive;
mod parts;
mod read_again;
mod read_ahead;
mod route_ids;
mod runs;
mod sort;
mod stage_rows;
mod sums;

pub use absent_rows::{Agreed, pick_agreed};
pub use changed_rows::{Changed, MAX_CHANGED, Places, Requests, changed_rows, count_changed, put_rows};
pub use contribution::{Contribution, MAX_CONTRIBUTIONS, MAX_MEMBERS, ReadRows};
pub use copy_rows::{CopyRows, copy_rows};
pub use draw_negatives::{Alias, Sampler, alias_table, draw_negatives, draw_pool};
pub use embedding_reduce::{RowList, RowListMut, embedding_reduce, sparse_add};
pub use embedding_update::{EmbeddingApply, EmbeddingUpdate, Update, embedding_apply, embedding_update};
pub use fetch_negatives::{FetchNegatives, PickNegatives, fetch_negatives, pick_negatives};
pub use half_rows::spread_rows;
pub use read_again::{Asked, MAX_ASKED, RoutedIds, asked_rows, keep_routed};
pub use read_ahead::{MappedRows, read_ahead};
pub use route_ids::{Routed, local_ids, pick_rows, route_ids, take_list};
pub use stage_rows::{IdList, MAX_ID_LISTS, stage_rows, unique_ids};

#[cfg(test)]
mod draw_tests;
#[cfg(test)]
mod gather_tests;
#[cfg(test)]
mod group_tests;
#[cfg(test)]
mod lane_tests;
#[cfg(test)]
mod list_tests;
#[cfg(test)]
mod optimizer_tests;
#[cfg(test)]
mod read_again_tests;
#[cfg(test)]
mod rounded_tests;
#[cfg(test)]
mod shard_tests;
#[cfg(test)]
mod tests;
