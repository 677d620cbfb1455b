"""Java's regular expressions, as far as RE2 gives the same answer.

The rule: a pattern is read into a small tree and written anew for RE2, which Arrow runs over whole arrays. Every set of
characters is written out, so no shorthand means something else there. What RE2 lacks, what it answers differently, and
what depends on the version of Java is refused by name.

| Java | here |
|---|---|
| characters, `.`, `[a-z]`, `[^a]`, `\\d \\w \\s \\D \\W \\S`, `\\p{Alpha}` and its kin, `\\Q…\\E` | sets |
| `^`, `\\A`, `\\z` | RE2's `\\A` and `\\z` |
| `$`, `\\Z` | `\\z`; texts that end with a line break are matched by Python |
| `\\|`, `(…)`, `(?:…)`, `(?<name>…)`, `(?i)`, `(?s)` | the same; `(?i)` folds ASCII only |
| `* + ? {n} {n,} {n,m}`, and reluctant ones | the same, unless what is repeated may be empty |
| lookaround, back references, possessive quantifiers, `\\b`, `\\p{L}`, `(?m)`, `[a[b]]`, `[a&&b]` | refused |

Source: java.util.regex.Pattern; RE2's syntax.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array
from mica.cached import cached_property
from mica.expressions.tokens import OnlySparkError
from mica.records import dataclass

_LAST = 0x10FFFF
_MAX_DEPTH = 50
#: RE2 counts no further.
_MOST = 1000

Ranges = tuple[tuple[int, int], ...]

_DIGITS: Ranges = ((0x30, 0x39),)
_UPPER: Ranges = ((0x41, 0x5A),)
_LOWER: Ranges = ((0x61, 0x7A),)
_WORDS: Ranges = (*_DIGITS, *_UPPER, (0x5F, 0x5F), *_LOWER)
_SPACES: Ranges = ((0x09, 0x0D), (0x20, 0x20))
_PUNCTUATION: Ranges = ((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E))
_BREAKS: Ranges = ((0x0A, 0x0A), (0x0D, 0x0D), (0x85, 0x85), (0x2028, 0x2029))

_SETS = {"d": _DIGITS, "w": _WORDS, "s": _SPACES}
_POSIX = {
    "Lower": _LOWER, "Upper": _UPPER, "Alpha": (*_UPPER, *_LOWER), "Digit": _DIGITS,
    "Alnum": (*_DIGITS, *_UPPER, *_LOWER), "Punct": _PUNCTUATION, "Graph": ((0x21, 0x7E),), "Print": ((0x20, 0x7E),),
    "Blank": ((0x09, 0x09), (0x20, 0x20)), "Cntrl": ((0, 0x1F), (0x7F, 0x7F)), "Space": _SPACES, "ASCII": ((0, 0x7F),),
    "XDigit": (*_DIGITS, (0x41, 0x46), (0x61, 0x66)),
}  # fmt: skip
_QUANTIFIERS = ("*", "+", "?", "{")
_CONTROLS = {"t": 0x09, "n": 0x0A, "r": 0x0D, "f": 0x0C, "a": 0x07, "e": 0x1B}

#: Matches a text whose end `$` may precede.
BREAK_AT_END = r"[\n\r\x{85}\x{2028}\x{2029}]\z"
_DOLLAR_IN_PYTHON = "(?!(?<=\r)\n)(?=(?:\r\n|[\n\r\x85\u2028\u2029])?\\Z)"


@dataclass(frozen=True)
class Part:
    """A part of a pattern. `nullable`: it may match the empty text."""

    @property
    def nullable(self) -> bool:  # noqa: D102
        return True

    def write(self, to: Dialect) -> str:
        """The part in another dialect."""
        raise NotImplementedError


@dataclass(frozen=True)
class Dialect:
    """A dialect: RE2's or Python's. `groups` are those that capture; None: all of them."""

    python: bool = False
    groups: frozenset[int] | None = None


@dataclass(frozen=True)
class Chars(Part):
    """One character of a set."""

    ranges: Ranges

    @property
    def nullable(self) -> bool:  # noqa: D102
        return False

    def write(self, to: Dialect) -> str:  # noqa: D102
        if not self.ranges:
            return r"[^\x{0}-\x{10ffff}]" if not to.python else r"[^\U00000000-\U0010ffff]"
        spelling = "\\U{:08x}" if to.python else "\\x{{{:x}}}"
        parts = ["-".join(spelling.format(c) for c in dict.fromkeys(ends)) for ends in self.ranges]
        return parts[0] if _is_one(self.ranges) else f"[{''.join(parts)}]"


@dataclass(frozen=True)
class Anchor(Part):
    """A place without a character: `begin`, `end`, or `dollar`: before the last line break, too."""

    kind: str

    def write(self, to: Dialect) -> str:  # noqa: D102
        if self.kind == "begin":
            return r"\A"
        if not to.python:
            return r"\z"
        return r"\Z" if self.kind == "end" else _DOLLAR_IN_PYTHON


@dataclass(frozen=True)
class InTurn(Part):
    """Parts, one after the other."""

    parts: tuple[Part, ...]

    @property
    def nullable(self) -> bool:  # noqa: D102
        return all(p.nullable for p in self.parts)

    def write(self, to: Dialect) -> str:  # noqa: D102
        return "".join(p.write(to) for p in self.parts)


@dataclass(frozen=True)
class Either(Part):
    """Options, of which the first one that leads to a match is taken."""

    options: tuple[Part, ...]

    @property
    def nullable(self) -> bool:  # noqa: D102
        return any(o.nullable for o in self.options)

    def write(self, to: Dialect) -> str:  # noqa: D102
        return f"(?:{'|'.join(o.write(to) for o in self.options)})"


@dataclass(frozen=True)
class Group(Part):
    """A capturing group, by its number from 1."""

    number: int
    child: Part

    @property
    def nullable(self) -> bool:  # noqa: D102
        return self.child.nullable

    def write(self, to: Dialect) -> str:  # noqa: D102
        if to.groups is None:
            return f"({self.child.write(to)})"
        name = f"P<g{self.number}>" if self.number in to.groups else ":"
        return f"(?{name}{self.child.write(to)})"


@dataclass(frozen=True)
class Repeat(Part):
    """A part, `low` to `high` times (None: without end)."""

    child: Part
    low: int
    high: int | None
    reluctant: bool

    @property
    def nullable(self) -> bool:  # noqa: D102
        return self.low == 0 or self.child.nullable

    def write(self, to: Dialect) -> str:  # noqa: D102
        times = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((self.low, self.high))
        if times is None:
            times = f"{{{self.low},{'' if self.high is None else self.high}}}"
        return f"(?:{self.child.write(to)}){times}{'?' * self.reluctant}"


@dataclass(frozen=True)
class JavaPattern:
    """A pattern of Java's whose answers are certain. `repeated` are the groups inside a repetition."""

    tree: Part
    groups: int
    repeated: frozenset[int]
    has_dollar: bool
    has_anchor: bool

    @classmethod
    @lru_cache(maxsize=256)
    def read(cls, text: str) -> JavaPattern:
        """Raises OnlySparkError with the construct that is not certain."""
        reader = _Reader(text)
        tree = reader.whole()
        found = cls(tree, reader.groups, frozenset(reader.repeated), reader.has_dollar, reader.has_anchor)
        try:
            pc.match_substring_regex(arrow_array([""]), found.re2())
        except pa.ArrowInvalid as e:
            raise OnlySparkError(f"the pattern {text!r} is too large") from e
        return found

    def re2(self, *, group: int | None = None, capture: bool = False) -> str:
        """The pattern for RE2: without groups, with the one named `g{group}`, or with all of them."""
        if group == 0:
            return f"(?P<g0>{self.re2()})"
        groups = None if capture else frozenset(() if group is None else (group,))
        return self.tree.write(Dialect(groups=groups))

    @cached_property
    def python(self) -> re.Pattern[str]:
        """The pattern for Python, which knows `$` before a line break."""
        return re.compile(self.tree.write(Dialect(python=True)))

    @property
    def nullable(self) -> bool:
        """Whether it may match the empty text."""
        return self.tree.nullable

    @property
    def prefix(self) -> tuple[str, bool]:
        """The prefix of every text in which it is found, and whether every text with this prefix has it."""
        parts = self.tree.parts if isinstance(self.tree, InTurn) else (self.tree,)
        if not parts or parts[0] != Anchor("begin"):
            return "", False
        text = ""
        for part in parts[1:]:
            if not isinstance(part, Chars) or not _is_one(part.ranges):
                return text, False
            text += chr(part.ranges[0][0])
        return text, True


