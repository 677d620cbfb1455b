"""LIKE, startswith, endswith and contains, as in Spark.

The rule: a pattern is a sequence of texts, `_` (one character, also a line break) and `%` (any number of characters). A
constant pattern is compiled once; otherwise each distinct pair of text and pattern is evaluated once. Strings are
compared by their bytes.

Source: Spark's StringUtils.escapeLikeRegex; Like, StartsWith, EndsWith, Contains.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from mica import compute as pc
from mica.expressions.compare import Datum
from mica.expressions.pairs import by_rows, tried_by_rows
from mica.records import dataclass
from mica.schema.types import BOOLEAN

ONE, ANY = object(), object()


@dataclass(frozen=True)
class Pattern:
    """The parts of a LIKE pattern: texts, ONE and ANY; no two texts are adjacent."""

    parts: tuple[Any, ...]

    @classmethod
    def read(cls, text: str, escape: str = "\\") -> Pattern:
        """Raises ValueError if Spark rejects the pattern: the escape is last, or before an ordinary character."""
        parts: list[Any] = []
        characters = iter(text)
        for c in characters:
            part: Any = c
            if c == escape:
                part = next(characters, None)
                if part is None:
                    raise ValueError(f"the pattern {text!r} ends with the escape character {escape!r}")
                if part not in ("_", "%", escape):
                    raise ValueError(f"the escape character {escape!r} must not precede {part!r} in {text!r}")
            elif c in "_%":
                part = ONE if c == "_" else ANY
            if isinstance(part, str) and parts and isinstance(parts[-1], str):
                parts[-1] += part
            elif part is not ANY or not parts or parts[-1] is not ANY:
                parts.append(part)
        return cls(tuple(parts))

    @property
    def prefix(self) -> str:
        """The prefix of every match."""
        return self.parts[0] if self.parts and isinstance(self.parts[0], str) else ""

    @property
    def is_prefix(self) -> bool:
        """Whether every value with the prefix matches."""
        return self.parts in ((ANY,), (self.prefix, ANY))

    @property
    def is_text(self) -> bool:
        """Whether only the prefix itself matches."""
        return self.parts in ((), (self.prefix,))

    def match(self, values: pa.Array) -> pa.Array:
        """Returns which of the strings match."""
        match self.parts:
            case () | (str(),):
                return pc.equal(values, self.prefix)
            case (str(text), end) if end is ANY:
                return pc.starts_with(values, text)
            case (start, str(text)) if start is ANY:
                return pc.ends_with(values, text)
            case (start, str(text), end) if start is ANY and end is ANY:
                return pc.match_substring(values, text)
        return pc.match_substring_regex(values, rf"(?s)\A{self._regex(_quote_re2)}\z")

    def matches(self, text: str) -> bool:
        """Whether one string matches."""
        return re.fullmatch(self._regex(re.escape), text, re.DOTALL) is not None

    def _regex(self, quote: Callable[[str], str]) -> str:
        return "".join(".*" if p is ANY else "." if p is ONE else quote(p) for p in self.parts)


def _quote_re2(text: str) -> str:
    return "".join(c if c.isascii() and c.isalnum() else f"\\x{{{ord(c):x}}}" for c in text)


def like(values: Datum, pattern: Datum, escape: Datum = None) -> tuple[pa.Array, pa.Array | None]:
    """`values LIKE pattern ESCAPE escape`, and the mask of rows whose pattern is invalid. Raises ValueError for an
    invalid constant."""
    own = "\\" if escape is None else escape.as_py()
    if isinstance(pattern, pa.Scalar) and isinstance(values, pa.Array):
        if not pattern.is_valid:
            return pa.nulls(len(values), pa.bool_()), None
        return Pattern.read(pattern.as_py(), own).match(values), None

    def one(text: str, written: str) -> bool | None:
        try:
            return Pattern.read(written, own).matches(text)
        except ValueError:
            return None

    return tried_by_rows(BOOLEAN, one, values, pattern)


def starts_with(values: Datum, part: Datum) -> pa.Array:
    """Whether the value starts with the other one; both are strings, or both binary."""
    return _searched(values, part, pc.starts_with, lambda v, p: v.startswith(p))


def ends_with(values: Datum, part: Datum) -> pa.Array:
    """Whether the value ends with the other one."""
    return _searched(values, part, pc.ends_with, lambda v, p: v.endswith(p))


def contains(values: Datum, part: Datum) -> pa.Array:
    """Whether the value contains the other one."""
    return _searched(values, part, pc.match_substring, lambda v, p: p in v)


def _searched(values: Datum, part: Datum, whole: Any, one: Callable[[Any, Any], bool]) -> pa.Array:
    if isinstance(part, pa.Scalar) and isinstance(values, pa.Array):
        return whole(values, part.as_py()) if part.is_valid else pa.nulls(len(values), pa.bool_())
    return by_rows(BOOLEAN, one, values, part)
