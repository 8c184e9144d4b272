//! Failures propagate through data, not through streams. The outputs of a failed command are *spoiled*; a command that uses a
//! spoiled tensor is skipped and its outputs are spoiled too; everything else continues. Reading a spoiled tensor reports the
//! failure. A sync reports failures that no read has reported, and clears the spoiled state of all tensors.
//!
//! Tensors are identified by their allocation number (`Tensors::life`), so reused memory starts clean.
//! While nothing has failed, all this costs one relaxed load per command.

use crate::fault::{NativeFault, Outcome};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Failures kept for the next sync; a caller that never syncs loses later ones, not memory.
const MOST_KEPT: usize = 64;

/// A failure, and whether it was reported.
pub struct Failure {
    fault: NativeFault,
    reported: AtomicBool,
}

impl Failure {
    /// The fault, for an answer to the caller.
    pub fn report(&self) -> NativeFault {
        self.reported.store(true, Ordering::Relaxed);
        self.fault.clone()
    }
}

#[derive(Default)]
struct Book {
    /// Spoiled tensors by life: their storage, and the failure.
    spoiled: HashMap<u64, (u32, Arc<Failure>)>,
    /// In the order in which they happened.
    failures: Vec<Arc<Failure>>,
}

/// See the module header. Shared by the streams and the JavaScript thread.
#[derive(Default)]
pub struct Failures {
    any: AtomicBool,
    book: Mutex<Book>,
}

/// An operand in a command: the life, and in the lowest bit whether it is written.
#[derive(Clone, Copy)]
pub struct Use(u64, u32);

impl Use {
    pub fn new(life: u64, storage: u32, written: bool) -> Use {
        Use(life << 1 | u64::from(written), storage)
    }
    fn life(self) -> u64 {
        self.0 >> 1
    }
    fn written(self) -> bool {
        self.0 & 1 == 1
    }
}

impl Failures {
    /// The failure that spoiled one of these tensors, if any; it spoils the written ones too.
    pub fn spoiling(&self, uses: &[Use]) -> Option<Arc<Failure>> {
        if !self.any() {
            return None;
        }
        let mut book = self.book();
        let failure = uses.iter().find_map(|of| book.spoiled.get(&of.life()))?.1.clone();
        spoil(&mut book, uses, &failure);
        Some(failure)
    }

    /// Records that a command with these operands failed.
    pub fn add(&self, fault: NativeFault, uses: &[Use]) {
        let failure = Arc::new(Failure {
            fault,
            reported: AtomicBool::new(false),
        });
        let mut book = self.book();
        spoil(&mut book, uses, &failure);
        book.failures.retain(|kept| !kept.reported.load(Ordering::Relaxed));
        if book.failures.len() < MOST_KEPT {
            book.failures.push(failure);
        }
        self.any.store(true, Ordering::Relaxed);
    }

    /// The first unreported failure. Afterwards no tensor is spoiled.
    pub fn settle(&self) -> Outcome {
        if !self.any() {
            return Ok(());
        }
        let mut book = self.book();
        let Book { failures, .. } = std::mem::take(&mut *book);
        self.any.store(false, Ordering::Relaxed);
        let untold = failures
            .iter()
            .find(|failure| !failure.reported.load(Ordering::Relaxed));
        untold.map_or(Ok(()), |failure| Err(failure.report()))
    }

    /// Removes entries of freed tensors.
    pub fn keep(&self, alive: impl Fn(u64, u32) -> bool) {
        if self.any() {
            let mut book = self.book();
            book.spoiled.retain(|life, (storage, _)| alive(*life, *storage));
            book.failures.retain(|kept| !kept.reported.load(Ordering::Relaxed));
            self.any.store(
                !(book.spoiled.is_empty() && book.failures.is_empty()),
                Ordering::Relaxed,
            );
        }
    }

    /// Relaxed: a command sees the failures of those it waited for, and its own stream's, by their order.
    fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn spoil(book: &mut Book, uses: &[Use], failure: &Arc<Failure>) {
    for of in uses.iter().filter(|of| of.written()) {
        book.spoiled.entry(of.life()).or_insert((of.1, failure.clone()));
    }
}
