//! The only thread that calls MPI. Streams and JavaScript pass it exchanges; it starts them in order, tests pending ones and
//! sleeps in between, so that a waiting rank leaves its core to those that compute.

use super::shim::{Exchange, Group, Shim, World};
use super::watch::Signs;
use crate::allocations;
use crate::fault::{Outcome, fault};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The sleep between two tests that move nothing is this fraction of the time since an exchange began or ended: a rank that waits
/// long, for a slower one or for a link, wakes up rarely, since each wake-up takes time from computing, and is late by a small part
/// of its waiting time.
const NAP_PART: u32 = 8;
const SHORTEST_NAP: Duration = Duration::from_micros(50);
const LONGEST_NAP: Duration = Duration::from_millis(2);
/// Tests before the first sleep: short messages between ranks of one node are done by then. They do not yield: on a busy core a
/// yield lasts a whole scheduler slice, much longer than a sleep.
const EAGER_TESTS: u32 = 50;
/// Interval of checking for heartbeats while nothing is pending.
const IDLE: Duration = Duration::from_millis(100);
/// Interval of heartbeats.
const PULSE: Duration = Duration::from_millis(500);

pub type Done = Box<dyn FnOnce(Outcome) + Send>;

enum Job {
    Exchange {
        comm: i32,
        exchange: Exchange,
        done: Done,
    },
    Split {
        comm: i32,
        colour: Option<i32>,
        key: i32,
        done: Box<dyn FnOnce(Outcome<Group>) + Send>,
    },
    Abort(i32),
    Close(Done),
}

/// Passes jobs to the thread.
pub struct Transport {
    pub world: World,
    pub signs: Arc<Signs>,
    inbox: Arc<Inbox>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Inbox {
    jobs: Mutex<VecDeque<Job>>,
    arrived: Condvar,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Job>> {
        self.jobs.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

struct UnderWay {
    request: i32,
    done: Done,
}

impl Transport {
    /// Opens the shim and starts MPI on the transport's own thread; returns when all ranks have.
    pub fn open(path: &str) -> Outcome<Transport> {
        let (inbox, signs) = (Arc::new(Inbox::default()), Arc::new(Signs::new()));
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new().name("turbogr-mpi".into()).spawn({
            let (inbox, signs, path) = (inbox.clone(), signs.clone(), path.to_owned());
            move || {
                allocations::exempt_this_thread();
                let opened = Shim::open(&path).and_then(|shim| shim.init().map(|world| (shim, world)));
                match opened {
                    Err(refused) => drop(tell.send(Err(refused))),
                    Ok((shim, world)) => {
                        let size = world.size;
                        let _ = tell.send(Ok(world));
                        serve(&shim, &inbox, &signs, size);
                    }
                }
            }
        });
        let thread = thread.map_err(|error| fault("mpi", "open", "", "a thread", error.to_string()))?;
        let world = told
            .recv()
            .map_err(|_| fault("mpi", "open", "", "MPI", "its thread ended"))??;
        Ok(Transport {
            world,
            signs,
            inbox,
            thread: Mutex::new(Some(thread)),
        })
    }

    fn push(&self, job: Job) {
        self.inbox.lock().push_back(job);
        self.inbox.arrived.notify_one();
    }

    /// Starts an exchange; `done` is called on the transport's thread.
    pub fn start(&self, comm: i32, exchange: Exchange, done: Done) {
        self.push(Job::Exchange { comm, exchange, done });
    }

    /// Starts an exchange and waits for it.
    pub fn run(&self, comm: i32, exchange: Exchange) -> Outcome {
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        self.start(
            comm,
            exchange,
            Box::new(move |outcome| {
                let _ = tell.send(outcome);
            }),
        );
        told.recv().unwrap_or_else(|_| Err(closed("exchange")))
    }

    pub fn split(&self, comm: i32, colour: Option<i32>, key: i32) -> Outcome<Group> {
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        self.push(Job::Split {
            comm,
            colour,
            key,
            done: Box::new(move |outcome| {
                let _ = tell.send(outcome);
            }),
        });
        told.recv().unwrap_or_else(|_| Err(closed("split")))
    }

    /// Asks MPI to end the job; returns at once.
    pub fn abort(&self, code: i32) {
        self.inbox.lock().push_front(Job::Abort(code));
        self.inbox.arrived.notify_one();
    }

    /// Ends MPI, with all other ranks.
    pub fn close(&self) -> Outcome {
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        self.push(Job::Close(Box::new(move |outcome| {
            let _ = tell.send(outcome);
        })));
        let outcome = told.recv().unwrap_or(Ok(()));
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
        outcome
    }
}

fn closed(what: &str) -> crate::fault::NativeFault {
    fault("mpi", what, "", "an open connection to the other ranks", "a closed one")
}

fn serve(shim: &Shim, inbox: &Inbox, signs: &Signs, size: usize) {
    let mut under_way: Vec<UnderWay> = Vec::new();
    let mut tests = 0;
    let mut last_move = Instant::now();
    let mut last_pulse: Option<Instant> = None;
    loop {
        signs.transport_ran();
        let mut moved = false;
        while let Some(job) = { inbox.lock().pop_front() } {
            (tests, moved) = (0, true);
            match job {
                Job::Exchange { comm, exchange, done } => match shim.start(comm, exchange) {
                    Ok(request) => under_way.push(UnderWay { request, done }),
                    Err(refused) => done(Err(refused)),
                },
                Job::Split {
                    comm,
                    colour,
                    key,
                    done,
                } => done(shim.split(comm, colour, key)),
                Job::Abort(code) => shim.abort(code),
                Job::Close(done) => {
                    signs.close();
                    return done(shim.finalize());
                }
            }
        }
        if size > 1 {
            let due = last_pulse.is_none_or(|at| at.elapsed() >= PULSE);
            if due {
                last_pulse = Some(Instant::now());
            }
            if shim.pulse(due).is_ok_and(|heard| heard > 0) {
                signs.heard();
            }
        }
        let mut waits_for = -1;
        let mut flows = false;
        let mut at = 0;
        while at < under_way.len() {
            let outcome = match shim.test(under_way[at].request) {
                Ok(progress) if !progress.done => {
                    flows |= progress.moved;
                    waits_for = waits_for.max(progress.waits_for);
                    at += 1;
                    continue;
                }
                tested => tested.map(|_| ()),
            };
            moved = true;
            (under_way.remove(at).done)(outcome);
        }
        if moved {
            last_move = Instant::now();
        }
        signs.waiting(!under_way.is_empty(), moved || flows, waits_for);
        if under_way.is_empty() {
            let jobs = inbox.lock();
            if jobs.is_empty() {
                drop(inbox.arrived.wait_timeout(jobs, IDLE));
            }
        } else if flows {
            // The next pieces may be there already.
        } else if tests < EAGER_TESTS {
            tests += 1;
            std::hint::spin_loop();
        } else {
            std::thread::sleep((last_move.elapsed() / NAP_PART).clamp(SHORTEST_NAP, LONGEST_NAP));
        }
    }
}
