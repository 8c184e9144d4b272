//! Splits a batch into tasks: by tokens and FLOPs only, never by the number of threads.
//!
//! A sequence is cut into blocks of at most [`BLOCK`] tokens; a forward task is one block of queries against all earlier
//! blocks of keys. A backward task is one block of queries against *one* block of keys, and adds to the gradients of
//! both; so the pairs (i, j) of a sequence of m blocks run in m waves, (i + j) mod m. In a wave no two tasks share a
//! block of queries or a block of keys, every wave holds about half of m tasks, and the order of additions is fixed:
//! no partial copies of gradients, and the same bits for any number of threads. Short sequences are bundled, and the bundles
//! distributed over the waves, where they fill the time in which a thread would wait for the last large task.

use crate::arena::{Lease, Pod};
use crate::ctx::Ctx;
use crate::simd::tile::NR;
use std::cmp::Reverse;
use std::ops::Range;

/// Blocks begin at multiples of this: a tile's edge in both directions, six rows and 16 columns.
const EDGE: usize = 48;
/// Maximum tokens of a block, a multiple of [`EDGE`]. 192 to 480 are equally fast (docs/LOG.md).
pub const BLOCK: usize = 288;
/// Heads are grouped up to this total width, so that a bias is computed once for all of them.
const GROUP_WIDTH: usize = 1024;
/// The same in a batch of less than [`MANY`] blocks: narrower groups are more tasks, for machines with many threads.
const NARROW_WIDTH: usize = 256;
/// Number of blocks that gives enough tasks.
const MANY: usize = 16;

/// The heads of an attention op and how they are grouped.
#[derive(Clone, Copy)]
pub struct Heads {
    pub count: usize,
    /// Query/key width of a head.
    pub a: usize,
    /// Value width of a head.
    pub v: usize,
    /// Heads of a group; the last group may have fewer.
    pub group: usize,
}

impl Heads {
    /// `count` heads for a batch of this many tokens.
    pub fn new(count: usize, a: usize, v: usize, tokens: usize) -> Heads {
        let width = match tokens < MANY * BLOCK {
            true => NARROW_WIDTH,
            false => GROUP_WIDTH,
        };
        let most = (width / a.max(v).next_multiple_of(NR)).clamp(1, count);
        let groups = count.div_ceil(most);
        Heads {
            count,
            a,
            v,
            group: count.div_ceil(groups),
        }
    }
    fn groups(&self) -> usize {
        self.count.div_ceil(self.group)
    }
    /// The heads of one group.
    pub fn of(&self, group: usize) -> Range<usize> {
        group * self.group..self.count.min((group + 1) * self.group)
    }
}

/// How one sequence is split.
#[derive(Clone, Copy, Debug)]
pub struct Blocks {
    length: usize,
    span: usize,
    pub count: usize,
}

impl Blocks {
    pub fn new(length: usize) -> Blocks {
        let span = length
            .div_ceil(length.div_ceil(BLOCK).max(1))
            .next_multiple_of(EDGE)
            .max(1);
        Blocks {
            length,
            span,
            count: length.div_ceil(span),
        }
    }
    /// Positions of a block.
    pub fn range(&self, block: usize) -> Range<usize> {
        block * self.span..self.length.min((block + 1) * self.span)
    }
    /// Whether the pair's wave is the first to touch the query block `i`.
    pub fn first_of_queries(&self, i: usize, j: usize) -> bool {
        (i + j) % self.count == if 2 * i >= self.count { 0 } else { i }
    }
    /// Whether the pair's wave is the first to touch the key block `j`.
    pub fn first_of_keys(&self, i: usize, j: usize) -> bool {
        (i + j) % self.count == (2 * j).saturating_sub(self.count)
    }
}

/// Several whole short sequences, or a block of queries (with a block of keys) of a long one; for one group of heads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Task {
    pub first: u32,
    pub last: u32,
    pub i: u32,
    pub j: u32,
    pub group: u32,
    wave: u32,
    cost: u64,
}
// SAFETY: integers only.
unsafe impl Pod for Task {}

impl Task {
    /// The sequences of the task.
    pub fn sequences(&self) -> Range<usize> {
        self.first as usize..self.last as usize
    }
}

/// Tasks in the order in which they start.
pub struct Plan<'a> {
    tasks: Lease<'a, Task>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Forward,
    Backward,
}

