//! The functions of native/mpi/turbogr_mpi.h, loaded at run time: the addon does not link against MPI.

use crate::fault::{Outcome, fault};
use libloading::Library;
use std::ffi::{CStr, c_char, c_int, c_void};

const ABI: c_int = 2;
const TEXT: usize = 512;

/// `turbogr_mpi`, field by field.
#[repr(C)]
pub struct Functions {
    abi: c_int,
    init: unsafe extern "C" fn(*mut c_int, *mut c_int, *mut c_int) -> c_int,
    library: unsafe extern "C" fn(*mut c_char, c_int) -> c_int,
    host: unsafe extern "C" fn(c_int, *mut c_char, c_int) -> c_int,
    split: unsafe extern "C" fn(c_int, c_int, c_int, *mut c_int, *mut c_int, *mut c_int) -> c_int,
    split_node: unsafe extern "C" fn(c_int, c_int, *mut c_int, *mut c_int, *mut c_int) -> c_int,
    all_to_all_v: unsafe extern "C" fn(
        c_int,
        *const c_void,
        *const i64,
        *const i64,
        *mut c_void,
        *const i64,
        *const i64,
        *mut c_int,
    ) -> c_int,
    all_gather_v:
        unsafe extern "C" fn(c_int, *const c_void, i64, *mut c_void, *const i64, *const i64, *mut c_int) -> c_int,
    broadcast: unsafe extern "C" fn(c_int, *mut c_void, i64, c_int, *mut c_int) -> c_int,
    barrier: unsafe extern "C" fn(c_int, *mut c_int) -> c_int,
    test: unsafe extern "C" fn(c_int, *mut c_int, *mut c_int, *mut c_int) -> c_int,
    pulse: unsafe extern "C" fn(c_int, *mut c_int) -> c_int,
    abort: unsafe extern "C" fn(c_int) -> c_int,
    finalize: unsafe extern "C" fn() -> c_int,
    error_text: unsafe extern "C" fn(c_int, *mut c_char, c_int) -> c_int,
}

/// The position of this process among the ranks.
#[derive(Clone, Debug)]
pub struct World {
    pub rank: usize,
    pub size: usize,
    /// MPI thread support level, 0 to 3.
    pub provided: i32,
    pub library: String,
    /// Host name of each rank.
    pub hosts: Vec<String>,
}

/// A communicator from a member's point of view.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    pub comm: i32,
    pub rank: i32,
    pub size: i32,
}

/// One of the shim's exchanges: addresses that stay valid until it is done.
#[derive(Clone, Copy)]
pub enum Exchange {
    AllToAll {
        send: *const u8,
        send_bytes: *const i64,
        send_at: *const i64,
        receive: *mut u8,
        receive_bytes: *const i64,
        receive_at: *const i64,
    },
    AllGather {
        send: *const u8,
        bytes: i64,
        receive: *mut u8,
        receive_bytes: *const i64,
        receive_at: *const i64,
    },
    Broadcast {
        data: *mut u8,
        bytes: i64,
        root: i32,
    },
    Barrier,
}

// SAFETY: addresses; the caller keeps the memory alive until the exchange is done.
unsafe impl Send for Exchange {}

impl Exchange {
    /// The exchange in a world of one rank: a copy of its own part.
    pub fn with_oneself(self) -> Outcome {
        let (from, to, bytes) = match self {
            Exchange::AllToAll {
                send,
                send_bytes,
                receive,
                ..
                // SAFETY: an array of one element, one per rank.
            } => (send, receive, unsafe { *send_bytes }),
            Exchange::AllGather {
                send, bytes, receive, ..
            } => (send, receive, bytes),
            Exchange::Broadcast { .. } | Exchange::Barrier => return Ok(()),
        };
        // SAFETY: the creator of the exchange checked both sizes.
        unsafe { std::ptr::copy(from, to, bytes as usize) };
        Ok(())
    }
}

/// What a test of an exchange found.
pub struct Progress {
    pub done: bool,
    /// Whether bytes of it have moved since the last test.
    pub moved: bool,
    /// A rank whose bytes are missing, or -1.
    pub waits_for: i32,
}

/// The open shim. Only the transport's thread calls it.
pub struct Shim {
    functions: &'static Functions,
}

impl Shim {
    pub fn open(path: &str) -> Outcome<Shim> {
        let refuse = |got: String| fault("mpi", "open", path, "a shim built by `turbogr launch --build`", got);
        let library = load(path).map_err(|error| refuse(error.to_string()))?;
        // SAFETY: the type of `turbogr_mpi_open` in the header.
        let open = unsafe { library.get::<unsafe extern "C" fn(c_int) -> *const Functions>(b"turbogr_mpi_open\0") };
        let open = open.map_err(|error| refuse(error.to_string()))?;
        // SAFETY: as above; the table is static and the library is never closed.
        let functions = unsafe { open(ABI).as_ref() };
        let functions = functions.ok_or_else(|| refuse("one for another version of turbogr".into()))?;
        debug_assert_eq!(functions.abi, ABI);
        std::mem::forget(library);
        Ok(Shim { functions })
    }

