//! Detects dead and hanging ranks. Every rank sends heartbeats to the next one in a ring; a separate thread compares times and
//! ends the job, with one message, when something is silent for too long. It does not call MPI, which may be what hangs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_millis(250);
/// If the watcher itself was suspended for this long, it reports nothing: the machine slept or is overloaded.
const UNFIT: Duration = Duration::from_millis(1500);
/// Time without a heartbeat after which a neighbour counts as lost.
const SILENCE: Duration = Duration::from_secs(5);

/// Times of the last events, in milliseconds since the start.
pub struct Signs {
    start: Instant,
    transport: AtomicU64,
    neighbour: AtomicU64,
    script: AtomicU64,
    /// Since when exchanges have been waiting without progress; 0 if they are not.
    waiting_since: AtomicU64,
    waits_for: AtomicI32,
    closed: AtomicBool,
}

/// What the watcher found.
pub enum Finding {
    /// No heartbeat from the previous rank of the ring.
    SilentNeighbour,
    /// The JavaScript thread was blocked for this many seconds.
    StuckScript(u64),
    /// An exchange has waited for this many seconds, for a rank or (-1) for all of them.
    StuckExchange(u64, i32),
    /// MPI does not return.
    StuckTransport,
}

impl Signs {
    pub fn new() -> Signs {
        Signs {
            start: Instant::now(),
            transport: AtomicU64::new(1),
            neighbour: AtomicU64::new(1),
            script: AtomicU64::new(1),
            waiting_since: AtomicU64::new(0),
            waits_for: AtomicI32::new(-1),
            closed: AtomicBool::new(false),
        }
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_millis() as u64 + 1
    }
    pub fn transport_ran(&self) {
        self.transport.store(self.now(), Ordering::Relaxed);
    }
    pub fn heard(&self) {
        self.neighbour.store(self.now(), Ordering::Relaxed);
    }
    pub fn script_ran(&self) {
        self.script.store(self.now(), Ordering::Relaxed);
    }
    /// `moved`: an exchange began, moved bytes or ended since the last call.
    pub fn waiting(&self, busy: bool, moved: bool, waits_for: i32) {
        self.waits_for.store(waits_for, Ordering::Relaxed);
        if !busy {
            self.waiting_since.store(0, Ordering::Relaxed);
        } else if moved || self.waiting_since.load(Ordering::Relaxed) == 0 {
            self.waiting_since.store(self.now(), Ordering::Relaxed);
        }
    }
    pub fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    fn forgive(&self) {
        let now = self.now();
        [&self.transport, &self.neighbour, &self.script]
            .into_iter()
            .for_each(|time| time.store(now, Ordering::Relaxed));
        if self.waiting_since.load(Ordering::Relaxed) > 0 {
            self.waiting_since.store(now, Ordering::Relaxed);
        }
    }

    fn find(&self, patience: Duration, alone: bool) -> Option<Finding> {
        let age = |time: &AtomicU64| self.now().saturating_sub(time.load(Ordering::Relaxed));
        let (silence, patience) = (SILENCE.as_millis() as u64, patience.as_millis() as u64);
        if age(&self.script) > patience {
            return Some(Finding::StuckScript(patience / 1000));
        }
        if !alone && age(&self.transport) < silence / 2 && age(&self.neighbour) > silence {
            return Some(Finding::SilentNeighbour);
        }
        if age(&self.transport) > silence + 2000 {
            return Some(Finding::StuckTransport);
        }
        // A stuck rank reports itself after `patience`; this is for cases that no rank reports.
        let since = self.waiting_since.load(Ordering::Relaxed);
        let limit = 2 * patience + silence;
        (since > 0 && self.now() - since > limit)
            .then(|| Finding::StuckExchange(limit / 1000, self.waits_for.load(Ordering::Relaxed)))
    }
}

/// Watches until the transport closes. `patience`: how long JavaScript may be blocked.
pub fn watch(signs: Arc<Signs>, patience: Duration, alone: bool, end: impl Fn(Finding) + Send + 'static) {
    signs.forgive();
    let watcher = move || {
        let mut last = Instant::now();
        while !signs.closed.load(Ordering::Relaxed) {
            std::thread::sleep(TICK);
            if last.elapsed() > UNFIT {
                signs.forgive();
            }
            last = Instant::now();
            if let Some(finding) = signs.find(patience, alone) {
                if !signs.closed.load(Ordering::Relaxed) {
                    end(finding);
                }
                return;
            }
        }
    };
    std::thread::Builder::new()
        .name("turbogr-watch".into())
        .spawn(watcher)
        .expect("a watching thread");
}
