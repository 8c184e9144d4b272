//! A file as an ArrayBuffer, without reading it: the pages come from the page cache when they are looked at.

use crate::refusal::{Outcome, refusal};
use napi::Env;
use napi::bindgen_prelude::ArrayBuffer;
use std::os::fd::AsRawFd;

/// Maps the whole file. Private pages: a write from JavaScript changes a copy, never the file. The file must not shrink
/// while it is mapped.
pub fn map_file<'env>(env: &'env Env, path: &str) -> Outcome<ArrayBuffer<'env>> {
    let refuse = |got: String| refusal("file", "map_file", path, "a readable file", got);
    let file = std::fs::File::open(path).map_err(|error| refuse(error.to_string()))?;
    let bytes = file.metadata().map_err(|error| refuse(error.to_string()))?.len() as usize;
    if bytes == 0 {
        return ArrayBuffer::copy_from(env, []).map_err(|error| refuse(error.reason.clone()));
    }
    // SAFETY: a fresh mapping of an open file.
    let at = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_NORESERVE,
            file.as_raw_fd(),
            0,
        )
    };
    if at == libc::MAP_FAILED {
        return Err(refuse(std::io::Error::last_os_error().to_string()));
    }
    // SAFETY: the mapping is `bytes` long and lives until the buffer's finaliser ends it.
    let buffer = unsafe {
        ArrayBuffer::from_external(env, at.cast(), bytes, (), move |_, ()| {
            libc::munmap(at, bytes);
        })
    };
    buffer.map_err(|error| refuse(error.reason.clone()))
}