    pub fn init(&self) -> Outcome<World> {
        let (mut rank, mut size, mut provided) = (0, 0, 0);
        // SAFETY: out parameters.
        self.check("init", unsafe {
            (self.functions.init)(&mut rank, &mut size, &mut provided)
        })?;
        let text = |call: &dyn Fn(*mut c_char, c_int) -> c_int| read_text(call);
        // SAFETY: each call writes at most the capacity it is given.
        let library = text(&|to, room| unsafe { (self.functions.library)(to, room) });
        // SAFETY: as above.
        let hosts = (0..size).map(|rank| text(&|to, room| unsafe { (self.functions.host)(rank, to, room) }));
        Ok(World {
            rank: rank as usize,
            size: size as usize,
            provided,
            library,
            hosts: hosts.collect(),
        })
    }

    /// A negative colour joins none; `None` splits by node.
    pub fn split(&self, comm: i32, colour: Option<i32>, key: i32) -> Outcome<Group> {
        let mut group = Group {
            comm: -1,
            rank: -1,
            size: 0,
        };
        // SAFETY: out parameters.
        let code = unsafe {
            let (comm_out, rank, size) = (&mut group.comm, &mut group.rank, &mut group.size);
            match colour {
                Some(colour) => (self.functions.split)(comm, colour, key, comm_out, rank, size),
                None => (self.functions.split_node)(comm, key, comm_out, rank, size),
            }
        };
        self.check("split", code).map(|()| group)
    }

    /// Starts an exchange and returns its request.
    pub fn start(&self, comm: i32, exchange: Exchange) -> Outcome<i32> {
        let mut request = -1;
        // SAFETY: the creator of the exchange keeps its memory alive until the request is done.
        let code = unsafe {
            match exchange {
                Exchange::AllToAll {
                    send,
                    send_bytes,
                    send_at,
                    receive,
                    receive_bytes,
                    receive_at,
                } => (self.functions.all_to_all_v)(
                    comm,
                    send.cast(),
                    send_bytes,
                    send_at,
                    receive.cast(),
                    receive_bytes,
                    receive_at,
                    &mut request,
                ),
                Exchange::AllGather {
                    send,
                    bytes,
                    receive,
                    receive_bytes,
                    receive_at,
                } => (self.functions.all_gather_v)(
                    comm,
                    send.cast(),
                    bytes,
                    receive.cast(),
                    receive_bytes,
                    receive_at,
                    &mut request,
                ),
                Exchange::Broadcast { data, bytes, root } => {
                    (self.functions.broadcast)(comm, data.cast(), bytes, root, &mut request)
                }
                Exchange::Barrier => (self.functions.barrier)(comm, &mut request),
            }
        };
        self.check("exchange", code).map(|()| request)
    }

    /// Moves the exchange on by a bounded number of bytes.
    pub fn test(&self, request: i32) -> Outcome<Progress> {
        let (mut done, mut moved, mut waits_for) = (0, 0, -1);
        // SAFETY: out parameters.
        let code = unsafe { (self.functions.test)(request, &mut done, &mut moved, &mut waits_for) };
        self.check("exchange", code)?;
        Ok(Progress {
            done: done != 0,
            moved: moved != 0,
            waits_for,
        })
    }

    /// Heartbeats received since the last call.
    pub fn pulse(&self, send: bool) -> Outcome<i32> {
        let mut heard = 0;
        // SAFETY: an out parameter.
        let code = unsafe { (self.functions.pulse)(send.into(), &mut heard) };
        self.check("pulse", code).map(|()| heard)
    }

    pub fn abort(&self, code: i32) {
        // SAFETY: takes a number.
        unsafe { (self.functions.abort)(code) };
    }

    pub fn finalize(&self) -> Outcome {
        // SAFETY: no request is open: the transport closes after its last exchange.
        self.check("finalize", unsafe { (self.functions.finalize)() })
    }

    fn check(&self, what: &str, code: c_int) -> Outcome {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: writes at most the capacity it is given.
        let words = read_text(&|to, room| unsafe { (self.functions.error_text)(code, to, room) });
        Err(fault("mpi", what, "", "an MPI call that succeeds", words))
    }
}

/// MPI libraries find their plugins only if their symbols are global.
#[cfg(unix)]
fn load(path: &str) -> Result<Library, libloading::Error> {
    use libloading::os::unix;
    // SAFETY: the library is ours, and so is what it does when it is loaded.
    unsafe { unix::Library::open(Some(path), unix::RTLD_NOW | unix::RTLD_GLOBAL) }.map(Library::from)
}

#[cfg(not(unix))]
fn load(path: &str) -> Result<Library, libloading::Error> {
    // SAFETY: the library is ours, and so is what it does when it is loaded.
    unsafe { Library::new(path) }
}

fn read_text(call: &dyn Fn(*mut c_char, c_int) -> c_int) -> String {
    let mut text = [0 as c_char; TEXT];
    call(text.as_mut_ptr(), TEXT as c_int);
    // SAFETY: the shim ends what it writes with a zero.
    unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned()
}
