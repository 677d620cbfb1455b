"""Builds the statistics of an add action from the facts about a written file.

The rule: every bound written holds for every row; a bound that JSON cannot hold exactly or safely is omitted: NaN and
infinities, years beyond 9999, variant paths beyond the limits. Timestamps are truncated to milliseconds, as the
protocol requires. A maximum of -0.0 is written as 0.0: readers that tell the zeros apart (the kernel of delta-rs and
DuckDB) would skip the file for `d = 0`.

If not all variant paths fit, those in the most rows come first, then the order of the schema decides; the property
`mica.variantStats.paths` names them instead, in its order: `v:a.b, s.v:c['d e']`.

Source: Delta protocol, "Per-file Statistics"; Variant Shredding RFC, "Statistics for Variant Columns".
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa

from mica.properties import VARIANT_STATS_BYTES, VARIANT_STATS_NAMES, VARIANT_STATS_PATHS
from mica.records import dataclass
from mica.schema.types import VARIANT, StructType
from mica.stats import documents
from mica.stats.columns import IndexedColumn, indexed_leaves, is_ordered
from mica.stats.named import Named, named_paths
from mica.stats.times import json_date, json_timestamp
from mica.stats.variant import encode_bounds


@dataclass(frozen=True)
class PathBounds:
    """Bounds of one path of a variant column, as the kernel gathered them: encoded primitives of one type."""

    column: tuple[str, ...]
    path: str
    rows: int
    min: bytes
    max: bytes


def stats_json(
    facts: Mapping[str, Any],
    schema: StructType,
    configuration: Mapping[str, str],
    *,
    variant_bounds: bool,
    partition_columns: Iterable[str] = (),
    first: Collection[Named] = (),
) -> str:
    """Returns the statistics of one file as the text of `add.stats`.

    `facts` is what the kernel's FileWriter.close returns: `rows`, `plain` (one row with the structs min, max and
    null_count, by the names in the file) and `paths` (column, path, rows, min, max). `variant_bounds` says whether the
    table's protocol has `variantShredding`; without it a variant column has only a null count. Paths in `first` get
    bounds before all others.
    """
    return stats_of(
        facts["rows"], _first_row(facts["plain"]), read_paths(facts["paths"]), schema, configuration,
        variant_bounds=variant_bounds, partition_columns=partition_columns, first=first,
    )  # fmt: skip


def stats_of(
    rows: int,
    plain: Mapping[str, Any],
    paths: Sequence[PathBounds],
    schema: StructType,
    configuration: Mapping[str, str],
    *,
    variant_bounds: bool,
    partition_columns: Iterable[str] = (),
    first: Collection[Named] = (),
) -> str:
    """As `stats_json`, from values: `plain` has `min`, `max` and `null_count`, each by the names in the file; dates and
    timestamps are days and microseconds."""
    leaves = indexed_leaves(schema, configuration, partition_columns)
    minimum: dict[str, Any] = {}
    maximum: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    for leaf in leaves:
        count = documents.at(plain.get("null_count"), leaf.names)
        if count is not None:
            documents.put(nulls, leaf.names, count)
        if is_ordered(leaf.type):
            for part, target in (("min", minimum), ("max", maximum)):
                bound = _spell(documents.at(plain.get(part), leaf.names), leaf)
                if part == "max" and isinstance(bound, float):
                    bound += 0.0  # -0.0 becomes 0.0
                if bound is not None:
                    documents.put(target, leaf.names, bound)
    document = {"numRecords": rows, "minValues": minimum, "maxValues": maximum, "nullCount": nulls}
    document["tightBounds"] = True
    if variant_bounds:
        used = len(_dumps(document))
        for names, texts in _variant_texts(paths, leaves, configuration, used, first):
            documents.put(minimum, names, texts[0])
            documents.put(maximum, names, texts[1])
    return _dumps(document)


def with_variant_bounds(
    stats: str | None,
    found: Sequence[PathBounds],
    schema: StructType,
    configuration: Mapping[str, str],
    columns: Iterable[tuple[str, ...]],
    *,
    partition_columns: Iterable[str] = (),
) -> str:
    """Replaces the variant bounds of `columns` (names in the file) in the statistics of a file."""
    document = documents.read(stats)
    sides = [dict(documents.as_object(document.get(name))) for name in ("minValues", "maxValues")]
    asked = set(columns)
    for names in asked:
        for side in sides:
            documents.remove(side, names)
    leaves = [x for x in indexed_leaves(schema, configuration, partition_columns) if x.names in asked]
    document |= dict(zip(("minValues", "maxValues"), sides, strict=True))
    used = len(documents.write(document))
    for names, texts in _variant_texts(found, leaves, configuration, used):
        for side, text in zip(sides, texts, strict=True):
            documents.put(side, names, text)
    return documents.write(document)


def read_paths(batch: pa.RecordBatch) -> list[PathBounds]:
    """Converts the kernel's path bounds to values."""
    return [
        PathBounds(tuple(row["column"]), row["path"], row["rows"], bytes(row["min"]), bytes(row["max"]))
        for row in batch.to_pylist()
    ]


