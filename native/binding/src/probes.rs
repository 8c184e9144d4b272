//! Ops and functions for tests only; compiled with the feature `probes`.

use crate::args::Args;
use crate::fault::Outcome;
use crate::tensors::Marks;
use napi_derive::napi;
use std::cell::Cell;
use std::time::Duration;

/// Panics on the stream's thread.
pub fn panic(args: &mut Args) -> Outcome {
    args.work(|_| panic!("asked for"))
}

/// Blocks its stream for some milliseconds.
pub fn delay(args: &mut Args) -> Outcome {
    let pause = Duration::from_millis(args.whole("milliseconds")?);
    args.work(move |_| {
        std::thread::sleep(pause);
        Ok(())
    })
}

thread_local! {
    static WAITS: Cell<u32> = const { Cell::new(0) };
    static LEFT_OUT: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Skips one of the following automatic waits, by index, or none. Returns the number of waits since the last call.
#[napi]
pub fn leave_out_wait(index: Option<u32>) -> u32 {
    LEFT_OUT.set(index);
    WAITS.replace(0)
}

pub fn count_waits(after: &mut Marks) {
    for mark in after.iter_mut().filter(|mark| **mark > 0) {
        let index = WAITS.replace(WAITS.get() + 1);
        if LEFT_OUT.get() == Some(index) {
            *mark = 0;
        }
    }
}
