//! What the compiler's instrumentation counts: LLVM's inline 8-bit counters, one for each edge, which a stable compiler
//! makes as well (`-C passes=sancov-module`, see the Makefile). The only `unsafe` code of the project: it is never shipped.

use std::sync::Mutex;

/// Where the counters are: begin and end of each part.
static PARTS: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// Called before `main`, once for each part of the program.
#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_8bit_counters_init(begin: *mut u8, end: *mut u8) {
    let mut parts = PARTS.lock().unwrap();
    let part = (begin as usize, end as usize);
    if !parts.contains(&part) {
        parts.push(part);
    }
}

#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_pcs_init(_begin: *const usize, _end: *const usize) {}

/// What has been seen of each edge: powers of two of how often it was taken in one run.
#[derive(Default)]
pub struct Seen(Vec<u8>);

impl Seen {
    /// Takes the counters of the run that is over, and clears them; whether an edge is new, or new so often.
    pub fn take(&mut self) -> bool {
        let (mut at, mut new) = (0, false);
        for &(begin, end) in PARTS.lock().unwrap().iter() {
            let length = end - begin;
            if self.0.len() < at + length {
                self.0.resize(at + length, 0);
            }
            // SAFETY: the linker gives the bounds of a section of bytes that lives as long as the program. One thread runs
            // instrumented code, and it is here now.
            let counters = unsafe { std::slice::from_raw_parts_mut(begin as *mut u8, length) };
            for (counter, seen) in counters.iter_mut().zip(&mut self.0[at..]) {
                if *counter != 0 {
                    let bit = 1u8 << (7 - counter.leading_zeros());
                    new |= *seen & bit == 0;
                    *seen |= bit;
                    *counter = 0;
                }
            }
            at += length;
        }
        new
    }

    /// Edges seen, of all.
    pub fn edges(&self) -> (usize, usize) {
        (self.0.iter().filter(|seen| **seen != 0).count(), self.0.len())
    }
}
