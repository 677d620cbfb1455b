"""Checks collated bounds: their form, and whether they hold for the rows.

The rule: bounds are compared with the rows only by the comparator of their own version; bounds that could not be
compared are a note, not a violation. Bounds of other writers are compared too, although no scan here
uses them.

Source: Delta RFC "Collated String Type", "Collation identifiers" and "Per-file Statistics".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mica import engines
from mica.arrays import arrow_array
from mica.checking.statistics import Found, Statistics
from mica.collation import trust
from mica.collation.identifier import parse
from mica.collation.names import all_names, from_sql
from mica.engines.base import Engine
from mica.errors import MicaError, UserError
from mica.log.paths import decode_path
from mica.log.snapshot import Snapshot
from mica.records import dataclass
from mica.schema.types import STRING, StructType
from mica.stats import documents
from mica.stats.collated import KEY, CollatedBounds, CollatedColumn
from mica.stats.columns import leaves_of
from mica.tasks.parts import parts_of
from mica.wording import counted
from mica.write.collated import collated_bounds, comparable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: A file's number, the column, which side, its bound, and the end of the rows there.
_Pair = tuple[int, CollatedColumn, str, str, str]

_SIDES = ("minValues", "maxValues")


def spelled(statistics: Statistics) -> Iterator[Found]:
    """Yields what is wrong with the form of one file's collated bounds."""
    collated = _collated(statistics.text)
    if collated is None:
        return
    if not isinstance(collated, dict):
        yield _found(KEY, "the collated statistics are not an object")
        return
    strings = {leaf.names for leaf in _strings(statistics.schema, statistics.partition_columns)}
    known = {leaf.names for leaf in leaves_of(statistics.schema)}
    seen: dict[str, str] = {}
    for key, sides in collated.items():
        at = f"{KEY}.{key}"
        why = _wrong_key(key)
        if why is not None:
            yield _found(at, why)
        if key.lower() in seen:
            yield _found(at, f"{seen[key.lower()]!r} and {key!r} differ only in case")
        seen[key.lower()] = key
        for side in _SIDES:
            values = sides.get(side, {}) if isinstance(sides, dict) else None
            yield from _wrong_bounds(f"{at}.{side}", values, strings, known)


def _wrong_bounds(
    at: str, values: object, strings: Collection[tuple[str, ...]], known: Collection[tuple[str, ...]]
) -> Iterator[Found]:
    """What is wrong with the bounds of one side; `strings` are those of the columns `known` that may have some."""
    if not isinstance(values, dict):
        yield _found(at, "the bounds are not an object")
        return
    for names, value in _values(values):
        if names in strings:
            if not isinstance(value, str):
                yield _found(f"{at}.{'.'.join(names)}", "the bound is not text")
        elif names in known:  # bounds of a column that was dropped stay in the log
            yield _found(at, f"{'.'.join(names)} is not a string column")


def _wrong_key(key: str) -> str | None:
    try:
        identifier = parse(key)
    except UserError as e:
        return e.message
    return None if identifier.version is not None else f"{key!r} has no version"


def _found(path: str, found: str) -> Found:
    return {"kind": "collated_statistics", "path": path, "found": found}


