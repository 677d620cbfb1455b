//! The allocator of whatever names this crate; one of its own, because it is optimised, and the module for Python is not.
//!
//! Arrow allocates much and in threads, and a footer is thousands of small parts: the system's allocator took half of the
//! time to open a file. `variant/kernel/door.py` says how long freed memory is kept.

#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
