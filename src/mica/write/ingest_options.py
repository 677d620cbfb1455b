"""The options of an ingest, as one validated value.

The rule: an invalid option is refused here, by name, before anything is opened.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, ParamSpec, Self, TypeVar, cast

from mica import late
from mica.arguments import FLAG, NAMES, OPTIONS, PATH, SIZE, TEXT, TEXTS, Kind, one_of, refuse_other
from mica.errors import UserError
from mica.properties import BYTES
from mica.records import dataclass
from mica.variant import kernel
from mica.variant.kernel import JsonOptions
from mica.variant.plain import MAX_SIZE

P = ParamSpec("P")
R = TypeVar("R")


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

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """The options of `ingest_json` by name: None is the default, sizes may be texts. Errors: INVALID_ARGUMENT."""
        for name, value in given.items():
            if name in KINDS and value is not None:
                refuse_other(name, value, KINDS[name])
        values = {name: value for name, value in given.items() if value is not None}
        return cls(**values | {name: read(values[name]) for name, read in _SIZES.items() if name in values})

    def __post_init__(self) -> None:
        for name, allowed in _ALLOWED.items():
            one_of(name, getattr(self, name), allowed)
        kernel.fixed_offset(self.timezone)  # an unknown zone is an error, even if no column uses it
        if self.quarantine is not None and self.on_error == "fail":
            raise UserError(
                "INVALID_ARGUMENT",
                "a place for bad lines is given, but the first of them ends the ingest",
                hint="Set on_error='quarantine' too.",
            )
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
        return [sort_key(text)[1] for text in self.sort_by]

    @property
    def reader(self) -> JsonOptions:
        """The options of the kernel's JSON reader."""
        return {
            "duplicate_keys": self.duplicate_keys,
            "max_size": self.max_size,
            "replace_invalid_utf8": self.invalid_utf8 == "replace",
        }


def refuse_unknown(call: str, given: Iterable[str], known: Collection[str]) -> None:
    """Raises INVALID_ARGUMENT for an option that the call does not have, with the nearest one that it has."""
    for name in given:
        if name not in known:
            near = late.difflib.get_close_matches(name, known, 1)
            raise UserError(
                "INVALID_ARGUMENT",
                f"{call} has no option {name!r}",
                hint=f"The nearest one is {near[0]}." if near else f"There are {', '.join(known)}.",
            )


def by_name(function: Callable[P, R]) -> Callable[P, R]:
    """Refuses options that the call does not have as a stream does, which gets its own by name."""
    known = {name: one.kind is one.KEYWORD_ONLY for name, one in inspect.signature(function).parameters.items()}
    options = [name for name, only in known.items() if only]

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        refuse_unknown(function.__name__, kwargs.keys() - known.keys(), options)
        return function(*args, **kwargs)

    return checked


#: The types of the options that are not one of some words.
KINDS: Mapping[str, Kind] = {
    "column": TEXT, "columns": TEXTS, "partition_by": NAMES, "sort_by": NAMES, "quarantine": PATH,
    "target_file_size": SIZE, "properties": TEXTS, "max_size": SIZE, "idempotent": FLAG, "schema_evolution": FLAG,
    "ansi": FLAG, "timezone": TEXT, "storage_options": OPTIONS,
}  # fmt: skip

_ALLOWED: Mapping[str, Sequence[str]] = {
    "mode": ("append", "error", "ignore", "overwrite"),
    "format": ("auto", "ndjson", "json"),
    "on_error": ("fail", "quarantine"),
    "duplicate_keys": ("error", "last"),
    "invalid_utf8": ("error", "replace"),
}


def sort_key(text: str) -> tuple[str, bool]:
    """What a key of `sort_by` sorts by, without ASC or DESC, and whether it descends."""
    *before, last = text.rsplit(maxsplit=1) or [""]
    if before and last.lower() in ("asc", "desc"):
        return before[0].strip(), last.lower() == "desc"
    return text.strip(), False


def size_of(size: int | str | None, name: str = "target_file_size") -> int | None:
    """A size in bytes, from a number or a text such as 128MB. Errors: INVALID_ARGUMENT."""
    if size is None or isinstance(size, int):
        if size is not None and size <= 0:
            raise UserError.bad_value(name, size, "a positive number of bytes or a text such as 128MB")
        return size
    try:
        return BYTES.parse(size)
    except ValueError:
        raise UserError.bad_value(name, size, BYTES.expected) from None


def largest_of(size: int | str) -> int:
    """The size `max_size` in bytes. Errors: INVALID_ARGUMENT if Spark cannot read so large Variants."""
    found = size_of(size, "max_size")
    if found is None or found > MAX_SIZE:
        raise UserError.bad_value("max_size", size, "at most 128MB (the largest Variant that Spark reads)")
    return found


_SIZES: Mapping[str, Callable[[Any], int | None]] = {"target_file_size": size_of, "max_size": largest_of}