def _values(tree: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yields the leaves of a tree of objects, each with its path."""
    todo: list[tuple[tuple[str, ...], Any]] = [((name,), value) for name, value in tree.items()]
    while todo:
        names, value = todo.pop()
        if isinstance(value, dict):
            todo += [((*names, name), below) for name, below in value.items()]
        elif value is not None:
            yield names, value


@dataclass(frozen=True)
class Compared:
    """Violations by the file's path (decoded), and what could not be compared."""

    found: Mapping[str, Sequence[Found]]
    notes: tuple[str, ...] = ()


def compared(snapshot: Snapshot, spark: SparkSession | None, unread: Collection[str] = ()) -> Compared:
    """Compares a table's collated bounds of this engine's version with the rows of its files; `unread` are
    files that cannot be read (paths, decoded).
    """
    leaves = {leaf.names: leaf for leaf in _strings(snapshot.schema, snapshot.partition_columns)}
    engine = engines.of(spark)
    version = engine.comparator.version
    asked: dict[int, list[tuple[CollatedColumn, str | None, str | None]]] = {}
    unjudged: Counter[str] = Counter()
    for number, text in enumerate(snapshot.stats().to_pylist()):
        for key, sides in documents.as_object(_collated(text)).items():
            name, own = _known(key)
            if name is None or own != version:
                unjudged[f"bounds of {key}, which another engine made"] += 1
                continue
            places = [
                names for side in _SIDES for names, _ in _values(documents.as_object(documents.at(sides, (side,))))
            ]
            wanted = [
                CollatedColumn(leaves[names].column, names, name) for names in dict.fromkeys(places) if names in leaves
            ]
            able, _ = comparable(wanted, engine)
            if len(able) < len(wanted):
                unjudged[
                    f"bounds of {key}, which need a Spark session: spark=mica.session(), or mica check --spark"
                ] += 1
            for leaf in able:
                low, high = (_text(documents.at(sides, (side, *leaf.names))) for side in _SIDES)
                asked.setdefault(number, []).append((leaf, low, high))
    notes = [f"not checked: {why}, in {counted(count, 'file')}" for why, count in unjudged.items()]
    paths = snapshot.files.column("path").to_pylist()
    found, more = _judged(
        snapshot, engine, version, {n: a for n, a in asked.items() if decode_path(paths[n]) not in unread}
    )
    return Compared(found, (*notes, *more))


def _judged(
    snapshot: Snapshot,
    engine: Engine,
    version: str,
    asked: Mapping[int, Sequence[tuple[CollatedColumn, str | None, str | None]]],
) -> tuple[dict[str, list[Found]], list[str]]:
    """Returns the invalid bounds by file, and notes. Files with deleted rows are skipped: reading would include those
    rows."""
    if not asked:
        return {}, []
    parts = parts_of(snapshot.files, of_log=True)
    numbers = list(asked)
    leaves = list(dict.fromkeys(leaf for wanted in asked.values() for leaf, _, _ in wanted))
    try:
        found_bounds = collated_bounds(engine, snapshot.storage, leaves, version, [parts[number] for number in numbers])
        rows = dict(zip(numbers, found_bounds, strict=True))
    except MicaError as e:
        # The violation of the rows is already listed.
        return {}, [f"not checked: collated bounds, because their columns cannot be read: {e.message}"]
    pairs: list[_Pair] = []
    found: dict[str, list[Found]] = {}
    deleted = 0
    for number, wanted in asked.items():
        real = {bounds.leaf: bounds for bounds in rows[number]}
        if parts[number].deletion_vector is not None:
            deleted += 1
            continue
        for leaf, low, high in wanted:
            bounds = real[leaf]
            pairs += [(number, leaf, *pair) for pair in _pairs(bounds, low, high)]
    for (number, leaf, side, bound, real_end), sign in zip(pairs, _signs(engine, pairs), strict=True):
        if (sign < 0) == (side == "minimum") and sign:
            why = f"the {side} by {leaf.collation}.{version} is {_short(bound)}, but a row holds {_short(real_end)}"
            found.setdefault(parts[number].path, []).append(_beyond(leaf, why))
    return found, [f"not checked: collated bounds of {counted(deleted, 'file')} with deleted rows"] if deleted else []


def _pairs(bounds: CollatedBounds, low: str | None, high: str | None) -> Iterator[tuple[str, str, str]]:
    """Yields side, bound and the actual end of the rows on that side, if both are known."""
    for side, bound, end in (("minimum", low, bounds.low), ("maximum", high, bounds.high)):
        if bound is not None and end is not None:
            yield side, bound, end


def _signs(engine: Engine, pairs: Sequence[_Pair]) -> list[int]:
    """Compares each actual end with its bound: -1, 0 or 1; 0 also if the order cannot be trusted."""
    bounds, ends = (arrow_array([pair[place] for pair in pairs], pa.string()) for place in (3, 4))
    names = [
        leaf.sql if trust.decides_ties(leaf.sql, bound) else trust.primary(leaf.sql) for _, leaf, _, bound, _ in pairs
    ]
    found: list[int] = engine.comparator.compared(ends, bounds, names).tolist()
    return found


def _beyond(leaf: CollatedColumn, found: str) -> Found:
    return {"kind": "collated_bound", "path": ".".join(leaf.column), "found": found}


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}…")


def _strings(schema: StructType, partition_columns: Sequence[str]) -> list[CollatedColumn]:
    """Returns the columns that may have collated bounds, under any collation."""
    found = leaves_of(schema, partition_columns)
    return [CollatedColumn(leaf.column, leaf.names, "") for leaf in found if leaf.type == STRING]


def _collated(text: str | None) -> Any:
    return documents.values(text).get(KEY) if text and KEY in text else None


def _known(key: str) -> tuple[str | None, str | None]:
    """Returns the identifier without a version, in Spark's spelling, and the version; None if Spark lacks it."""
    try:
        identifier = parse(key)
    except UserError:
        return None, None
    return _own().get(identifier.at(None).key), identifier.version


@cache
def _own() -> dict[str, str]:
    # Names of other systems do not count as Spark's: their bounds may be in another order.
    return {from_sql(name).key: str(from_sql(name)) for name in all_names()}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
