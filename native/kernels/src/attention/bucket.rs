//! The time bucket of a gap d between two timestamps: clamp(trunc(ln(max(|d|, 1)) / 0.301), 0, 128), exactly as double
//! arithmetic gives it for every integer, without a logarithm per pair. Buckets widen by a factor e^0.301 = 1.35, so a
//! quarter of an octave (a factor of at most 1.25) has at most one boundary: one table look-up and one comparison decide.

use std::sync::OnceLock;

/// Number of buckets, and of entries in `ts_w`.
pub const BUCKETS: usize = 129;
/// Entries that a table of fewer buckets may have: each but the last covers this many neighbouring buckets, since
/// trunc(x / (2 w)) = trunc(trunc(x / w) / 2).
pub const COARSE: [usize; 4] = [17, 33, 65, BUCKETS];
/// Logarithmic width of a bucket.
const WIDTH: f64 = 0.301;
/// Quarter octaves of the gaps 1..2^63.
const CELLS: usize = 64 * 4;

/// The definition.
pub fn bucket_by_definition(gap: i64) -> usize {
    let size = gap.unsigned_abs().max(1) as f64;
    ((size.ln() / WIDTH) as usize).min(BUCKETS - 1)
}

/// Lower bounds of the buckets. Computed once, see [`Buckets::get`].
pub struct Buckets {
    /// `least[b]`: the smallest gap of bucket b or above; `u64::MAX` above the last bucket.
    least: [u64; BUCKETS + 1],
    /// The bucket in which each quarter octave begins.
    base: [u8; CELLS],
}

impl Buckets {
    /// The shared table.
    pub fn get() -> &'static Buckets {
        static TABLE: OnceLock<Buckets> = OnceLock::new();
        TABLE.get_or_init(Buckets::new)
    }

    fn new() -> Buckets {
        let mut least = [u64::MAX; BUCKETS + 1];
        least[0] = 0;
        for (b, least) in least.iter_mut().enumerate().take(BUCKETS).skip(1) {
            // The definition is monotone in the gap: bisect for the first gap that reaches bucket b.
            let (mut below, mut above) = (0, i64::MAX);
            while above - below > 1 {
                let middle = below + (above - below) / 2;
                if bucket_by_definition(middle) < b {
                    below = middle
                } else {
                    above = middle
                }
            }
            *least = above as u64;
        }
        let base = std::array::from_fn(|cell| {
            let first = first_of_cell(cell);
            (0..BUCKETS).rev().find(|&b| least[b] <= first as u64).unwrap_or(0) as u8
        });
        Buckets { least, base }
    }

    /// Bucket of a gap; equal to [`bucket_by_definition`].
    #[inline(always)]
    pub fn of(&self, gap: i64) -> usize {
        let size = gap.unsigned_abs().max(1);
        let zeros = size.leading_zeros();
        // The leading one moved to the top: the two bits below it are the quarter of the octave.
        let quarter = (size << zeros) >> 61 & 3;
        let cell = (63 - zeros) as usize * 4 + quarter as usize;
        let bucket = self.base[cell] as usize;
        bucket + usize::from(size >= self.least[bucket + 1])
    }

    /// The smallest gap that falls into `bucket` or above.
    #[inline(always)]
    pub fn least(&self, bucket: usize) -> i64 {
        self.least[bucket] as i64
    }
}

/// The smallest gap of a quarter octave.
fn first_of_cell(cell: usize) -> i64 {
    let (octave, quarter) = (cell / 4, cell % 4);
    let first = ((4 + quarter as u128) << octave).div_ceil(4);
    first.min(i64::MAX as u128) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_the_definition_around_every_boundary_and_on_all_small_gaps() {
        let table = Buckets::get();
        let check = |gap: i64| {
            assert_eq!(table.of(gap), bucket_by_definition(gap), "gap {gap}");
            assert_eq!(table.of(gap.wrapping_neg()), bucket_by_definition(gap), "gap -{gap}");
        };
        (0..200_000).for_each(check);
        for bucket in 1..BUCKETS {
            let least = table.least(bucket);
            assert!(bucket_by_definition(least) >= bucket);
            assert!(bucket_by_definition(least - 1) < bucket);
            (-2000..2000).for_each(|around| check(least.saturating_add(around).max(0)));
        }
        for cell in 0..CELLS - 8 {
            (-3..4).for_each(|around| check((first_of_cell(cell) + around).max(0)));
        }
        [i64::MAX, i64::MAX - 1, 1 << 53, 1 << 62].into_iter().for_each(check);
    }
}
