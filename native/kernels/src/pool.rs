//! A thread pool. A job is a number of tasks; threads take the next one until none is left, so the *split* of
//! the work is fixed by the kernel (tiles, FLOPs) and only its *assignment* depends on timing. A kernel whose tasks
//! write disjoint memory therefore gives the same bits for any number of threads.
//!
//! The caller works too, as worker 0. Idle workers spin while others still work on the job and briefly after it, since the next
//! kernel usually follows within microseconds. Then they sleep: waking one up takes longer than packing a weight.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

type Task<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// Polls for the next job before a worker sleeps, counted from the end of the last job: about 100 us.
const SPINS: u32 = 4000;
/// Polls before it sleeps in any case: about 2 ms. A job whose last task takes longer does not keep a core busy for nothing.
const MOST_SPINS: u32 = 80_000;

struct Shared {
    /// The current job: a task function with its lifetime erased, valid while `pending > 0`.
    job: Mutex<Option<(Task<'static>, usize)>>,
    generation: AtomicU64,
    next: AtomicUsize,
    pending: AtomicUsize,
    /// From the start of a job until all its tasks are done.
    running: AtomicBool,
    panicked: AtomicBool,
    stop: AtomicBool,
    wake: Condvar,
}

/// See the module header.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    /// One job at a time, from any stream.
    one_job: Mutex<()>,
}

impl Pool {
    /// `threads` in total, including the caller's; 0 counts as 1.
    pub fn new(threads: usize) -> Pool {
        let shared = Arc::new(Shared {
            job: Mutex::new(None),
            generation: AtomicU64::new(0),
            next: AtomicUsize::new(0),
            pending: AtomicUsize::new(0),
            running: AtomicBool::new(false),
            panicked: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            wake: Condvar::new(),
        });
        let workers = (1..threads.max(1))
            .map(|worker| {
                let shared = shared.clone();
                std::thread::Builder::new()
                    .name(format!("turbogr-{worker}"))
                    .spawn(move || work(&shared, worker))
                    .expect("a worker thread")
            })
            .collect();
        Pool {
            shared,
            workers,
            one_job: Mutex::new(()),
        }
    }

    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Runs `task(index, worker)` for every index below `tasks` and returns when all are done.
    /// Indices start in ascending order, so put the large tasks first.
    pub fn run(&self, tasks: usize, task: impl Fn(usize, usize) + Sync) {
        if tasks == 0 {
            return;
        }
        if tasks == 1 || self.workers.is_empty() {
            (0..tasks).for_each(|index| task(index, 0));
            return;
        }
        let _job = self.one_job.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let shared = &*self.shared;
        let local: Task<'_> = &task;
        // SAFETY: the reference is dropped from `job` before this function returns, and no worker uses it after
        // `pending` reached zero, which is awaited below.
        let erased: Task<'static> = unsafe { std::mem::transmute::<Task<'_>, Task<'static>>(local) };
        shared.next.store(0, Ordering::Relaxed);
        shared.panicked.store(false, Ordering::Relaxed);
        shared.pending.store(self.workers.len(), Ordering::Relaxed);
        shared.running.store(true, Ordering::Relaxed);
        {
            let mut job = shared.job.lock().expect("pool");
            *job = Some((erased, tasks));
            shared.generation.fetch_add(1, Ordering::Release);
            shared.wake.notify_all();
        }
        let own = catch_unwind(AssertUnwindSafe(|| drain(shared, local, tasks, 0)));
        let mut spins = 0u32;
        while shared.pending.load(Ordering::Acquire) != 0 {
            spins += 1;
            if spins < SPINS {
                std::hint::spin_loop()
            } else {
                std::thread::yield_now()
            }
        }
        shared.running.store(false, Ordering::Relaxed);
        *shared.job.lock().expect("pool") = None;
        if let Err(payload) = own {
            resume_unwind(payload);
        }
        assert!(
            !shared.panicked.load(Ordering::Relaxed),
            "a kernel task panicked on a worker thread"
        );
    }
}

fn drain(shared: &Shared, task: Task<'_>, tasks: usize, worker: usize) {
    loop {
        let index = shared.next.fetch_add(1, Ordering::Relaxed);
        if index >= tasks {
            return;
        }
        task(index, worker);
    }
}

fn work(shared: &Shared, worker: usize) {
    let mut seen = 0;
    loop {
        let (mut spins, mut idle) = (0, 0);
        while shared.generation.load(Ordering::Acquire) == seen && idle < SPINS && spins < MOST_SPINS {
            std::hint::spin_loop();
            spins += 1;
            idle += u32::from(!shared.running.load(Ordering::Relaxed));
        }
        let (task, tasks) = {
            let mut job = shared.job.lock().expect("pool");
            loop {
                if shared.stop.load(Ordering::Relaxed) {
                    return;
                }
                let generation = shared.generation.load(Ordering::Acquire);
                if generation != seen {
                    seen = generation;
                    break job.expect("a job comes with its generation");
                }
                job = shared.wake.wait(job).expect("pool");
            }
        };
        if catch_unwind(AssertUnwindSafe(|| drain(shared, task, tasks, worker))).is_err() {
            shared.panicked.store(true, Ordering::Relaxed);
            shared.next.store(tasks, Ordering::Relaxed);
        }
        shared.pending.fetch_sub(1, Ordering::Release);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        {
            let _job = self.shared.job.lock();
            self.shared.stop.store(true, Ordering::Relaxed);
            self.shared.wake.notify_all();
        }
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_runs_once() {
        for threads in 1..5 {
            let pool = Pool::new(threads);
            for tasks in [0, 1, 2, 3, 17, 1000] {
                let hits: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
                pool.run(tasks, |index, worker| {
                    assert!(worker < threads);
                    hits[index].fetch_add(1, Ordering::Relaxed);
                });
                assert!(hits.iter().all(|hit| hit.load(Ordering::Relaxed) == 1));
            }
        }
    }

    #[test]
    fn a_panicking_task_reaches_the_caller_and_the_pool_lives_on() {
        let pool = Pool::new(3);
        for bad in [0, 50, 99] {
            let result = catch_unwind(AssertUnwindSafe(|| {
                pool.run(100, |index, _| assert!(index != bad, "task {bad}"))
            }));
            assert!(result.is_err());
        }
        let count = AtomicUsize::new(0);
        pool.run(100, |_, _| {
            count.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(count.into_inner(), 100);
    }
}
