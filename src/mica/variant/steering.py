"""Shredding rules: a text that says which paths of Variants become columns, and what kind of.

The rule: a text is a list of `path: wish`, separated by commas or new lines. Of the rules that match a path the one
that matches deepest holds, also for all below it; of these the one whose last step is most exact (a name, then
`*_id`, then `*`), then the step before it, and so on; of these the last. Where no rule holds the sample decides. Values
that do not fit a column stay in the residual, so any text is safe for any data.

| wish | a path that matches |
|---|---|
| `infer` | becomes what the sample says |
| `skip` | gets no column: it stays in the residual of what is around it |
| `later` | gets none when rows come, and what the sample says when `optimize` or `reshred` writes them again |
| a type (Spark DDL) | becomes a column of this type; if the path is exact, whether rows have it or not |
| `max N` | has at most N columns at and below all that match, those in the most rows; beside other rules |

A path is `a.b`, `['a b']`, `a[*].b` (elements of arrays) or `$` (the whole value). `*` stands for any name or a part of
one (`features.*`, `*_id`), `**` for any number of steps. `v:a.b` means the column `v` alone; without a column a rule is
for every Variant column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

import pyarrow as pa

from mica import late
from mica.errors import UserError
from mica.properties import parse_names
from mica.records import dataclass
from mica.schema.lexical import QUOTED_NAME
from mica.schema.spelling import spelled
from mica.schema.types import TYPES
from mica.variant.shredding import WRITTEN_DEPTH, Limits, ShreddingSchema, depth_of

Word = Literal["infer", "skip", "later"]

#: When a file is written: with new rows, as a copy of one that keeps its columns, or again with other columns.
When = Literal["new", "kept", "again"]

#: What `later` means then. A copy keeps the columns that it has.
_LATER: dict[When, Word] = {"new": "skip", "kept": "infer", "again": "infer"}

_PARTS = re.compile(rf"""{QUOTED_NAME}|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|.""", re.DOTALL)
_STEP = re.compile(
    r"""(?P<dot>\.?)(?:`(?P<tick>(?:[^`]|``)+)`|(?P<plain>[^.\[\]'"`:,\s\x00]+))
      |\[\s*(?:(?P<quoted>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(?P<element>\*?))\s*\]""",
    re.VERBOSE,
)
_MAX = re.compile(r"max\s+([0-9]{1,9})", re.IGNORECASE)
_WORDS: tuple[Word, ...] = ("infer", "skip", "later")


@dataclass(frozen=True)
class PathRule:
    """One rule. `column` is in lower case (None: every Variant column); `steps` are kinds (`name`, `glob`, `element`,
    `any`) and texts; `wish` is a word, a number of columns, or a tree."""

    text: str
    column: tuple[str, ...] | None
    steps: tuple[tuple[str, str], ...]
    wish: Word | int | pa.DataType

    @property
    def spans_all(self) -> bool:
        """Whether it is about the whole value."""
        return self.steps in ((), (("glob", "*"),))


@dataclass(frozen=True)
class Steering:
    """The rules of a text, in its order."""

    rules: tuple[PathRule, ...]

    @classmethod
    def parse(cls, text: str) -> Steering:
        """Errors: INVALID_SHREDDING_SCHEMA for a text that is no rule, with what is nearest."""
        return cls(tuple(_rule(part) for part in _split(text, ",\n") if part))

    @staticmethod
    def is_in(text: str) -> bool:
        """Whether a text has rules rather than one type, which has no colon outside of brackets."""
        return len(_split(text, ":")) > 1

    def of(self, column: Iterable[str]) -> Steering:
        """The rules for a column."""
        names = tuple(name.lower() for name in column)
        return Steering(tuple(rule for rule in self.rules if rule.column in (None, names)))

    def check_columns(self, variants: Sequence[tuple[str, ...]]) -> None:
        """Raises UNKNOWN_COLUMN if a rule is for none of these columns."""
        known = {tuple(name.lower() for name in at) for at in variants}
        for rule in self.rules:
            if rule.column is not None and rule.column not in known:
                raise UserError.unknown_column(
                    ".".join(rule.column), [".".join(at) for at in variants], what="variant column", rule=rule.text
                )

    @property
    def has_later(self) -> bool:
        """Whether a rule leaves a path to a later write."""
        return any(rule.wish == "later" for rule in self.rules)

    def limits(self, limits: Limits, when: When) -> Limits:
        """The limits of inference with the rules as they are at this moment: the kernel knows no `later`, and how many
        columns there may be in all is a limit of its own."""
        most, rules = limits.max_fields, []
        for rule in self.rules:
            if rule.spans_all and isinstance(rule.wish, int):
                most = rule.wish
            else:
                rules.append(replace(rule, wish=_LATER[when]) if rule.wish == "later" else rule)
        return replace(limits, max_fields=most, rules=tuple(rules))

    def __str__(self) -> str:
        return ", ".join(rule.text for rule in self.rules)


def _rule(text: str) -> PathRule:
    parts = _split(text, ":")
    if len(parts) not in (2, 3) or not all(parts):
        raise _bad(text, "it is not PATH: WISH", "Write for example features.*: skip, price: decimal(18,2).")
    *column, path, wish = parts
    names = None if not column else tuple(name.lower() for name in _names(text, column[0]))
    steps = _steps(text, path)
    found = _wish(text, wish)
    if isinstance(found, pa.DataType) and len(steps) + depth_of(found) > WRITTEN_DEPTH:
        raise _bad(text, f"it nests deeper than {WRITTEN_DEPTH} levels", "Leave deeper places out.")
    return PathRule(text, names, steps, found)


def _names(text: str, column: str) -> tuple[str, ...]:
    found = parse_names(column)
    if len(found) != 1:
        raise _bad(text, f"{column!r} is not a column", "Write for example v:features.*: skip.")
    return found[0]


def _steps(text: str, path: str) -> tuple[tuple[str, str], ...]:
    if path == "$":
        return ()
    path = path.removeprefix("$.") if path.startswith("$.") else path[path.startswith("$[") :]
    at, steps = 0, list[tuple[str, str]]()
    while at < len(path) or not steps:
        found = _STEP.match(path, at)
        # Names have a dot between them, and none before the first; brackets have none.
        if found is None or (found["dot"] is not None and (found["dot"] == "") != (at == 0)):
            hint = "Elements of arrays are [*]." if re.match(r"\[\d", path[at:]) else "Write a.b, ['a b'] or a[*].b."
            raise _bad(text, f"the path {path!r} cannot be read at offset {at}", hint)
        if found["plain"] == "**":
            steps.append(("any", ""))
        elif found["plain"] is not None:
            steps.append(("glob" if "*" in found["plain"] else "name", found["plain"]))
        elif found["tick"] is not None:
            steps.append(("name", found["tick"].replace("``", "`")))
        elif found["quoted"] is not None:
            steps.append(("name", re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], found["quoted"][1:-1])))
        else:
            steps.append(("element", ""))
        at = found.end()
    if steps[-1][0] == "any":
        raise _bad(text, "a rule holds for all that is below its path", "Write * at the end, not **.")
    if any("\0" in name for _, name in steps):
        raise _bad(text, "a name holds a NUL, which no column can have", "Leave the rule out.")
    return tuple(steps)


def _wish(text: str, wish: str) -> Word | int | pa.DataType:
    word = wish.lower()
    most = _MAX.fullmatch(wish)
    if most is not None:
        return int(most[1])
    for one in _WORDS:
        if one == word:
            return one
    try:
        return ShreddingSchema.of(wish).tree
    except UserError as error:
        first = re.split(r"[\s(<]", word)[0]
        types = (name.lower() for row in TYPES.values() for name in row.ddl)
        near = late.difflib.get_close_matches(first, [*_WORDS, "max", "decimal", "struct", "array", *types], 1)
        hint = f"Is {near[0]} meant?" if near and near[0] != first else "Write infer, skip, later, max N or a type."
        why = error.message if error.code == "INVALID_SHREDDING_SCHEMA" else f"{wish!r} is neither a word nor a type"
        raise _bad(text, why, hint) from None


def _split(text: str, separators: str) -> list[str]:
    """Splits at separators that are in no quotes and no brackets."""
    parts, depth = [""], 0
    for found in _PARTS.finditer(text):
        char = found[0]
        depth += (char in "([<") - (char in ")]>") if len(char) == 1 else 0
        if depth <= 0 and len(char) == 1 and char in separators:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]


def without_column(text: str, path: Sequence[str], name: str | None) -> str:
    """The text with the column at `path` under its new name, or (None) without its rules."""
    found = []
    for rule in Steering.parse(text).rules:
        names = rule.column
        if names is None or names[: len(path)] != tuple(n.lower() for n in path):
            found.append(rule.text)
        elif name is not None:
            renamed = (*names[: len(path) - 1], name, *names[len(path) :])
            parts = _split(rule.text, ":")
            found.append(f"{spelled(renamed)}:{parts[1]}: {parts[2]}")
    return ", ".join(found)


def _bad(text: str, why: str, hint: str) -> UserError:
    return UserError("INVALID_SHREDDING_SCHEMA", f"the shredding rule {text!r} cannot be used: {why}", hint=hint)
