"""Bounds of collated columns in a file's statistics.

The rule: a bound is stored under the collation and the version that made it, separate from binary bounds; it is the
whole string, or it is omitted. Under ICU a prefix of a string may sort after the string (Thai), and no appended
character makes a safe upper bound (`ch` in Czech), so ICU's strings are never truncated. UTF8_LCASE compares code point
by code point: a prefix sorts below its string, and the prefix with U+10FFFF appended sorts above it.

    stats
    └── statsWithCollation
        └── icu.UNICODE_CI.78.3          provider and name as Spark spells them, the version of its CollationFactory
            ├── minValues                mirrors the schema, by the names in the file
            └── maxValues

The tag `mica.collatedBounds` of a file names the maker: bounds without it may be truncated, or another library's.

Source: Delta RFC "Collated String Type", "Per-file Statistics".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from mica.arrays import NDArray, arrow_array
from mica.collation.names import is_binary, to_sql
from mica.records import dataclass
from mica.schema.collations import walk_collated
from mica.schema.types import StructType
from mica.stats import documents
from mica.stats.columns import indexed_leaves

#: The key of the bounds in a file's statistics.
KEY = "statsWithCollation"

#: The tag of a file whose collated bounds obey the rules of `collation.trust` and of this file, and its value.
TAG = "mica.collatedBounds"
MADE_BY = "spark/2"

#: Longer strings (in bytes of UTF-8) get no bound.
MAX_BYTES = 512

#: Code points of a truncated bound under UTF8_LCASE.
PREFIX = 64

_SIDES = ("minValues", "maxValues")
_LAST = "\U0010ffff"


@dataclass(frozen=True)
class CollatedColumn:
    """A column with collated bounds: its names in the schema and in the file, its collation in Spark's spelling."""

    column: tuple[str, ...]
    names: tuple[str, ...]
    collation: str

    @property
    def sql(self) -> str:
        """The collation's SQL name."""
        return self.collation.partition(".")[2]


@dataclass(frozen=True)
class CollatedBounds:
    """The smallest and the largest string of one leaf in one file; None if there is none."""

    leaf: CollatedColumn
    low: str | None
    high: str | None


def collated_leaves(
    schema: StructType, configuration: Mapping[str, str], partition_columns: Iterable[str] = ()
) -> list[CollatedColumn]:
    """Returns the columns with collated bounds: those that have statistics and a collation of Spark."""
    held = {c.column: c.identifier for c in walk_collated(schema) if c.plain and not is_binary(c.identifier)}
    found = []
    for leaf in indexed_leaves(schema, configuration, partition_columns):
        identifier = held.get(leaf.column)
        name = None if identifier is None else to_sql(identifier)
        if identifier is not None and name is not None:
            found.append(CollatedColumn(leaf.column, leaf.names, f"{identifier.provider.lower()}.{name}"))
    return found


def with_bounds(
    stats: str | None,
    bounds: Iterable[CollatedBounds],
    version: str,
    tags: Mapping[str, str] | None,
    others: Iterable[CollatedColumn],
) -> str:
    """Returns a file's statistics with these bounds, of the comparator's version; bounds of `others`, and those of
    other versions and collations, stay. A collation without bounds gets no key.

    `tags` are the file's before it gets the tag that all of its bounds can be used: other makers' bounds do not stay.
    """
    document = documents.read(stats)
    before = documents.as_object(document.get(KEY)) if (tags or {}).get(TAG) == MADE_BY else {}
    keys = Counter(map(str.lower, before))  # of keys that differ in case only, no bounds are used
    made = _sides(bounds, version, {k.lower(): v for k, v in before.items() if keys[k.lower()] == 1}, others)
    # Our bounds keep their position, so that equal statistics are equal texts.
    spelled = {key.lower(): key for key in made}
    collated = {spelled.get(key.lower(), key): sides for key, sides in before.items()} | made
    collated = {key: sides for key, sides in collated.items() if sides or key not in made}
    document.pop(KEY, None)
    if collated:
        document[KEY] = collated
    return documents.write(document)


def added_bounds(stats: str, bounds: Iterable[CollatedBounds], version: str) -> str:
    """Adds bounds to the statistics that `stats.render` made for a new file, without parsing the text again."""
    made = {key: sides for key, sides in _sides(bounds, version, {}, ()).items() if sides}
    return f'{stats[:-1]},"{KEY}":{documents.write(made)}}}' if made else stats


