//! What the threads of a process keep together for the next time: caches under a lock.
//!
//! A lock that another thread holds while the process forks is given back by nobody in the child. There it is only tried,
//! and who does not get it does without what is kept.

use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

pub struct Shared<T> {
    /// The process that used it first; 0 before.
    owner: AtomicU32,
    kept: Mutex<T>,
}

impl<T> Shared<T> {
    pub const fn new(kept: T) -> Self {
        Self { owner: AtomicU32::new(0), kept: Mutex::new(kept) }
    }

    /// What is kept, for this thread alone until it lets go; None in a child of a fork that may wait for ever.
    pub fn held(&self) -> Option<MutexGuard<'_, T>> {
        let (own, order) = (process::id(), Ordering::Relaxed);
        let owner = self.owner.compare_exchange(0, own, order, order).map_or_else(|other| other, |_| own);
        if owner == own {
            return Some(self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        }
        match self.kept.try_lock() {
            Ok(kept) => Some(kept),
            Err(TryLockError::Poisoned(kept)) => Some(kept.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_waits_for_its_own_lock_and_not_for_one_that_it_inherited() {
        let own = Shared::new(1);
        assert_eq!(own.held().map(|kept| *kept), Some(1));
        assert_eq!(own.owner.load(Ordering::Relaxed), process::id());
        let inherited = Shared { owner: AtomicU32::new(process::id() ^ 1), kept: Mutex::new(2) };
        let held = inherited.held();
        assert_eq!(held.as_deref(), Some(&2));
        assert!(inherited.held().is_none());
        drop(held);
        assert_eq!(inherited.held().as_deref(), Some(&2));
    }
}