def _variant_texts(
    found: Sequence[PathBounds],
    leaves: Sequence[IndexedColumn],
    configuration: Mapping[str, str],
    used: int,
    first: Collection[Named] = (),
) -> Iterable[tuple[tuple[str, ...], tuple[str, str]]]:
    """Returns the z85 texts of the columns that have bounds, within the limits."""
    most_paths, most_bytes = VARIANT_STATS_PATHS.of(configuration), VARIANT_STATS_BYTES.of(configuration)
    places = {leaf.names: leaf.column for leaf in leaves if leaf.type == VARIANT}
    chosen: dict[tuple[str, ...], dict[str, PathBounds]] = {}
    room = most_bytes - used
    for bounds in _ranked([b for b in found if b.column in places], places, configuration, first):
        column = chosen.setdefault(bounds.column, {})
        # Key, ids and offsets once per object; z85 encodes four bytes as five characters; two objects per column.
        cost = (2 * (len(bounds.path.encode()) + 8) + len(bounds.min) + len(bounds.max)) * 5 // 4 + 1
        cost += 0 if column else 60 + 2 * sum(map(len, bounds.column))
        if len(column) < most_paths and cost <= room:
            column[bounds.path] = bounds
            room -= cost
    for names, column in chosen.items():
        if column:
            texts = [encode_bounds({p: getattr(b, part) for p, b in column.items()}) for part in ("min", "max")]
            yield names, (texts[0], texts[1])


def _ranked(
    found: list[PathBounds],
    places: Mapping[tuple[str, ...], tuple[str, ...]],
    configuration: Mapping[str, str],
    first: Collection[Named],
) -> list[PathBounds]:
    wanted = named_paths(VARIANT_STATS_NAMES, configuration)
    by_name = {(tuple(n.lower() for n in places[b.column]), b.path): b for b in found}
    leading = [bounds for key, bounds in by_name.items() if key in first]
    if wanted is None:
        rest = sorted(found, key=lambda b: -b.rows)  # stable: ties stay in the order of the schema
    else:
        rest = [by_name[key] for key in wanted if key in by_name]
    return list({id(bounds): bounds for bounds in (*leading, *rest)}.values())


def _spell(value: Any, leaf: IndexedColumn) -> Any:
    """Converts a bound for JSON; None if JSON cannot hold it. Dates and timestamps come as ints."""
    if value is None:
        return None
    name = getattr(leaf.type, "name", "")
    if name == "date":
        return json_date(value)
    if name in ("timestamp", "timestamp_ntz"):
        return json_timestamp(value, utc=name == "timestamp")
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _first_row(batch: pa.RecordBatch) -> dict[str, Any]:
    """Returns the one row, with dates and timestamps as ints: Python's types end at year 9999."""
    columns = {name: as_numbers(batch.column(i)) for i, name in enumerate(batch.schema.names)}
    return {name: array.to_pylist()[0] for name, array in columns.items()}


def as_numbers(array: pa.Array) -> pa.Array:
    """The values, with dates and timestamps as days and microseconds."""
    if pa.types.is_struct(array.type):
        children = [as_numbers(array.field(i)) for i in range(array.type.num_fields)]
        return pa.StructArray.from_arrays(children, names=[f.name for f in array.type]) if children else array
    if pa.types.is_date32(array.type):
        return array.cast(pa.int32())
    if pa.types.is_timestamp(array.type):
        return array.cast(pa.timestamp("us", array.type.tz), safe=False).cast(pa.int64())
    return array


def _dumps(document: Any) -> str:
    return orjson.dumps(document, default=_decimal).decode()


def _decimal(value: Any) -> Any:
    if isinstance(value, Decimal):
        return orjson.Fragment(f"{value:f}".encode())
    raise TypeError(type(value).__name__)
