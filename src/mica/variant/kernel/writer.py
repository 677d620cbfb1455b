"""Writes Parquet files. Errors of the disk are reported with the file's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypedDict

import pyarrow as pa

from mica.errors import StorageError
from mica.variant.kernel.batches import Rows
from mica.variant.kernel.door import P, T, call, native
from mica.variant.kernel.reader import FileReader
from mica.variant.kernel.request import Layout


class FileOptions(TypedDict, total=False):
    """Options for a file; missing ones have the kernel's default. `bloom_filters` are Parquet column paths."""

    compression: str
    bloom_filters: list[list[str]]


class Closed(TypedDict):
    """Facts about a written file. `plain` is one row with the structs min, max and null_count by the
    names in the file, `paths` a row per path of a Variant column: column, path, rows, min, max."""

    rows: int
    size: int
    row_groups: int
    plain: pa.RecordBatch
    paths: pa.RecordBatch


class FileWriter:
    """Writes one Parquet file and collects its bounds. `path` must not exist; without a path `take_bytes` returns the
    bytes."""

    def __init__(
        self,
        schema: pa.Schema,
        *,
        path: str | None = None,
        compression: str = "zstd",
        bloom_filters: Sequence[Sequence[str]] = (),
        row_group_rows: int | None = None,
        page_rows: int | None = None,
        key_value_metadata: Mapping[str, str] | None = None,
        created_by: str | None = None,
    ) -> None:
        self._path = path
        self._native = self._call(
            native.FileWriter, schema, path=path, compression=compression, bloom_filters=bloom_filters,
            row_group_rows=row_group_rows, page_rows=page_rows,
            key_value_metadata=None if key_value_metadata is None else dict(key_value_metadata), created_by=created_by,
        )  # fmt: skip

    @property
    def bytes_written(self) -> int:
        """Bytes of the file so far, including an estimate of the buffered rows."""
        return self._native.bytes_written

    def write(self, batch: Rows) -> None:
        """Writes rows; the schema marks the Variant columns."""
        self._call(self._native.write, batch)

    def take_bytes(self) -> bytes:
        """Returns the bytes written since the last call, for a writer without a path."""
        return self._call(self._native.take_bytes)

    def close(self) -> Closed:
        """Finishes the file."""
        return self._call(self._native.close)

    def _call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return call(function, *args, **kwargs)
        except StorageError as e:
            if self._path is None or self._path in e.message:
                raise
            raise _unwritten(self._path, e) from None


class Transcription:
    """Writes a file from the pages of another."""

    def __init__(self, reader: FileReader, made: native.Transcription, path: str | None) -> None:
        self._reader, self._native, self._path = reader, made, path

    @property
    def moves(self) -> bool:
        """Whether any column changes its layout; otherwise the file is copied."""
        return self._native.moves

    @property
    def may_hold_late_types(self) -> bool:
        """Whether a Variant of the file may hold a time, nanoseconds or a UUID; False is certain."""
        return self._native.may_hold_late_types

    @property
    def bytes_written(self) -> int:
        """Bytes of the file so far."""
        return self._native.bytes_written

    def step(self) -> bool:
        """Writes the next row group; returns whether there was one. Errors: DOES_NOT_FIT if its pages contradict the
        footer."""
        return self._call(self._native.step)

    def take_bytes(self) -> bytes:
        """Returns the bytes written since the last call, for a writer without a path."""
        return self._call(self._native.take_bytes)

    def close(self) -> Closed:
        """Finishes the file."""
        return self._call(self._native.close)

    def _call(self, function: Callable[[], T]) -> T:
        try:
            return self._reader.call(function)
        except StorageError as e:
            # Other errors may be those of the file that is read.
            if e.code != "DISK_FULL" or self._path is None or self._path in e.message:
                raise
            raise _unwritten(self._path, e) from None


def _unwritten(path: str, error: StorageError) -> StorageError:
    message = f"{path} could not be written: {error.message}"
    return StorageError(error.code, message, hint=error.hint, **{**error.context, "path": path})


def transcribe(
    reader: FileReader,
    columns: Sequence[tuple[str, bool]],
    layout: Layout,
    *,
    path: str | None,
    options: FileOptions | None = None,
) -> Transcription | None:
    """Copies all of the file's columns (name and whether it is nullable) page by page into a file of this layout; None
    if that is not possible with pages alone.
    """
    made = call(native.transcribe, reader.native, list(columns), layout, path=path, **(options or {}))
    return None if made is None else Transcription(reader, made, path)
