//! Masks of draws: a token's own positive always, and optionally all items of its sequence.
//!
//! T tokens, B sequences, N draws.

use crate::ctx::Ctx;
use crate::fault::{FaultKind, Outcome, check_ids, check_offsets, fault};
use crate::mat::{Disjoint, Mat, MatMut};
use crate::shape::{check_len, check_mut};

/// Tokens of one task.
const TILE: usize = 32;
/// Bits of a sequence's filter, which rejects most ids before the sorted list is searched.
const FILTER: usize = 4096;
const WORDS: usize = FILTER / u64::BITS as usize;

/// The events of the batch, sequence after sequence.
#[derive(Clone, Copy)]
pub struct Events<'a> {
    pub items: &'a [i32],   // [T]
    pub targets: &'a [i32], // [T], -1: none
    pub offsets: &'a [i32], // [B + 1]
}

/// What is masked.
#[derive(Clone, Copy)]
pub enum Mask<'a> {
    /// A draw equal to the token's positive.
    Positive,
    /// Also items and targets of the token's sequence.
    History(Events<'a>),
}

impl Mask<'_> {
    pub(super) fn check(&self, op: &'static str, tokens: usize) -> Outcome {
        let Mask::History(events) = self else { return Ok(()) };
        check_len(op, "items", events.items.len(), tokens)?;
        check_len(op, "targets", events.targets.len(), tokens)?;
        check_offsets(op, events.offsets, tokens)
    }

    /// Ids of scratch that a [`Seen`] needs.
    pub(super) fn scratch(&self) -> usize {
        match self {
            Mask::Positive => 0,
            Mask::History(events) => {
                let lengths = events.offsets.windows(2).map(|pair| pair[1] - pair[0]);
                2 * lengths.max().unwrap_or(0) as usize
            }
        }
    }
}

/// The history of one token at a time, reused for consecutive tokens of a sequence.
pub(super) struct Seen<'a> {
    mask: Mask<'a>,
    sequence: Option<usize>,
    sorted: &'a mut [i32],
    count: usize,
    filter: [u64; WORDS],
}

impl<'a> Seen<'a> {
    pub fn new(mask: Mask<'a>, scratch: &'a mut [i32]) -> Seen<'a> {
        Seen {
            mask,
            sequence: None,
            sorted: scratch,
            count: 0,
            filter: [0; WORDS],
        }
    }

    /// Selects the token for [`Seen::masks`].
    pub fn turn_to(&mut self, token: usize) {
        let Mask::History(events) = self.mask else { return };
        let sequence = events.offsets.partition_point(|&offset| offset as usize <= token) - 1;
        if self.sequence == Some(sequence) {
            return;
        }
        let range = events.offsets[sequence] as usize..events.offsets[sequence + 1] as usize;
        self.sequence = Some(sequence);
        self.count = 0;
        self.filter.fill(0);
        for &id in events.items[range.clone()].iter().chain(&events.targets[range]) {
            if id >= 0 {
                self.sorted[self.count] = id;
                self.count += 1;
                let (word, bit) = place(id);
                self.filter[word] |= bit;
            }
        }
        self.sorted[..self.count].sort_unstable();
    }

    #[inline(always)]
    pub fn masks(&self, id: i32, positive: i32) -> bool {
        id < 0 || id == positive || (self.count > 0 && self.has(id))
    }

    #[inline(always)]
    fn has(&self, id: i32) -> bool {
        let (word, bit) = place(id);
        self.filter[word] & bit != 0 && self.sorted[..self.count].binary_search(&id).is_ok()
    }
}

/// A hash of `bits` bits.
#[inline(always)]
fn hash(id: i32, bits: u32) -> usize {
    (id as u32).wrapping_mul(0x9E37_79B9) as usize >> (32 - bits)
}

/// Word and bit of an id in the filter.
#[inline(always)]
fn place(id: i32) -> (usize, u64) {
    let hash = hash(id, FILTER.trailing_zeros());
    (hash / u64::BITS as usize, 1 << (hash % u64::BITS as usize))
}

/// Replaces masked draws of `ids[T, N]` by -1, for losses that mask only the positive.
pub fn mask_negatives(cx: &Ctx, positives: &[i32], mask: Mask, ids: MatMut<i32>) -> Outcome {
    let op = "mask_negatives";
    check_mut(op, "ids", ids, positives.len(), ids.cols)?;
    mask.check(op, positives.len())?;
    let mut scratch = cx.per_worker::<i32>(mask.scratch());
    let scratch = scratch.slots();
    cx.pool.run(positives.len().div_ceil(TILE), |task, worker| {
        // SAFETY: each worker has its own slot while it runs a task.
        let mut seen = Seen::new(mask, unsafe { scratch.of(worker) });
        for (token, &positive) in positives.iter().enumerate().skip(task * TILE).take(TILE) {
            seen.turn_to(token);
            // SAFETY: tasks own disjoint tokens.
            for id in unsafe { ids.row(token) } {
                if seen.masks(*id, positive) {
                    *id = -1;
                }
            }
        }
    });
    Ok(())
}

