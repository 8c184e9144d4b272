//! Prefetches rows of a memory-mapped table: the system reads their pages while something else computes. Nothing is read or
//! written here, so no result depends on it.

use crate::ctx::Ctx;
use crate::fault::Outcome;
use crate::mat::Mat;
use crate::shape::check_id_mat;

const BITS: usize = u64::BITS as usize;

/// Location of the rows of a mapped table.
#[derive(Clone, Copy, Debug)]
pub struct MappedRows {
    /// Address of the first row.
    pub start: usize,
    pub row_bytes: usize,
    pub rows: usize,
}

/// Advises the system to read the pages of rows `ids`; -1 is none. A no-op on systems without such advice.
pub fn read_ahead(cx: &Ctx, table: MappedRows, ids: Mat<i32>) -> Outcome {
    check_id_mat("read_ahead", "ids", ids, table.rows)?;
    let page = page_size();
    let first = table.start / page;
    let pages = (table.start + table.rows * table.row_bytes).div_ceil(page) - first;
    let mut wanted = cx.scratch::<u64>(pages.div_ceil(BITS));
    wanted.fill(0);
    for row in 0..ids.rows {
        // SAFETY: the row is one of the view's.
        for &id in unsafe { ids.row(row) }.iter().filter(|id| **id >= 0) {
            let start = table.start + id as usize * table.row_bytes;
            for at in start / page..(start + table.row_bytes).div_ceil(page) {
                wanted[(at - first) / BITS] |= 1 << ((at - first) % BITS);
            }
        }
    }
    for_each_run(&wanted, |from, count| ask((first + from) * page, count * page));
    Ok(())
}

/// Calls `each(first, count)` for the runs of set bits.
fn for_each_run(words: &[u64], mut each: impl FnMut(usize, usize)) {
    let is_set = |bit: usize| words[bit / BITS] >> (bit % BITS) & 1 == 1;
    let (mut bit, end) = (0, words.len() * BITS);
    while bit < end {
        if words[bit / BITS] >> (bit % BITS) == 0 {
            bit = (bit / BITS + 1) * BITS;
            continue;
        }
        let from = bit + (words[bit / BITS] >> (bit % BITS)).trailing_zeros() as usize;
        bit = from;
        while bit < end && is_set(bit) {
            bit += 1;
        }
        each(from, bit - from);
    }
}

#[cfg(unix)]
fn page_size() -> usize {
    // SAFETY: a plain system call.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

#[cfg(unix)]
fn ask(address: usize, bytes: usize) {
    // SAFETY: advice changes no contents; addresses that are not mapped are refused by the system.
    unsafe { libc::madvise(address as *mut libc::c_void, bytes, libc::MADV_WILLNEED) };
}

#[cfg(not(unix))]
fn page_size() -> usize {
    4096
}

#[cfg(not(unix))]
fn ask(_address: usize, _bytes: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_pages_are_found_across_words() {
        let mut words = vec![0u64; 4];
        let mut set = |bits: std::ops::Range<usize>| bits.for_each(|bit| words[bit / BITS] |= 1 << (bit % BITS));
        set(0..1);
        set(60..70);
        set(128..192);
        set(255..256);
        let mut runs = Vec::new();
        for_each_run(&words, |from, count| runs.push((from, count)));
        assert_eq!(runs, [(0, 1), (60, 10), (128, 64), (255, 1)]);
    }

    #[test]
    fn asking_for_rows_leaves_them_as_they_are() {
        let values: Vec<f32> = (0..10_000).map(|i| i as f32).collect();
        let table = MappedRows {
            start: values.as_ptr().addr(),
            row_bytes: 400,
            rows: 100,
        };
        let before = values.clone();
        read_ahead(&Ctx::new(1), table, Mat::new(&[0, 99, -1, 5, 5, 50], 2, 3)).expect("advice");
        assert_eq!(values, before);
        assert!(read_ahead(&Ctx::new(1), table, Mat::new(&[100], 1, 1)).is_err());
    }
}
