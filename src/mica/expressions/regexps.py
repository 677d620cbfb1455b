"""Functions of regular expressions, as in Spark.

The rule: patterns are constants, read by `java_patterns`. RE2 matches whole arrays. Where a pattern has `$`, texts that
end with a line break are matched by Python, each distinct one once: RE2 cannot look at what follows a match.

Source: Spark's RLike, RegExpExtract, RegExpReplace, StringSplit; UTF8String.split; java.util.regex.Matcher.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array, scalar
from mica.expressions.java_patterns import BREAK_AT_END, JavaPattern
from mica.expressions.pairs import by_rows
from mica.expressions.tokens import OnlySparkError
from mica.schema.types import INTEGER

_PART = re.compile(r"\$([0-9]+)|\\(.)|([^$\\]+)", re.DOTALL)


def check(pattern: str) -> None:
    """Raises OnlySparkError for a pattern whose answers are not certain here."""
    JavaPattern.read(pattern)


def check_extract(pattern: str, group: int = 1) -> None:
    """Raises ValueError for a group that the pattern does not have."""
    found = JavaPattern.read(pattern)
    if not 0 <= group <= found.groups:
        raise ValueError(f"the pattern {pattern!r} has {found.groups} groups, not {group}")
    _check_group(found, group, pattern)


def check_replace(pattern: str, new: str = "", position: int = 1) -> None:
    """Raises OnlySparkError for a pattern that may match the empty text: RE2 finds fewer of those than Java."""
    found = JavaPattern.read(pattern)
    if position != 1:
        raise OnlySparkError("regexp_replace from another position than 1 cannot be used here")
    if found.nullable:
        raise OnlySparkError(f"the pattern {pattern!r}, which may match an empty text, cannot be used here")
    for part in _replacement(found, new):
        if isinstance(part, int):
            _check_group(found, part, pattern)


def check_split(pattern: str, _limit: int = -1) -> None:
    """Raises OnlySparkError for a pattern that may match the empty text, or has `^` or `$`."""
    found = JavaPattern.read(pattern)
    if found.nullable or found.has_anchor:
        raise OnlySparkError(f"split by {pattern!r}, which may be empty or has ^ or $, cannot be used here")


def _check_group(found: JavaPattern, group: int, pattern: str) -> None:
    if group in found.repeated:
        raise OnlySparkError(f"the group {group} of {pattern!r}, which is repeated, cannot be used here")


def like(values: pa.Array, pattern: pa.Scalar) -> pa.Array:
    """Whether the pattern is found in a text."""
    found = JavaPattern.read(pattern.as_py())
    hits = pc.match_substring_regex(values, found.re2())
    return _mended(found, values, hits, lambda text: found.python.search(text) is not None)


def extract(values: pa.Array, pattern: pa.Scalar, group: pa.Scalar | None = None) -> pa.Array:
    """The group (by default 1; 0 is all) of the first match; an empty text where there is none."""
    found, number = JavaPattern.read(pattern.as_py()), 1 if group is None else group.as_py()
    taken = pc.struct_field(pc.extract_regex(values, found.re2(group=number)), f"g{number}")
    taken = pc.if_else(pc.is_valid(values), pc.fill_null(taken, ""), scalar(None, pa.string()))

    def one(text: str) -> str:
        match = found.python.search(text)
        return "" if match is None else match[number] or ""

    return _mended(found, values, taken, one)


def replace(values: pa.Array, pattern: pa.Scalar, new: pa.Scalar, _position: pa.Scalar | None = None) -> pa.Array:
    """Replaces every match; `$1` is a group, a backslash quotes what follows."""
    found = JavaPattern.read(pattern.as_py())
    parts = _replacement(found, new.as_py())
    text = "".join(f"\\{p}" if isinstance(p, int) else p.replace("\\", "\\\\") for p in parts)
    replaced = pc.replace_substring_regex(values, found.re2(capture=True), text)

    def put(match: re.Match[str]) -> str:
        return "".join((match[p] or "") if isinstance(p, int) else p for p in parts)

    return _mended(found, values, replaced, lambda text: found.python.sub(put, text))


def count(values: pa.Array, pattern: pa.Scalar) -> pa.Array:
    """The number of matches."""
    found = JavaPattern.read(pattern.as_py()).python
    return by_rows(INTEGER, lambda text: sum(1 for _ in found.finditer(text)), values)


def place(values: pa.Array, pattern: pa.Scalar) -> pa.Array:
    """Where the first match begins, from 1; 0 if there is none."""
    found = JavaPattern.read(pattern.as_py()).python

    def one(text: str) -> int:
        match = found.search(text)
        return 0 if match is None else match.start() + 1

    return by_rows(INTEGER, one, values)


def split(values: pa.Array, pattern: pa.Scalar, limit: pa.Scalar | None = None) -> pa.Array:
    """Cuts a text at every match, at most into `limit` parts if that is above 0; empty parts are kept."""
    found, most = JavaPattern.read(pattern.as_py()), -1 if limit is None else limit.as_py()
    cut = pc.split_pattern_regex(values, found.re2(), max_splits=most - 1 if most > 0 else None)
    return cut.cast(pa.list_(pa.field("element", pa.string())))


def _replacement(found: JavaPattern, text: str) -> Sequence[str | int]:
    """The parts of a replacement: texts, and the numbers of groups. Raises ValueError for one that Java rejects."""
    parts: list[str | int] = []
    at = 0
    while at < len(text):
        match = _PART.match(text, at)
        if match is None:
            if text.startswith("${", at):
                raise OnlySparkError(f"${{…}} in {text!r}, which Spark's variables may replace, cannot be used here")
            raise ValueError(f"the replacement {text!r} has a sign that quotes or names nothing")
        at = match.end()
        if match[1] is None:
            parts.append(match[2] if match[2] is not None else match[3])
            continue
        # As many digits as still name a group.
        digits = match[1]
        taken = next((n for n in range(len(digits), 1, -1) if int(digits[:n]) <= found.groups), 1)
        if int(digits[:taken]) > found.groups:
            raise ValueError(f"the pattern has no group {digits[:taken]}")
        at -= len(digits) - taken
        parts.append(int(digits[:taken]))
    if any(isinstance(p, int) and p > 9 for p in parts):
        raise OnlySparkError(f"a group above 9 in {text!r} cannot be used here")
    return parts


def _mended(found: JavaPattern, values: pa.Array, answers: pa.Array, one: Callable[[str], Any]) -> pa.Array:
    """Answers again for the texts that end with a line break, if the pattern has `$`."""
    if not found.has_dollar:
        return answers
    broken = pc.fill_null(pc.match_substring_regex(values, BREAK_AT_END), False)
    if not broken.true_count:
        return answers
    texts = values.filter(broken).dictionary_encode()
    other = arrow_array([one(text) for text in texts.dictionary.to_pylist()], answers.type).take(texts.indices)
    return pc.replace_with_mask(answers, broken, other)
