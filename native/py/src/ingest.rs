//! JSON input for Python: one split of one file, read in shredded batches.

use arrow_pyarrow::ToPyArrow;
use mica_kernel::infer::Limits;
use mica_kernel::ingest::JsonIngest;
use mica_kernel::json::format::{Detector, is_ndjson_name};
use mica_kernel::json::{Compression, DuplicateKeys, Format, OnError, ParseOptions, ReaderOptions};
use mica_kernel::{Code, Error};
use pyo3::prelude::*;

use crate::batch::Batch;
use crate::columns::tree;
use crate::error::{raise, run};
use crate::guarded::Guarded;
use crate::request;

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<JsonReader>()?;
    m.add_function(wrap_pyfunction!(json_format, m)?)
}

/// Text that a row may have per byte of the Variant that it may become: white space costs nothing there.
const TEXT_PER_BYTE: usize = 4;

/// `json`: one array, or documents over several lines. `auto`: whichever of both the whole input is.
const FORMATS: &[(&str, Format)] = &[("auto", Format::Auto), ("ndjson", Format::Ndjson), ("json", Format::Json)];

/// One split of one JSON input. Without a `path` the bytes are fed: while `wants_input`, `feed` or `finish`.
#[pyclass(module = "mica._native")]
struct JsonReader {
    ingest: Guarded<JsonIngest>,
}

/// `ndjson` or `json` by the beginning of a text, or by all of it (`whole`); `None` where the beginning does not say.
#[pyfunction]
fn json_format(text: &[u8], whole: bool, name: &str) -> Option<&'static str> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let found = Detector::default().look(text, whole, is_ndjson_name(name))?;
    FORMATS.iter().find(|(_, format)| *format == found).map(|(name, _)| *name)
}

fn choice<T>(py: Python<'_>, option: &str, given: &str, choices: &[(&str, T)]) -> PyResult<T>
where
    T: Copy,
{
    choices.iter().find(|(name, _)| *name == given).map(|(_, choice)| *choice).ok_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let message = format!("{option} is one of {}, not {given:?}", names.join(", "));
        raise(py, &Error::new(Code::InvalidArgument, message))
    })
}

#[pymethods]
impl JsonReader {
    #[new]
    #[pyo3(signature = (
        *, column, format="ndjson", compression=None, path=None, start=0, end=None, duplicate_keys="error",
        max_size=16 << 20, on_error="fail", replace_invalid_utf8=false, name=None, views=false,
    ))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        column: &str,
        format: &str,
        compression: Option<&str>,
        path: Option<String>,
        start: u64,
        end: Option<u64>,
        duplicate_keys: &str,
        max_size: usize,
        on_error: &str,
        replace_invalid_utf8: bool,
        name: Option<String>,
        views: bool,
    ) -> PyResult<Self> {
        let compressions = [("none", Compression::None), ("gzip", Compression::Gzip), ("zstd", Compression::Zstd)];
        let duplicates = [("error", DuplicateKeys::Error), ("last", DuplicateKeys::LastWins)];
        let parse = ParseOptions {
            duplicate_keys: choice(py, "duplicate_keys", duplicate_keys, &duplicates)?,
            max_size,
            ..ParseOptions::default()
        };
        let reader = ReaderOptions {
            name: name.or_else(|| path.clone()).unwrap_or_else(|| "input".into()),
            format: choice(py, "format", format, FORMATS)?,
            compression: choice(py, "compression", compression.unwrap_or("none"), &compressions)?,
            path,
            start,
            end,
            on_error: choice(py, "on_error", on_error, &[("fail", OnError::Fail), ("collect", OnError::Collect)])?,
            replace_invalid_utf8,
            max_row: max_size.saturating_mul(TEXT_PER_BYTE),
        };
        let ingest = run(py, || Ok(JsonIngest::new(column, reader, parse)?.with_views(views)))?;
        Ok(JsonReader { ingest: Guarded::new("reader", ingest) })
    }

    fn feed(&self, py: Python<'_>, bytes: &[u8]) -> PyResult<()> {
        self.ingest.with(py, |ingest| ingest.reader().feed(bytes))
    }

    /// No more bytes will be fed.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        self.ingest.with(py, |ingest| {
            ingest.reader().finish();
            Ok(())
        })
    }

    fn wants_input(&self, py: Python<'_>) -> PyResult<bool> {
        self.ingest.with(py, |ingest| Ok(ingest.wants_input()))
    }

    /// The shredding tree of the rows to come, which are kept and read again; and the paths that did not become typed
    /// columns.
    #[pyo3(signature = (limits=None))]
    fn infer<'py>(&self, py: Python<'py>, limits: Option<request::Limits>) -> PyResult<request::Inferred<'py>> {
        let limits = limits.map_or(Ok(Limits::default()), |given| given.checked(py))?;
        request::inferred(py, self.ingest.with(py, |ingest| ingest.infer(limits))?)
    }

    /// The next rows as a batch of one column in the layout of the tree, `None` after the last. It comes within a
    /// second, maybe without rows.
    fn next_batch(
        &self,
        py: Python<'_>,
        tree: &Bound<'_, PyAny>,
        max_rows: usize,
        max_bytes: usize,
    ) -> PyResult<Option<Batch>> {
        let tree = self::tree(py, tree)?;
        Ok(self.ingest.with(py, |ingest| ingest.next_batch(&tree, max_rows, max_bytes))?.map(Batch))
    }

    /// The bad rows since the last call: file, line, column, offset, reason, text.
    fn take_errors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.ingest.with(py, JsonIngest::take_errors)?.to_pyarrow(py)
    }

    /// Before decompression.
    #[getter]
    fn bytes_read(&self, py: Python<'_>) -> PyResult<u64> {
        self.ingest.with(py, |ingest| Ok(ingest.bytes_read()))
    }

    #[getter]
    fn lines(&self, py: Python<'_>) -> PyResult<u64> {
        self.ingest.with(py, |ingest| Ok(ingest.rows()))
    }
}
