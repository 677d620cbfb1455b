//! Kernel errors as Python exceptions. Heavy work runs through [`run`]: without the GIL, and a panic (a bug of
//! ours or of a library) becomes an exception instead of ending the worker.

use std::panic::{AssertUnwindSafe, catch_unwind};

use mica_kernel::Error;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(mica._native, KernelError, PyException, "A failure of the kernel: code, rule, path, row, offset.");

/// The exception for an error; its attributes are those of the error.
pub fn raise(py: Python<'_>, error: &Error) -> PyErr {
    let exception = KernelError::new_err(error.message.clone());
    let value = exception.value(py);
    let set = value
        .setattr("code", error.code.as_str())
        .and_then(|()| value.setattr("message", &error.message))
        .and_then(|()| value.setattr("rule", error.rule))
        .and_then(|()| value.setattr("path", &error.path))
        .and_then(|()| value.setattr("row", error.row))
        .and_then(|()| value.setattr("offset", error.offset));
    match set {
        Ok(()) => exception,
        Err(e) => e,
    }
}

/// Runs kernel code without the GIL.
pub fn run<T: Send>(py: Python<'_>, work: impl FnOnce() -> mica_kernel::Result<T> + Send) -> PyResult<T> {
    match py.detach(|| catch_unwind(AssertUnwindSafe(work))) {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(e)) => Err(raise(py, &e)),
        Err(panic) => Err(raise(py, &Error::panicked(panic.as_ref()))),
    }
}
