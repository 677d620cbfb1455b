//! One error type for the whole kernel. A code is stable, the message is for people; path and row say where.

use std::fmt;

/// What kind of failure this is. The text of a code is part of the public contract (`errors/codes.py` maps it).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// Text that is not JSON, or JSON that cannot become a Variant.
    InvalidJson,
    /// JSON text whose bytes are not UTF-8.
    InvalidUtf8,
    /// The same key twice in one JSON object.
    DuplicateKey,
    /// Nesting beyond the stated limit.
    TooDeep,
    /// Metadata and value together beyond the stated limit.
    TooLarge,
    /// Bytes that break the Variant encoding.
    MalformedVariant,
    /// Columns that break the rules of a shredding layout.
    MalformedShredding,
    /// A Parquet file that cannot be read: truncated, changed or corrupt.
    CorruptFile,
    /// A value that cannot be cast to the type asked for.
    InvalidCast,
    /// A type or schema that the operation does not take.
    UnsupportedType,
    /// A wrong argument: the caller's mistake.
    InvalidArgument,
    /// A time zone that does not exist.
    UnknownTimeZone,
    /// A value without a place in a file that has none for what is left over.
    DoesNotFit,
    /// A value that its column cannot store.
    InvalidValue,
    /// The operating system said no.
    Io,
    /// A bug: ours or a library's.
    Internal,
}

impl Code {
    pub fn as_str(self) -> &'static str {
        match self {
            Code::InvalidJson => "INVALID_JSON",
            Code::InvalidUtf8 => "INVALID_UTF8",
            Code::DuplicateKey => "DUPLICATE_KEY",
            Code::TooDeep => "TOO_DEEP",
            Code::TooLarge => "TOO_LARGE",
            Code::MalformedVariant => "MALFORMED_VARIANT",
            Code::MalformedShredding => "MALFORMED_SHREDDING",
            Code::CorruptFile => "CORRUPT_FILE",
            Code::InvalidCast => "INVALID_CAST",
            Code::UnsupportedType => "UNSUPPORTED_TYPE",
            Code::InvalidArgument => "INVALID_ARGUMENT",
            Code::UnknownTimeZone => "UNKNOWN_TIME_ZONE",
            Code::DoesNotFit => "DOES_NOT_FIT",
            Code::InvalidValue => "INVALID_VALUE",
            Code::Io => "IO",
            Code::Internal => "INTERNAL",
        }
    }
}

/// A failure with its place: `rule` is a number of the Parquet variant checklist where one was broken,
/// `path` a column path or a JSON path, `row` counts from 0, `offset` is in bytes from the start of the value.
#[derive(Debug, Clone)]
pub struct Error {
    pub code: Code,
    pub message: String,
    pub rule: Option<u8>,
    pub path: Option<String>,
    pub row: Option<u64>,
    pub offset: Option<u64>,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    #[cold]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Error { code, message: message.into(), rule: None, path: None, row: None, offset: None }
    }

    /// Values that have no room in a column of one batch (`limits::MAX_BYTES`); one of them may be too long by itself.
    #[cold]
    pub fn no_room() -> Self {
        Error::new(
            Code::TooLarge,
            "the values of one batch, or of one row, exceed 2 GiB: use smaller batches or values",
        )
    }

    /// What `catch_unwind` caught.
    #[cold]
    pub fn panicked(panic: &(dyn std::any::Any + Send)) -> Self {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        Error::new(Code::Internal, format!("the kernel failed unexpectedly: {text}"))
    }

    pub fn rule(mut self, rule: u8) -> Self {
        self.rule = Some(rule);
        self
    }

    /// Keeps the innermost path: the one who knew most set it first.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path.get_or_insert_with(|| path.into());
        self
    }

    pub fn row(mut self, row: u64) -> Self {
        self.row.get_or_insert(row);
        self
    }

    pub fn offset(mut self, offset: u64) -> Self {
        self.offset.get_or_insert(offset);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(e: std::io::Error) -> Self {
        Error::new(Code::Io, e.to_string())
    }
}

impl From<arrow_schema::ArrowError> for Error {
    fn from(e: arrow_schema::ArrowError) -> Self {
        match e {
            arrow_schema::ArrowError::OffsetOverflowError(_) => Error::no_room(),
            other => Error::new(Code::InvalidArgument, other.to_string()),
        }
    }
}

impl From<parquet::errors::ParquetError> for Error {
    fn from(e: parquet::errors::ParquetError) -> Self {
        Error::new(Code::CorruptFile, e.to_string())
    }
}
