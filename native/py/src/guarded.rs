//! What several Python threads may call, one at a time. The rule: after a panic it is not used again, for nobody knows
//! what state it is in.

use std::sync::Mutex;

use mica_kernel::{Code, Error};
use pyo3::prelude::*;

use crate::error::run;

pub struct Guarded<T> {
    /// What it is called in errors.
    name: &'static str,
    inner: Mutex<T>,
}

impl<T: Send> Guarded<T> {
    pub fn new(name: &'static str, inner: T) -> Self {
        Guarded { name, inner: Mutex::new(inner) }
    }

    /// Works on it without the GIL.
    pub fn with<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut T) -> mica_kernel::Result<R> + Send,
    ) -> PyResult<R> {
        run(py, || match self.inner.lock() {
            Ok(mut inner) => work(&mut inner),
            Err(_) => {
                Err(Error::new(Code::InvalidArgument, format!("the {} failed before and cannot go on", self.name)))
            }
        })
    }
}