impl<'a> Plan<'a> {
    pub fn new(cx: &'a Ctx, pass: Direction, offsets: &[i32], heads: &Heads) -> Plan<'a> {
        let mut count = 0;
        each_task(pass, offsets, heads, |_| count += 1);
        let mut tasks = cx.scratch::<Task>(count);
        let mut at = 0;
        each_task(pass, offsets, heads, |task| {
            tasks[at] = task;
            at += 1;
        });
        tasks.sort_unstable_by_key(|t| (t.wave, Reverse(t.cost), t.first, t.i, t.j, t.group));
        Plan { tasks }
    }

    /// Runs `work(task, worker)` for all tasks, wave by wave.
    pub fn run(&self, cx: &Ctx, work: impl Fn(Task, usize) + Sync) {
        for wave in self.waves() {
            cx.pool.run(wave.len(), |index, worker| work(wave[index], worker));
        }
    }

    /// The tasks that may run concurrently, by wave.
    pub fn waves(&self) -> impl Iterator<Item = &[Task]> {
        self.tasks.chunk_by(|x, y| x.wave == y.wave)
    }
}

fn each_task(pass: Direction, offsets: &[i32], heads: &Heads, mut emit: impl FnMut(Task)) {
    let mut emit_groups = |task: Task| {
        (0..heads.groups() as u32).for_each(|group| emit(Task { group, ..task }));
    };
    let lengths = || offsets.windows(2).map(|ends| (ends[1] - ends[0]) as usize).enumerate();
    let waves = match pass {
        Direction::Forward => 1,
        Direction::Backward => lengths()
            .map(|(_, length)| Blocks::new(length).count)
            .max()
            .unwrap_or(1)
            .max(1),
    };
    let mut bundles = Bundles {
        open: None,
        count: 0,
        waves: waves as u32,
    };
    for (sequence, length) in lengths() {
        let blocks = Blocks::new(length);
        let whole = Task {
            first: sequence as u32,
            last: sequence as u32 + 1,
            ..Task::default()
        };
        if blocks.count <= 1 {
            bundles.add(whole, length).into_iter().for_each(&mut emit_groups);
            continue;
        }
        for i in 0..blocks.count {
            let queries = blocks.range(i);
            if pass == Direction::Forward {
                let cost = (queries.len() * (queries.start + queries.len() / 2)) as u64;
                emit_groups(Task {
                    i: i as u32,
                    cost,
                    ..whole
                });
                continue;
            }
            for j in 0..=i {
                let pairs = queries.len() * blocks.range(j).len();
                let cost = (if i == j { pairs / 2 } else { pairs }) as u64;
                let wave = ((i + j) % blocks.count) as u32;
                emit_groups(Task {
                    i: i as u32,
                    j: j as u32,
                    wave,
                    cost,
                    ..whole
                });
            }
        }
    }
    bundles.close().into_iter().for_each(&mut emit_groups);
}

/// Bundles consecutive short sequences up to the tokens of a block.
struct Bundles {
    open: Option<(Task, usize)>,
    count: u32,
    waves: u32,
}

impl Bundles {
    /// Adds a sequence; returns the previous bundle if it does not fit.
    fn add(&mut self, whole: Task, length: usize) -> Option<Task> {
        let cost = (length * length / 2) as u64;
        if let Some((task, tokens)) = &mut self.open
            && task.last == whole.first
            && *tokens + length <= BLOCK
        {
            task.last += 1;
            task.cost += cost;
            *tokens += length;
            return None;
        }
        let full = self.close();
        self.open = Some((Task { cost, ..whole }, length));
        full
    }

    fn close(&mut self) -> Option<Task> {
        let (task, _) = self.open.take()?;
        self.count += 1;
        Some(Task {
            wave: (self.count - 1) % self.waves,
            ..task
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::tile::MR;
    use std::collections::HashSet;

    #[test]
    fn blocks_cover_the_sequence_and_begin_on_tile_edges() {
        for length in (0..3000).chain([8192, 32_768]) {
            let blocks = Blocks::new(length);
            let mut end = 0;
            for block in 0..blocks.count {
                let range = blocks.range(block);
                assert_eq!(range.start, end);
                assert!(range.start.is_multiple_of(MR) && range.start.is_multiple_of(NR));
                assert!(!range.is_empty() && range.len() <= BLOCK);
                end = range.end;
            }
            assert_eq!(end, length);
        }
    }

    #[test]
    fn waves_visit_every_pair_once_without_conflict_and_know_their_first() {
        let cx = Ctx::new(1);
        let lengths = [0, 1, 7, 191, 192, 193, 2048, 3, 5000, 385, 0, 60];
        let offsets: Vec<i32> = std::iter::once(0)
            .chain(lengths.iter().scan(0, |end, length| {
                *end += length;
                Some(*end)
            }))
            .collect();
        let heads = Heads::new(6, 64, 64, 0);
        let plan = Plan::new(&cx, Direction::Backward, &offsets, &heads);
        let (mut pairs, mut queries, mut keys) = (HashSet::new(), HashSet::new(), HashSet::new());
        for wave in plan.waves() {
            let (mut rows, mut columns) = (HashSet::new(), HashSet::new());
            for task in wave {
                for sequence in task.sequences() {
                    let blocks = Blocks::new(lengths[sequence] as usize);
                    let (i, j) = (task.i as usize, task.j as usize);
                    assert!(pairs.insert((sequence, i, j, task.group)), "a pair twice");
                    assert!(rows.insert((sequence, i, task.group)), "two tasks on one query block");
                    assert!(columns.insert((sequence, j, task.group)), "two tasks on one key block");
                    if blocks.count > 0 {
                        assert_eq!(blocks.first_of_queries(i, j), queries.insert((sequence, i, task.group)));
                        assert_eq!(blocks.first_of_keys(i, j), keys.insert((sequence, j, task.group)));
                    }
                }
            }
        }
        let triangles = |m: usize| m * (m + 1) / 2;
        let expected: usize = lengths
            .iter()
            .map(|n| triangles(Blocks::new(*n as usize).count.max(1)))
            .sum();
        assert_eq!(pairs.len(), expected * heads.groups());
    }

    #[test]
    fn groups_hold_every_head_once() {
        for (count, a, v) in [
            (1, 50, 50),
            (8, 32, 32),
            (3, 128, 64),
            (16, 64, 64),
            (5, 64, 64),
            (2, 1024, 8),
        ] {
            for tokens in [1, MANY * BLOCK] {
                let heads = Heads::new(count, a, v, tokens);
                let all: Vec<usize> = (0..heads.groups()).flat_map(|group| heads.of(group)).collect();
                assert_eq!(all, (0..count).collect::<Vec<_>>());
            }
        }
        assert_eq!(Heads::new(16, 64, 64, MANY * BLOCK).groups(), 1);
        assert_eq!(Heads::new(16, 64, 64, MANY * BLOCK - 1).groups(), 4);
    }
}
