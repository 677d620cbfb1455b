"""The only door to the native kernel.

The rule: nothing else imports `mica._native`, and no error of the kernel leaves here under its own name: a broken input
is corrupt data, a wrong argument the caller's mistake, a failing disk a storage error; codes are the kernel's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, ParamSpec, TypeVar

import pyarrow as pa

from mica.codes import CODES
from mica.errors import MicaError, StorageError, UserError
from mica.storage import Storage
from mica.storage.local import ERRNO_CODES
from mica.storage.tails import Fetch, Tails

try:
    from mica import _native
except ImportError as e:  # a checkout without a build: say what to do rather than which file is missing
    raise ImportError(f"mica's native kernel is not built or does not fit this Python ({e}): run `make setup`") from e

_P = ParamSpec("_P")
_T = TypeVar("_T")


def version() -> str:
    """The version of the kernel, which is the package's."""
    return str(_native.__version__)


def zones() -> str:
    """The version of the time zone database, such as `2026e`."""
    return str(_native.ZONES)


def to_error(e: Any, **context: Any) -> MicaError:
    """The kernel's error as one of ours, with its place (rule, path, row, offset) as context."""
    places = {name: getattr(e, name, None) for name in ("rule", "path", "row", "offset")}
    code = str(getattr(e, "code", "INTERNAL"))
    number = re.search(r"\(os error (\d+)\)", str(e)) if code in ("IO", "CORRUPT_FILE") else None
    known = ERRNO_CODES.get(int(number[1])) if number is not None else None
    if known is not None:
        return StorageError(known[0], str(getattr(e, "message", e)), hint=known[2], **{**places, **context})
    row = CODES[code]
    return row.kinds[0](code, str(getattr(e, "message", e)), hint=row.way_out, **{**places, **context})


