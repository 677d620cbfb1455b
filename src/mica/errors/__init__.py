"""The errors of mica, one class for each kind of cause.

The rule: a user's mistake, an unsupported table, corrupt data, a lost race and a failing disk are different classes.
Every error names what was asked, what was found and what to do. `code` is stable: tests and scripts may match it.
`message` and `hint` are for people and may change. Errors hold no secrets: callers pass names and paths.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Self

from mica import late

#: What may be credentials in a URL: user and password (which may hold a `/` or an `@`), and the keys and tokens of
#: signed URLs. mica refuses such URLs as input; this removes them from other texts, such as a store's own message. The
#: pattern also matches a URL without a user, so that the search does not start again at each `:/` (quadratic).
_USER = late.pattern(r"(?<=:/)(/?)([^@\s]*(?:@[^@/\s]*(?=@))*)(@?)")
_KEYS = late.pattern(
    r"([?&;#][\w-]*(?:sig|signature|token|credential|secret|password|key|keyid)=)[^&\s]+", re.IGNORECASE
)


def without_credentials(text: str) -> str:
    """The text with credentials in URLs replaced by `***`."""
    if ":/" not in text:
        return text
    text = _USER.sub(lambda found: f"{found[1]}***@" if ":" in found[2] and found[3] else found[0], text)
    return _KEYS.sub(r"\1***", text)


class MicaError(Exception):
    """The base class of all errors of mica.

    `code` is a stable upper-case word from the table in `mica.errors.codes`. `message` is one sentence: what was asked
    and what was found. `hint` says what to do. `context` says where it happened: `path`, `version`, `row`, `line`,
    `column`, …, as far as they are known; also `condition`, Spark's name for the error, which no text shows.
    """

    exit_status = 1

    #: Of an error of rows: the mask of the rows of the batch that fail alike, if it is known; other processes lack it.
    failing: Any = None

    def __init__(self, code: str, message: str, *, hint: str | None = None, **context: Any) -> None:
        message = without_credentials(message)
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.hint = None if hint is None else without_credentials(hint)
        self.context: Mapping[str, Any] = {
            name: without_credentials(value) if isinstance(value, str) else value
            for name, value in context.items()
            if value is not None
        }

    def at_rows(self, failing: Any) -> Self:
        """The error, with its `failing` rows."""
        self.failing = failing
        return self

    @property
    def where(self) -> Mapping[str, Any]:
        """The part of `context` that a text shows beside the message."""
        return {name: v for name, v in self.context.items() if name != "condition" and not self._says(v)}

    def _says(self, value: Any) -> bool:
        """Whether the message has the value; a number is no part of another one, or of a path's name."""
        if not isinstance(value, int):
            return str(value) in self.message
        return re.search(rf"(?<![\w-]){value}(?!\w)", self.message) is not None

    def __str__(self) -> str:
        where = ", ".join(f"{name}: {value}" for name, value in self.where.items())
        # With the code, as Spark's errors have theirs: docs/errors.md is ordered by it.
        text = f"[{self.code}] {self.message}" + (f" ({where})" if where else "")
        return text if self.hint is None else f"{text}\n{self.hint}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.code}: {self.message})"

    def __reduce__(self) -> tuple[Any, ...]:
        # A Spark worker pickles its errors for the driver; the default `__reduce__` would lose the keywords.
        return _rebuild, (type(self), self.code, self.message, self.hint, dict(self.context))


def _rebuild(kind: type[MicaError], code: str, message: str, hint: str | None, context: dict[str, Any]) -> MicaError:
    return kind(code, message, hint=hint, **context)


class UserError(MicaError, ValueError):
    """The call is wrong: an unknown column, an invalid option, a bad predicate."""

    @classmethod
    def bad_value(cls, name: str, asked: object, expected: str) -> UserError:
        """An invalid value of an argument or option; `expected` completes "must be"."""
        return cls("INVALID_ARGUMENT", f"{name} must be {expected}, got {asked!r}")

    @classmethod
    def unknown_column(
        cls, asked: str, known: Sequence[str], *, what: str = "column", of_paths: str = "", **context: Any
    ) -> UserError:
        """A column that does not exist, or is not of the kind that the call needs (`what`); `known` lists the valid.
        `of_paths` says what to do with a path into one of them, where a name is needed."""
        shown = ", ".join(known[:20]) + (", …" if len(known) > 20 else "")
        hint = f"There are: {shown}." if known else "There is none."
        if of_paths and ":" in asked and asked.partition(":")[0].strip(" `") in known:
            hint = of_paths
        return cls("UNKNOWN_COLUMN", f"there is no {what} {asked!r}", hint=hint, **context)


class OtherNameError(UserError, AttributeError):
    """An object has no such name: it is another library's, and mica has another one."""


class UnsupportedTableError(MicaError):
    """The table is valid, but uses something that this version of mica does not support."""


class CorruptDataError(MicaError):
    """Bytes break their format: a log line, a checkpoint, a Variant, a Parquet file."""


class ConflictError(MicaError):
    """Another writer's commit conflicts with this transaction."""


class StorageError(MicaError):
    """The disk or the object store failed: not found, no permission, full, unreachable."""

    #: Whether a store answered that it did nothing; otherwise it may have done it (`storage/answers.py`).
    refused = False
    #: Whether a store's answer was cut off or malformed.
    unreadable = False
