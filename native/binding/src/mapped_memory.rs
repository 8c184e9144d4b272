//! Tensor memory in a memory-mapped file: pages are read from disk on access, and dirty ones are written back by the system,
//! so a tensor may be larger than memory.
//!
//! The file is unlinked once it is open, so nothing is left behind however the process ends. Runs resume from checkpoints,
//! never from this file. Its disk space is allocated at the start, so that a full disk is an error then and not a SIGBUS
//! later.

use crate::fault::{Outcome, fault};
use memmap2::{MmapMut, MmapOptions};
use std::fs::{File, OpenOptions};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

pub struct MappedMemory {
    map: MmapMut,
    /// Kept open: on Windows closing it removes it.
    _file: File,
}

static FILES: AtomicU64 = AtomicU64::new(0);

impl MappedMemory {
    /// `bytes` zeros in a new file of this folder.
    pub fn new(folder: &str, bytes: usize) -> Outcome<MappedMemory> {
        let refuse = |error: std::io::Error| {
            let expected = format!("a folder with room for {bytes} bytes");
            fault("file", "alloc", folder, expected, error.to_string())
        };
        let number = FILES.fetch_add(1, Ordering::Relaxed);
        let path = Path::new(folder).join(format!(".table-{}-{number}", std::process::id()));
        let file = create(&path).map_err(refuse)?;
        reserve(&file, bytes.max(1)).map_err(refuse)?;
        // SAFETY: the file has no name that others could open it by, so nobody else changes or shortens it.
        let map = unsafe { MmapOptions::new().map_mut(&file) }.map_err(refuse)?;
        // Rows are accessed at random: read-ahead would only fill the memory.
        #[cfg(unix)]
        map.advise(memmap2::Advice::Random).map_err(refuse)?;
        Ok(MappedMemory { map, _file: file })
    }

    pub fn ptr(&self) -> *mut u8 {
        self.map.as_ptr().cast_mut()
    }
}

#[cfg(not(windows))]
fn create(path: &Path) -> std::io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
    std::fs::remove_file(path)?;
    Ok(file)
}

#[cfg(windows)]
fn create(path: &Path) -> std::io::Result<File> {
    use std::os::windows::fs::OpenOptionsExt;
    const DELETE_ON_CLOSE: u32 = 0x0400_0000;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    options.custom_flags(DELETE_ON_CLOSE).open(path)
}

#[cfg(target_os = "linux")]
fn reserve(file: &File, bytes: usize) -> std::io::Result<()> {
    use std::os::fd::AsRawFd;
    // SAFETY: a plain system call on an open file.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes as libc::off_t) } {
        0 => Ok(()),
        error => Err(std::io::Error::from_raw_os_error(error)),
    }
}

#[cfg(not(target_os = "linux"))]
fn reserve(file: &File, bytes: usize) -> std::io::Result<()> {
    file.set_len(bytes as u64)
}
