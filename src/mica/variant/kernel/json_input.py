"""The kernel's reader of JSON text."""

from __future__ import annotations

from typing import Literal, TypedDict

import pyarrow as pa

from mica.variant.kernel.batches import Batch, Inferred, Left
from mica.variant.kernel.door import call, native
from mica.variant.shredding import Limits


class JsonOptions(TypedDict, total=False):
    """Options for reading documents; missing ones have the kernel's default."""

    duplicate_keys: str
    max_size: int
    replace_invalid_utf8: bool
    on_error: Literal["fail", "collect"]


def json_format(text: bytes, whole: bool, name: str) -> str | None:
    """Returns `ndjson` or `json` from the beginning of a text, or from all of it; None if that is ambiguous."""
    return native.json_format(text, whole, name)


class JsonReader:
    """Reads one split of one JSON input as batches of the Variant column `column` in the layout of a tree.

    With a `path` the kernel reads the file itself. Without one, call `feed` or `finish` while it `wants_input`. With
    `views` the metadata of shredded rows are Arrow's `binary_view`, of the few that rows share: nobody copies them, but
    pyarrow takes and filters no rows of such a column.
    """

    def __init__(
        self,
        *,
        column: str,
        format: str = "ndjson",  # noqa: A002 - the kernel's word
        compression: str | None = None,
        path: str | None = None,
        name: str | None = None,
        start: int = 0,
        end: int | None = None,
        options: JsonOptions | None = None,
        views: bool = False,
    ) -> None:
        self._native = call(
            native.JsonReader, column=column, format=format, compression=compression, path=path, name=name,
            start=start, end=end, views=views, **(options or {}),
        )  # fmt: skip

    @property
    def bytes_read(self) -> int:
        """Before decompression."""
        return self._native.bytes_read

    def wants_input(self) -> bool:
        """Whether it needs more bytes to continue."""
        return call(self._native.wants_input)

    def feed(self, data: bytes) -> None:
        """Passes the next bytes of the input."""
        call(self._native.feed, data)

    def finish(self) -> None:
        """Marks the end of the input."""
        call(self._native.finish)

    def infer(self, limits: Limits) -> Inferred:
        """Infers the shredding tree of the next rows; they are kept and returned later."""
        tree, left = call(self._native.infer, limits)
        return Inferred(tree, [Left(*one) for one in left])

    def next_batch(self, tree: pa.DataType, max_rows: int, max_bytes: int) -> Batch | None:
        """Returns the next rows, None after the last. Returns within a second, maybe without rows."""
        return call(self._native.next_batch, tree, max_rows, max_bytes)

    def take_errors(self) -> pa.RecordBatch:
        """Returns the bad rows since the last call: file, line, column, offset, reason, text."""
        return call(self._native.take_errors)
