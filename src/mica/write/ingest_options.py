"""The options of an ingest, as one validated value.

The rule: an invalid option is refused here, by name, before anything is opened.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from mica.arguments import one_of
from mica.errors import UserError
from mica.properties import BYTES
from mica.variant import kernel
from mica.variant.kernel import JsonOptions

#: The largest Variant that Spark reads.
MAX_SIZE = 128 << 20


@dataclass(frozen=True)
class IngestOptions:
    """The keywords of `ingest_json`; sizes are in bytes. ANSI mode and time zone are the engine's settings."""

    column: str = "v"
    columns: Mapping[str, str] = field(default_factory=dict)
    partition_by: Sequence[str] = ()
    sort_by: Sequence[str] = ()
    shredding: Any = None
    mode: str = "append"
    format: str = "auto"
    on_error: str = "fail"
    quarantine: str | os.PathLike[str] | None = None
    target_file_size: int | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    duplicate_keys: str = "error"
    invalid_utf8: str = "error"
    max_size: int = 16 << 20
    idempotent: bool = False
    ansi: bool = True
    timezone: str = "UTC"
    storage_options: Mapping[str, str] | None = None
    #: Whether an existing table gets the columns that it lacks.
    schema_evolution: bool = False

    def __post_init__(self) -> None:
        for name, allowed in _ALLOWED.items():
            one_of(name, getattr(self, name), allowed)
        kernel.fixed_offset(self.timezone)  # an unknown zone is an error, even if no column uses it
        if self.idempotent and self.mode == "overwrite":
            raise UserError.bad_value(
                "idempotent", self.idempotent, "False with mode='overwrite', which replaces all rows"
            )

    @property
    def on_table(self) -> Literal["append", "error", "overwrite"]:
        """The mode for an existing table; `ignore` has returned before anything is written."""
        return cast("Literal['append', 'error', 'overwrite']", "error" if self.mode == "ignore" else self.mode)

    @property
    def descending(self) -> list[bool]:
        """For each sort key whether it descends."""
        return [text.strip().lower().endswith(" desc") for text in self.sort_by]

    @property
    def reader(self) -> JsonOptions:
        """The options of the kernel's JSON reader."""
        return {
            "duplicate_keys": self.duplicate_keys,
            "max_size": self.max_size,
            "replace_invalid_utf8": self.invalid_utf8 == "replace",
        }


_ALLOWED: Mapping[str, Sequence[str]] = {
    "mode": ("append", "error", "ignore", "overwrite"),
    "format": ("auto", "ndjson", "json"),
    "on_error": ("fail", "quarantine"),
    "duplicate_keys": ("error", "last"),
    "invalid_utf8": ("error", "replace"),
}


def size_of(size: int | str | None) -> int | None:
    """A size in bytes, from a number or a text such as 128MB. Errors: INVALID_ARGUMENT."""
    if size is None or isinstance(size, int):
        if size is not None and size <= 0:
            raise UserError.bad_value("a size", size, "a positive number of bytes or a text such as 128MB")
        return size
    try:
        return BYTES.parse(size)
    except ValueError:
        raise UserError.bad_value("a size", size, BYTES.expected) from None


def largest_of(size: int | str) -> int:
    """The size `max_size` in bytes. Errors: INVALID_ARGUMENT if Spark cannot read so large Variants."""
    found = size_of(size)
    if found is None or found > MAX_SIZE:
        raise UserError.bad_value("max_size", size, "at most 128MB (the largest Variant that Spark reads)")
    return found