def call(function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Calls a function of the kernel and translates its errors, and those of types and numbers that do not cross."""
    try:
        return function(*args, **kwargs)
    except _native.KernelError as e:
        raise to_error(e) from None
    except (pa.ArrowException, OverflowError) as e:
        raise UserError("UNSUPPORTED_TYPE", f"this cannot be handed to the kernel or back: {_first_line(e)}") from None


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def json_to_variant(
    batch: pa.RecordBatch, *, duplicate_keys: str = "error", max_size: int = 16 << 20, max_depth: int = 1000
) -> pa.RecordBatch:
    """Column 0, JSON texts, as the variant column `v`; nulls stay null."""
    return call(_native.json_to_variant, batch, duplicate_keys=duplicate_keys, max_size=max_size, max_depth=max_depth)


def variant_to_json(batch: pa.RecordBatch, *, timezone: str = "UTC") -> pa.RecordBatch:
    """Column 0, an unshredded variant column, as the string column `json`, spelled as Spark's to_json."""
    return call(_native.variant_to_json, batch, timezone=timezone)


def type_texts(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Column 0, an unshredded variant column, as the string column `type`, as Spark's schema_of_variant."""
    return call(_native.type_texts, batch)


def cast(batch: pa.RecordBatch, wanted: pa.DataType, *, timezone: str = "UTC") -> pa.RecordBatch:
    """Column 0, of a plain type, as `values` of the type asked for and the mask `failed`, by the rules of ANSI."""
    return call(_native.cast, batch, wanted, timezone=timezone)


@lru_cache(maxsize=64)
def fixed_offset(timezone: str) -> int | None:
    """Seconds east of UTC of a zone that has one offset, None for others. Errors: UNKNOWN_TIME_ZONE."""
    return call(_native.fixed_offset, timezone)


def without_late_types(batch: pa.RecordBatch, *, as_text: bool, timezone: str = "UTC") -> pa.RecordBatch:
    """Column 0, unshredded Variants, without times, timestamps in nanoseconds and UUIDs: they become texts, or the
    first one is an error with its row and path.
    """
    return call(_native.without_late_types, batch, as_text=as_text, timezone=timezone)


def may_hold_late_types(batch: pa.RecordBatch) -> bool:
    """Whether a Variant of the batch, shredded or not, may hold a time, nanoseconds or a UUID; "no" is certain."""
    return bool(call(_native.may_hold_late_types, batch))


def calculate(batch: pa.RecordBatch, operator: str, precision: int, scale: int) -> pa.RecordBatch:
    """Columns 0 and 1, decimals, with + - * / or % between them: `values` of that precision and scale, and `failed`."""
    return call(_native.calculate, batch, operator, precision, scale)


def validate(batch: pa.RecordBatch) -> None:
    """Raises for the first row of column 0 that is no sound Variant."""
    call(_native.validate, batch)


def validate_nested(batch: pa.RecordBatch) -> None:
    """Raises for the first unshredded Variant inside a list or map that is malformed, with row and path."""
    call(_native.validate_nested, batch)


def infer(batch: pa.RecordBatch, column: str | Sequence[str], limits: Mapping[str, Any]) -> pa.DataType:
    """The shredding tree of an unshredded variant column."""
    return call(_native.infer, batch, column if isinstance(column, str) else list(column), dict(limits))


def shred(batch: pa.RecordBatch, trees: Mapping[Any, pa.DataType], *, early: bool = False) -> pa.RecordBatch:
    """The batch with variant columns in storage layout, the standard or the early one; keys of `trees` are names or
    paths of names through structs.
    """
    return call(_native.shred, batch, dict(trees), early=early)


def fitting_schema(batch: pa.RecordBatch) -> pa.Schema:
    """The schema of early columns without the `untyped_value`s that no row of the batch needs."""
    return call(_native.fitting_schema, batch)


def fit_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch in such a schema. Errors: DOES_NOT_FIT, with path and row, for a value that has no place there."""
    return call(_native.fit_batch, batch, schema)


def unshred(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with every variant column unshredded."""
    return call(_native.unshred, batch)


def extract(batch: pa.RecordBatch, items: Sequence[Mapping[str, Any]], *, timezone: str = "UTC") -> pa.RecordBatch:
    """Columns and cast paths of a batch in either layout; a path gives its values and a mask of failed casts."""
    return call(_native.extract, batch, [dict(item) for item in items], timezone=timezone)


class _Native:
    """An object of the kernel whose methods raise our errors."""

    _native: Any

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._native, name)
        if not callable(found):
            return found

        def method(*args: Any, **kwargs: Any) -> Any:
            return self._call(found, *args, **kwargs)

        return method

    def _call(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return call(function, *args, **kwargs)


def json_format(text: bytes, whole: bool, name: str) -> str | None:
    """`ndjson` or `json` by the beginning of a text, or by all of it; None where the beginning does not say."""
    return _native.json_format(text, whole, name)


class JsonReader(_Native):
    """One split of one JSON input; see the kernel's `JsonReader` for its arguments and methods."""

    def __init__(self, **kwargs: Any) -> None:
        self._native = call(_native.JsonReader, **kwargs)


class FileWriter(_Native):
    """Writes one Parquet file and gathers its bounds. What the disk refuses is told with the file's name."""

    def __init__(self, schema: pa.Schema, *, path: str | None = None, **kwargs: Any) -> None:
        self._path = path
        self._native = self._call(_native.FileWriter, schema, path=path, **kwargs)

    def _call(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return call(function, *args, **kwargs)
        except StorageError as e:
            if self._path is None or self._path in e.message:
                raise
            message = f"{self._path} could not be written: {e.message}"
            raise StorageError(e.code, message, hint=e.hint, **{**e.context, "path": self._path}) from None


class Transcription(_Native):
    """A file out of the pages of another. What the disk refuses is told with the file's name."""

    def __init__(self, reader: FileReader, native: Any) -> None:
        self._reader, self._native = reader, native

    def _call(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return self._reader._call(function, *args, **kwargs)  # noqa: SLF001 - of this file


def transcribe(
    reader: FileReader, columns: Sequence[tuple[str, bool]], layout: str, *, path: str | None, **options: Any
) -> Transcription | None:
    """The file's columns (name and whether it is nullable), all of them, in this layout as another file, page by page;
    None where that takes more than pages.
    """
    native = call(_native.transcribe, reader._native, list(columns), layout, path=path, **options)  # noqa: SLF001 - of this file
    return None if native is None else Transcription(reader, native)


class FileReader(_Native):
    """Reads one Parquet file. What `fetch` raises comes out as it was: the kernel would keep its text alone."""

    def __init__(self, *, fetch: Callable[[Any], Any] | None = None, **kwargs: Any) -> None:
        self._fetch = None if fetch is None else _Fetch(fetch)
        self._name: str | None = kwargs.get("name")
        self._native = self._call(_native.FileReader, fetch=self._fetch, **kwargs)

    def scan(
        self,
        items: Sequence[Mapping[str, Any]],
        *,
        filter: Sequence[Mapping[str, Any]] = (),  # noqa: A002 - the kernel's word
        judge: Callable[[pa.RecordBatch], pa.BooleanArray] | None = None,
        **kwargs: Any,
    ) -> Iterator[pa.RecordBatch]:
        """The batches of a scan, one at a time. With `filter`, `judge` is told those items of some rows and gives the
        mask of the rows that pass: the other columns are read for these alone.
        """
        scan = self._call(self._native.scan, [dict(i) for i in items], filter=[dict(i) for i in filter], **kwargs)
        while (step := self._call(scan.step)) is not None:
            judged, batch = step
            if not judged:
                yield batch
            elif judge is None:
                raise ValueError("a filter needs somebody who judges it")
            else:
                self._call(scan.keep, judge(batch))

    def check(self, *, limit: int) -> Check:
        """What is wrong with the file's variants, `limit` of each kind kept."""
        return Check(self, self._call(self._native.check, limit=limit))

    def _call(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        if self._fetch is not None:
            self._fetch.error = None
        try:
            return call(function, *args, **kwargs)
        except MicaError as e:
            if self._fetch is not None and self._fetch.error is not None:
                raise self._fetch.error from None
            if e.code == "UNSUPPORTED_TYPE" and self._name is not None:
                found = f"{self._name} holds what Arrow does not take: {e.message}"
                raise UserError(e.code, found, hint="mica check says whether the file is damaged.") from None
            raise


class _Fetch:
    """A function that fetches byte ranges, and the error that it ended with."""

    def __init__(self, fetch: Callable[[Any], Any]) -> None:
        self._fetch = fetch
        self.error: MicaError | None = None

    def __call__(self, ranges: Any) -> Any:
        try:
            return self._fetch(ranges)
        except MicaError as e:
            self.error = e
            raise


class Check(_Native):
    """A running check: batches of kind, rule, path, row_group, row and found; `totals()` counts all there were."""

    def __init__(self, reader: FileReader, native: Any) -> None:
        self._reader, self._native = reader, native

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while (batch := self._reader._call(next, self._native, None)) is not None:  # noqa: SLF001 - of this file
            yield batch


def open_file(
    place: Storage,
    rel: str,
    size: int | None = None,
    *,
    variants: Sequence[Sequence[str]] = (),
    early: bool | list[list[str]] = False,
    tails: Tails | None = None,
) -> FileReader:
    """The Parquet file `rel` of a location. `variants` are columns that are Variants whatever the file says, `early`
    those that may be of the early shredding layout; `tails` keeps the end of the file for who opens it again.
    """
    options: dict[str, Any] = {"name": place.path(rel), "variants": [list(names) for names in variants], "early": early}
    if place.local_path is not None:
        return FileReader(path=place.path(rel), **options)
    size = place.size(rel) if size is None else size
    return FileReader(size=size, fetch=Fetch(tails or Tails(), place, rel, size), **options)