class _Reader:
    """Reads a pattern from left to right."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.depth = text, 0, 0
        self.groups, self.names = 0, set[str]()
        self.repeated: set[int] = set()
        self.has_dollar = self.has_anchor = self.folds = self.dot_is_all = False

    def refuse(self, what: str, at: int | None = None) -> OnlySparkError:
        place = self.at if at is None else at
        return OnlySparkError(f"{what} (at {place} of the pattern {self.text!r}) cannot be used here")

    def whole(self) -> Part:
        found = self.either()
        if self.at < len(self.text):
            raise self.refuse("a bracket that is not opened")
        return found

    def next(self, ahead: int = 0) -> str:
        return self.text[self.at + ahead : self.at + ahead + 1]

    def accept(self, text: str) -> bool:
        there = self.text.startswith(text, self.at)
        self.at += len(text) * there
        return there

    def either(self) -> Part:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise self.refuse(f"a nesting deeper than {_MAX_DEPTH} levels")
        kept = self.folds, self.dot_is_all
        options = [self.sequence()]
        while self.accept("|"):
            options.append(self.sequence())
        self.folds, self.dot_is_all = kept
        self.depth -= 1
        return options[0] if len(options) == 1 else Either(tuple(options))

    def sequence(self) -> Part:
        parts: list[Part] = []
        while self.next() not in ("", "|", ")"):
            first = self.groups
            part = self.atom()
            if part is not None:
                parts += self.quantified(part, range(first + 1, self.groups + 1))
        return parts[0] if len(parts) == 1 else InTurn(tuple(parts))

    def quantified(self, part: list[Part], inside: Iterable[int]) -> list[Part]:
        """The parts, the last of which may be repeated."""
        at = self.at
        if self.next() not in _QUANTIFIERS:
            return part
        if not part:
            raise self.refuse("a quantifier without a part")
        mark = self.next()
        self.at += 1
        low, high = {"*": (0, None), "+": (1, None), "?": (0, 1), "{": (0, 0)}[mark]
        if mark == "{":
            found = re.compile(r"([0-9]{1,4})(,?)([0-9]{0,4})\}").match(self.text, self.at)
            if found is None or (found[3] and not found[2]):
                raise self.refuse("a brace that is not a number of repetitions", at)
            self.at = found.end()
            low = int(found[1])
            high = int(found[3]) if found[3] else None if found[2] else low
            if max(low, high or 0) > _MOST or (high is not None and high < low):
                raise self.refuse(f"this number of repetitions (at most {_MOST})", at)
        reluctant = self.accept("?")
        if self.next() in _QUANTIFIERS:
            raise self.refuse("a possessive or a second quantifier", at)
        if part[-1].nullable:
            raise self.refuse("a repetition of what may be empty", at)
        self.repeated |= set(inside) if high is None or high > 1 else set()
        return [*part[:-1], Repeat(part[-1], low, high, reluctant)]

    def atom(self) -> list[Part] | None:
        """The next parts; none for a flag."""
        c = self.next()
        self.at += 1
        match c:
            case "(":
                return self.group()
            case "[":
                return [self.bracket()]
            case ".":
                return [Chars(((0, _LAST),) if self.dot_is_all else _without(_BREAKS))]
            case "^":
                return [self.anchor("begin")]
            case "$":
                return [self.anchor("dollar")]
            case "\\":
                return self.escape()
            case "*" | "+" | "?" | "{":
                raise self.refuse("a quantifier without a part", self.at - 1)
        return [self.character(ord(c))]

    def anchor(self, kind: str) -> Part:
        self.has_anchor = True
        self.has_dollar |= kind == "dollar"
        return Anchor(kind)

    def character(self, point: int) -> Chars:
        if 0xD800 <= point < 0xE000:
            raise self.refuse("half of a character", self.at - 1)
        return Chars(self.folded(((point, point),)))

    def folded(self, ranges: Iterable[tuple[int, int]]) -> Ranges:
        """With `(?i)`: the letters of ASCII in both cases."""
        more = list(ranges)
        for low, high in list(more) if self.folds else ():
            for first, last, step in ((0x41, 0x5A, 0x20), (0x61, 0x7A, -0x20)):
                a, b = max(low, first), min(high, last)
                more += [(a + step, b + step)] if a <= b else []
        return _joined(more)

    def group(self) -> list[Part] | None:
        at = self.at - 1
        number = 0
        if self.accept("?"):
            flags = re.compile(r"([is]*)(?:-([is]+))?([:)])").match(self.text, self.at)
            name = re.compile(r"<([A-Za-z][A-Za-z0-9]*)>").match(self.text, self.at)
            if flags is not None:
                self.at = flags.end()
                kept = self.folds, self.dot_is_all
                self.folds = ("i" in flags[1] or self.folds) and "i" not in (flags[2] or "")
                self.dot_is_all = ("s" in flags[1] or self.dot_is_all) and "s" not in (flags[2] or "")
                if flags[3] == ")":
                    return None
                found = self.inner(at)
                self.folds, self.dot_is_all = kept
                return [InTurn((found,))]
            if name is None or name[1] in self.names:
                raise self.refuse("a group of this kind", at)
            self.at = name.end()
            self.names.add(name[1])
        self.groups += 1
        number = self.groups
        return [Group(number, self.inner(at))]

    def inner(self, at: int) -> Part:
        found = self.either()
        if not self.accept(")"):
            raise self.refuse("a bracket that is not closed", at)
        return found

    def escape(self) -> list[Part]:
        at = self.at - 1
        c = self.next()
        self.at += 1
        match c:
            case "A":
                return [self.anchor("begin")]
            case "z":
                return [self.anchor("end")]
            case "Z":
                return [self.anchor("dollar")]
            case "Q":
                end = self.text.find("\\E", self.at)
                quoted = self.text[self.at :] if end < 0 else self.text[self.at : end]
                self.at = len(self.text) if end < 0 else end + 2
                return [self.character(ord(one)) for one in quoted]
        self.at = at + 1
        return [Chars(self.escaped_set())]

    def escaped_set(self) -> Ranges:
        """The set behind a backslash, inside brackets or outside."""
        found = self.class_of_escape()
        if found is not None:
            return found
        point = self.escaped_character()
        return self.folded(((point, point),))

    def class_of_escape(self) -> Ranges | None:
        c = self.next()
        if c and c.lower() in _SETS:
            self.at += 1
            return _SETS[c] if c.islower() else _without(_SETS[c.lower()])
        if c in ("p", "P") and c:
            name = re.compile(r"\{([A-Za-z]+)\}").match(self.text, self.at + 1)
            if name is None or name[1] not in _POSIX or (self.folds and name[1] in ("Lower", "Upper")):
                raise self.refuse("this class of characters", self.at - 1)
            self.at = name.end()
            return _joined(_POSIX[name[1]]) if c == "p" else _without(_POSIX[name[1]])
        return None

    def escaped_character(self) -> int:
        at, c = self.at - 1, self.next()
        point = re.compile(r"x([0-9A-Fa-f]{2})|x\{([0-9A-Fa-f]{1,6})\}|u([0-9A-Fa-f]{4})").match(self.text, self.at)
        if point is not None:
            self.at = point.end()
            value = int(point[1] or point[2] or point[3], 16)
            if value > _LAST or 0xD800 <= value < 0xE000:
                raise self.refuse("this character", at)
            return value
        self.at += 1
        if c in _CONTROLS:
            return _CONTROLS[c]
        if not c or (c.isascii() and c.isalnum()) or not c.isascii():
            raise self.refuse(f"\\{c}", at)
        return ord(c)

    def bracket(self) -> Chars:
        start = self.at - 1
        negated = self.accept("^")
        ranges: list[tuple[int, int]] = []
        if self.next() == "]":
            raise self.refuse("a ] at the start of brackets")
        while not self.accept("]"):
            if self.next() == "[" or self.text.startswith("&&", self.at):
                raise self.refuse("brackets inside brackets")
            at, low = self.at, self.in_bracket(start)
            if self.next() != "-" or self.next(1) == "]":
                ranges += low
                continue
            self.at += 1
            if self.next() in ("[", "-"):
                raise self.refuse("this range of characters", at)
            high = self.in_bracket(start)
            if not _is_one(low) or not _is_one(high) or high[0][0] < low[0][0]:
                raise self.refuse("this range of characters", at)
            ranges.append((low[0][0], high[0][0]))
        every = self.folded(ranges)
        return Chars(_without(every) if negated else every)

    def in_bracket(self, start: int) -> Ranges:
        """One character or shorthand, not yet folded."""
        c = self.next()
        if not c:
            raise self.refuse("a bracket that is not closed", start)
        self.at += 1
        if c != "\\":
            if 0xD800 <= ord(c) < 0xE000:
                raise self.refuse("half of a character", self.at - 1)
            return ((ord(c), ord(c)),)
        found = self.class_of_escape()
        if found is not None:
            return found
        point = self.escaped_character()
        return ((point, point),)


def _is_one(ranges: Ranges) -> bool:
    return len(ranges) == 1 and ranges[0][0] == ranges[0][1]


def _joined(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The ranges in order, without overlaps."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return tuple(found)


def _without(ranges: Ranges) -> Ranges:
    """All other characters."""
    found, at = [], 0
    for low, high in _joined(ranges):
        found += [(at, low - 1)] if low > at else []
        at = high + 1
    return (*found, (at, _LAST)) if at <= _LAST else tuple(found)