def _sides(
    bounds: Iterable[CollatedBounds], version: str, before: Mapping[str, Any], others: Iterable[CollatedColumn]
) -> dict[str, dict[str, Any]]:
    """Builds the value of `statsWithCollation`; a collation without bounds gets an empty object. Those of `others`
    are as in `before`, whose keys are in lower case."""
    made: dict[str, dict[str, Any]] = {}
    known = {leaf.names for leaf in others}
    for b in bounds:
        key = f"{b.leaf.collation}.{version}"
        own = made.setdefault(key, documents.as_object(before.get(key.lower())))
        known.add(b.leaf.names)
        for side, value in zip(_SIDES, (_low(b), _high(b)), strict=True):
            if value is None:
                documents.remove(own, (side, *b.leaf.names))
            else:
                documents.put(own, (side, *b.leaf.names), value)
    return {key: {side: held for side in _SIDES if (held := _held(own.get(side), known))} for key, own in made.items()}


def _held(tree: Any, known: Collection[tuple[str, ...]], at: tuple[str, ...] = ()) -> dict[str, Any]:
    """The strings of these names, in objects that hold any."""
    found: dict[str, Any] = {}
    for name, inner in documents.as_object(tree).items():
        if isinstance(inner, str) and (*at, name) in known:
            found[name] = inner
        elif held := _held(inner, known, (*at, name)):
            found[name] = held
    return found


def _low(b: CollatedBounds) -> str | None:
    if b.low is None:
        return None
    if b.leaf.sql == "UTF8_LCASE":
        return b.low[:PREFIX]
    return b.low if len(b.low.encode()) <= MAX_BYTES else None


def _high(b: CollatedBounds) -> str | None:
    if b.high is None:
        return None
    if b.leaf.sql == "UTF8_LCASE" and len(b.high) > PREFIX:
        return None if b.high[PREFIX] == _LAST else b.high[:PREFIX] + _LAST
    return b.high if len(b.high.encode()) <= MAX_BYTES else None


@dataclass(frozen=True)
class Evidence:
    """What is known about a collated column in each file: the usable bounds (null: unknown), the reason if they are not
    usable, and the other versions of the collation that have bounds.
    """

    low: pa.Array
    high: pa.Array
    why: Sequence[str | None]
    versions: Sequence[tuple[str, ...]] = ()

    def of(self, rows: NDArray[np.int64]) -> Evidence:
        """Returns the evidence for some of the files."""
        places = arrow_array(rows)
        why, versions = ([told[i] for i in rows.tolist()] for told in (self.why, self.versions))
        return Evidence(self.low.take(places), self.high.take(places), why, versions)


def read_bounds(texts: pa.Array, tags: pa.Array, names: tuple[str, ...], collation: str, version: str) -> Evidence:
    """Reads the bounds of a column (by its names in the file) under a collation from many files' statistics.

    `texts` are the statistics as JSON, `tags` a map of strings per file. Unreadable bounds are unknown, not an error.
    """
    wanted, prefix = f"{collation}.{version}".lower(), f"{collation}.".lower()
    sides: tuple[list[str | None], list[str | None]] = ([], [])
    why: list[str | None] = []
    versions: list[tuple[str, ...]] = []
    made = [dict(t).get(TAG) if t is not None else None for t in tags.to_pylist()]
    for text, maker in zip(texts.to_pylist(), made, strict=True):
        found = _collated(text)
        same = [key for key in found if key.lower() == wanted]
        others = tuple(key[len(prefix) :] for key in found if key.lower().startswith(prefix) and key not in same)
        low = high = reason = None
        if len(same) > 1:
            reason = f"two keys for {same[0]} that differ in case"
        elif same and maker != MADE_BY:
            reason = f"the bounds of {same[0]} were made by another writer"
        elif same:
            low, high = (_string(found[same[0]], side, names) for side in _SIDES)
            if low is None or high is None:
                side = "" if low is high else " lower" if low is None else " upper"
                reason = f"no{side} bound of {collation}: the string is too long"
        elif others:
            reason = f"bounds of {collation} in version {', '.join(others)}, and {version} is needed"
        else:
            reason = f"no bounds of {collation}"
        sides[0].append(low)
        sides[1].append(high)
        why.append(reason)
        versions.append(() if same else others)
    return Evidence(arrow_array(sides[0], pa.string()), arrow_array(sides[1], pa.string()), why, versions)


def _collated(text: str | None) -> Mapping[str, Any]:
    if text is None or KEY not in text:
        return {}
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    found = document.get(KEY) if isinstance(document, dict) else None
    return found if isinstance(found, dict) else {}


def _string(tree: Any, side: str, names: tuple[str, ...]) -> str | None:
    found = documents.at(tree, (side, *names))
    return found if isinstance(found, str) else None
