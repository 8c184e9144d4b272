//! Records one span per command, in a ring of fixed size per stream that is allocated when recording starts. When disabled, a
//! command costs one relaxed load.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::Instant;

/// Spans that a stream keeps; older ones are overwritten.
const CAPACITY: usize = 1 << 16;

/// Nanoseconds since the first call in this process.
pub fn nanoseconds() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// Labels of a command; -1 for none.
#[derive(Clone, Copy)]
pub struct Tag {
    pub lane: i32,
    pub stage: i32,
}

impl Tag {
    pub const NONE: Tag = Tag { lane: -1, stage: -1 };
}

#[derive(Clone, Copy)]
pub struct Span {
    pub name: &'static str,
    pub tag: Tag,
    /// After the waits for other streams.
    pub start: u64,
    pub end: u64,
}

/// The spans of one stream.
#[derive(Default)]
pub struct Spans {
    on: AtomicBool,
    ring: Mutex<Ring>,
}

#[derive(Default)]
struct Ring {
    spans: Vec<Span>,
    /// Number recorded since the last call of `take`.
    count: usize,
}

impl Spans {
    /// Starts recording, or stops and discards the spans.
    pub fn switch(&self, on: bool) {
        let mut ring = self.ring();
        *ring = Ring {
            spans: Vec::with_capacity(if on { CAPACITY } else { 0 }),
            count: 0,
        };
        self.on.store(on, Ordering::Relaxed);
    }

    /// Starts a span, if spans are recorded.
    pub fn start(&self, name: &'static str, tag: Tag) -> OpenSpan<'_> {
        OpenSpan {
            spans: self,
            name,
            tag,
            start: Cell::new(self.on.load(Ordering::Relaxed).then(nanoseconds)),
        }
    }

    fn add(&self, span: Span) {
        let mut ring = self.ring();
        if ring.spans.capacity() == 0 {
            return; // switched off meanwhile
        }
        let at = ring.count % CAPACITY;
        match ring.spans.get_mut(at) {
            Some(oldest) => *oldest = span,
            None => ring.spans.push(span),
        }
        ring.count += 1;
    }

    /// Passes the spans since the last call to `take`, oldest first; returns how many were overwritten.
    pub fn drain(&self, mut take: impl FnMut(&Span)) -> usize {
        let mut ring = self.ring();
        let lost = ring.count.saturating_sub(ring.spans.len());
        let oldest = if lost > 0 { ring.count % CAPACITY } else { 0 };
        let (late, early) = ring.spans.split_at(oldest);
        early.iter().chain(late).for_each(&mut take);
        ring.spans.clear();
        ring.count = 0;
        lost
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// The span of the command that runs now.
pub struct OpenSpan<'a> {
    spans: &'a Spans,
    name: &'static str,
    tag: Tag,
    /// None if spans are not recorded, and after the end.
    start: Cell<Option<u64>>,
}

impl OpenSpan<'_> {
    /// Only the first call counts: a command that answers JavaScript ends its span before the answer, so that whoever got the
    /// answer finds the span.
    pub fn end(&self) {
        if let Some(start) = self.start.take() {
            self.spans.add(Span {
                name: self.name,
                tag: self.tag,
                start,
                end: nanoseconds(),
            });
        }
    }
}
