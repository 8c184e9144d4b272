//! This process as one of several ranks: MPI loaded at run time, one thread that calls it, one that watches. Process-wide, like
//! MPI.

mod report;
pub mod shim;
mod transport;
mod watch;

use crate::fault::{Outcome, fault};
use crate::transfer::{Answer, Reply, resolve};
use shim::{Exchange, Group, World};
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use transport::Transport;
use watch::Finding;

static TRANSPORT: OnceLock<Transport> = OnceLock::new();

/// Whether the ranks have begun to watch each other.
static WATCHING: AtomicBool = AtomicBool::new(false);
const JOINING: Duration = Duration::from_secs(60);
const JOIN_FAILED: i32 = 75;

/// Time for MPI to end the job before this process exits by itself.
const LAST_WORDS: Duration = Duration::from_secs(1);

fn transport() -> Outcome<&'static Transport> {
    TRANSPORT.get().ok_or_else(|| {
        fault(
            "mpi",
            "ranks",
            "",
            "a process that joined a world of ranks",
            "one that did not",
        )
    })
}

/// Joins the world; returns when every rank has joined. Once per process. Ranks that do not watch each other after [`JOINING`]
/// give up: one of them never joined.
pub fn open(path: &str) -> Outcome<World> {
    if TRANSPORT.get().is_some() {
        return Err(fault("mpi", "open", "", "one call per process", "a second one"));
    }
    let give_up = || {
        std::thread::sleep(JOINING);
        if !WATCHING.load(Ordering::SeqCst) {
            say(&format!(
                "turbogr: the ranks did not all come within {} s",
                JOINING.as_secs()
            ));
            abort(JOIN_FAILED);
        }
    };
    let thread = std::thread::Builder::new().name("turbogr-join".into()).spawn(give_up);
    thread.map_err(|error| fault("mpi", "open", "", "a thread", error.to_string()))?;
    let opened = Transport::open(path)?;
    Ok(TRANSPORT.get_or_init(|| opened).world.clone())
}

pub fn split(comm: i32, colour: Option<i32>, key: i32) -> Outcome<Group> {
    transport()?.split(comm, colour, key)
}

/// Starts an exchange and waits for it on the calling thread. A single process is a world of one rank.
pub fn exchange(comm: i32, exchange: Exchange) -> Outcome {
    match TRANSPORT.get() {
        Some(transport) => transport.run(comm, exchange),
        None => exchange.with_oneself(),
    }
}

/// All ranks' bytes, in rank order, preceded by `size` lengths (i64). Its communicator is used for nothing else, so that
/// exchanges of JavaScript are ordered independently of those of the streams.
pub fn gather(comm: i32, size: usize, data: Vec<u8>, answer: Answer) -> Outcome {
    let transport = transport()?;
    let mut lengths = vec![0i64; size];
    let mine = vec![data.len() as i64];
    let (eights, places) = (vec![8i64; size], (0..size as i64).map(|i| i * 8).collect::<Vec<_>>());
    let first = Exchange::AllGather {
        send: mine.as_ptr().cast(),
        bytes: 8,
        receive: lengths.as_mut_ptr().cast(),
        receive_bytes: eights.as_ptr(),
        receive_at: places.as_ptr(),
    };
    let kept = (mine, eights, places);
    let second = move |outcome: Outcome| {
        drop(kept);
        match outcome {
            Err(refused) => resolve(answer, Reply::Refused(refused)),
            Ok(()) => gather_bytes(transport, comm, data, lengths, answer),
        }
    };
    transport.start(comm, first, Box::new(second));
    Ok(())
}

fn gather_bytes(transport: &'static Transport, comm: i32, data: Vec<u8>, lengths: Vec<i64>, answer: Answer) {
    let header = lengths.len() as i64 * 8;
    let mut places = Vec::with_capacity(lengths.len());
    let mut end = header;
    for length in &lengths {
        places.push(end);
        end += length;
    }
    let mut all = vec![0u8; end as usize];
    for (i, length) in lengths.iter().enumerate() {
        all[i * 8..i * 8 + 8].copy_from_slice(&length.to_ne_bytes());
    }
    let exchange = Exchange::AllGather {
        send: data.as_ptr(),
        bytes: data.len() as i64,
        receive: all.as_mut_ptr(),
        receive_bytes: lengths.as_ptr(),
        receive_at: places.as_ptr(),
    };
    let kept = (data, lengths, places);
    let done = move |outcome: Outcome| {
        drop(kept);
        resolve(
            answer,
            match outcome {
                Ok(()) => Reply::Owned(all),
                Err(refused) => Reply::Refused(refused),
            },
        );
    };
    transport.start(comm, exchange, Box::new(done));
}

/// Records that the JavaScript thread is alive.
pub fn pulse() {
    if let Some(transport) = TRANSPORT.get() {
        transport.signs.script_ran();
    }
}

/// Starts watching. A fault is reported as one line: text on stderr, or JSON for a launcher that selects among those of several
/// ranks.
pub fn watch(patience: Duration, json: bool, code: i32) -> Outcome {
    let transport = transport()?;
    let world = &transport.world;
    let end = move |finding: Finding| {
        let before = (world.rank + world.size - 1) % world.size;
        let named = |rank: usize| format!("rank {rank} on {}", world.hosts[rank]);
        let (about, cause) = match finding {
            Finding::SilentNeighbour => (
                before,
                "no sign of life: it hangs, was stopped, or its link is down".into(),
            ),
            Finding::StuckScript(seconds) => (world.rank, format!("its JavaScript has not run for {seconds} s")),
            Finding::StuckTransport => (world.rank, "MPI does not return".to_owned()),
            Finding::StuckExchange(seconds, rank) => {
                let about = usize::try_from(rank).unwrap_or(world.rank);
                (
                    about,
                    format!("{} has waited for it for {seconds} s", named(world.rank)),
                )
            }
        };
        if json {
            let host = &world.hosts[about];
            let by = world.rank;
            report::report(
                by,
                format!("{{\"rank\":{about},\"host\":{host:?},\"by\":{by},\"cause\":{cause:?}}}"),
            );
        } else {
            say(&format!("turbogr: {}: {cause}; the job ends", named(about)));
        }
        abort(code);
    };
    WATCHING.store(true, Ordering::SeqCst);
    watch::watch(transport.signs.clone(), patience, world.size == 1, end);
    Ok(())
}

fn say(line: &str) {
    let mut errors = std::io::stderr().lock();
    let _ = writeln!(errors, "{line}");
    let _ = errors.flush();
}

/// Ends the job: through MPI if that still works, and always by ending this process.
pub fn abort(code: i32) -> ! {
    if let Some(transport) = TRANSPORT.get() {
        transport.abort(code);
        std::thread::sleep(LAST_WORDS);
    }
    #[cfg(unix)]
    // SAFETY: ends the process without running anything of it: other threads may be stuck.
    unsafe {
        libc::_exit(code)
    }
    #[cfg(not(unix))]
    std::process::exit(code)
}

/// Ends MPI, together with all other ranks. Exchanges are refused afterwards.
pub fn close() -> Outcome {
    match TRANSPORT.get() {
        Some(transport) => transport.close(),
        None => Ok(()),
    }
}