/// Draws and tokens for [`count_negatives`].
pub struct Counted<'a> {
    pub positives: &'a [i32], // [T], -1: this token is not trained
    pub negatives: Mat<i32>,  // [G, N]
    /// The tokens that share a row of draws, -1 for none; absent when row t is token t's.
    pub members: Option<Mat<i32>>, // [G, k]
    pub mask: Mask<'a>,
}

/// The distinct ids of one token at a time: a hash table with open addressing, where entries of earlier tokens are free.
struct Distinct<'a> {
    /// Token and id.
    entries: &'a mut [i64],
    /// Number of the token, in the upper half.
    token: i64,
}

impl<'a> Distinct<'a> {
    /// Entries that `ids` ids need: at most half of them are used.
    fn size(ids: usize) -> usize {
        (2 * ids).next_power_of_two()
    }

    fn new(entries: &'a mut [i64]) -> Distinct<'a> {
        entries.fill(0);
        Distinct { entries, token: 0 }
    }

    fn next_token(&mut self) {
        self.token += 1 << 32;
    }

    /// False if the token has this id already.
    #[inline(always)]
    fn insert(&mut self, id: i32) -> bool {
        let entry = self.token | i64::from(id);
        let last = self.entries.len() - 1; // all ones
        let mut at = hash(id, last.count_ones());
        while self.entries[at] >= self.token {
            if self.entries[at] == entry {
                return false;
            }
            at = (at + 1) & last;
        }
        self.entries[at] = entry;
        true
    }
}

/// Over all trained tokens: draws, masked draws, and repetitions of an earlier draw of the token. The remainder is the
/// effective number of negatives.
pub fn count_negatives(cx: &Ctx, args: Counted, to: &mut [i64]) -> Outcome {
    let op = "count_negatives";
    let (tokens, groups) = (args.positives.len(), args.negatives.rows);
    check_len(op, "to", to.len(), 3)?;
    args.mask.check(op, tokens)?;
    match args.members {
        Some(members) => check_members(op, members, groups, tokens)?,
        None => check_len(op, "negatives", groups, tokens)?,
    }
    let tasks = groups.div_ceil(TILE);
    let mut counts = cx.scratch::<i64>(3 * tasks);
    let draws = args.negatives.cols;
    let mut scratch = cx.per_worker::<i32>(args.mask.scratch());
    let mut entries = cx.per_worker::<i64>(Distinct::size(draws));
    {
        let (scratch, entries) = (scratch.slots(), entries.slots());
        let counts = Disjoint::new(&mut counts);
        cx.pool.run(tasks, |task, worker| {
            // SAFETY: each worker has its own slots while it runs a task; tasks own disjoint counts.
            let (scratch, entries, counts) =
                unsafe { (scratch.of(worker), entries.of(worker), counts.range(3 * task, 3)) };
            counts.fill(0);
            let (mut seen, mut distinct) = (Seen::new(args.mask, scratch), Distinct::new(entries));
            for group in task * TILE..groups.min((task + 1) * TILE) {
                let own = [group as i32];
                // SAFETY: the group exists in both views.
                let (ids, members) = unsafe {
                    let members = args.members.map(|members| members.row(group));
                    (args.negatives.row(group), members.unwrap_or(&own))
                };
                for &member in members.iter().filter(|member| **member >= 0) {
                    let positive = args.positives[member as usize];
                    if positive < 0 {
                        continue;
                    }
                    seen.turn_to(member as usize);
                    distinct.next_token();
                    counts[0] += draws as i64;
                    for &id in ids {
                        let masked = seen.masks(id, positive);
                        counts[1] += i64::from(masked);
                        counts[2] += i64::from(!masked && !distinct.insert(id));
                    }
                }
            }
        });
    }
    for (which, to) in to.iter_mut().enumerate() {
        *to = counts.iter().skip(which).step_by(3).sum();
    }
    Ok(())
}

/// Members of groups: tokens, or -1.
pub(super) fn check_members(op: &'static str, members: Mat<i32>, groups: usize, tokens: usize) -> Outcome {
    if members.rows != groups {
        let got = format!("[{}, {}]", members.rows, members.cols);
        return Err(fault(FaultKind::Shape, op, "members", format!("[{groups}, k]"), got));
    }
    // SAFETY: `group` is a row of the view.
    (0..groups).try_for_each(|group| check_ids(op, "members", unsafe { members.row(group) }, tokens, true))
}
