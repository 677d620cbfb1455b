"""Checks the form of a file's statistics, and collects the bounds to compare with the rows.

The rule: z85 in whole groups of five characters (delta-spark rejects others), an object of normalized paths, one type
on both sides. Any other form is a violation; a bound that is readable anyway is still compared with the rows.

Source: Delta protocol, "Per-file Statistics"; Variant Shredding RFC, "Statistics for Variant Columns"; RFC 9535,
section 2.7.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa

from mica.arrays import arrow_array, scalar
from mica.errors import CorruptDataError
from mica.records import dataclass
from mica.schema.types import VARIANT, StructType
from mica.stats import documents, z85
from mica.stats.columns import IndexedColumn, leaves_of
from mica.stats.paths import Value, read_all
from mica.stats.read import Wanted, read_stats
from mica.tasks.file_columns import Level, Located, locate
from mica.variant import kernel
from mica.variant.path import VariantPath

#: The Arrow type in which rows are compared with a bound of this kind; exact numbers use `_exact`.
_TYPES = {
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}

#: A finding: kind, path, found and perhaps row.
Found = dict[str, Any]


@dataclass(frozen=True)
class Statistics:
    """A file's statistics in the log as JSON; None if it has none. Statistics use physical names in both
    modes of column mapping; if `by_id`, columns of the file are found by id.
    """

    schema: StructType
    partition_columns: tuple[str, ...]
    text: str | None
    by_id: bool = False


@dataclass(frozen=True)
class Bounds:
    """Bounds of one leaf; None if there is none. `request` reads its rows from the kernel."""

    path: str
    request: kernel.Request
    type: pa.DataType
    low: pa.Scalar | None
    high: pa.Scalar | None
    nulls: int | None = None


def spelled(statistics: Statistics, reader: kernel.FileReader, wanted: list[Bounds]) -> Iterator[Found]:
    """Yields errors in the form and wrong counts; readable bounds are added to `wanted`."""
    if statistics.text is None:
        return
    try:
        document = orjson.loads(statistics.text)
    except ValueError as e:
        yield {"kind": "statistics", "path": "stats", "found": f"the statistics are not JSON: {e}"}
        return
    if not isinstance(document, dict):
        yield {"kind": "statistics", "path": "stats", "found": "the statistics are not a JSON object"}
        return
    rows, schema = reader.num_rows, Level(reader.schema)
    said = document.get("numRecords")
    if said is not None and said != rows:
        found = f"numRecords is {said}, the file has {rows} rows"
        yield {"kind": "number_of_rows", "path": "numRecords", "found": found}
    leaves = list(_there(statistics, schema))
    plain = _plain([(leaf, there) for leaf, there in leaves if leaf.type != VARIANT], statistics.text)
    for leaf, there in leaves:
        if leaf.type == VARIANT:
            yield from _variant(leaf, there, document, wanted)
            yield from _variant_nulls(leaf, there, document, reader)
        else:
            wanted += next(plain)


def _there(statistics: Statistics, schema: Level) -> Iterator[tuple[IndexedColumn, Located]]:
    """The leaves with bounds that the file has, and where."""
    for leaf in leaves_of(statistics.schema, statistics.partition_columns):
        try:
            there = locate(schema, statistics.schema, leaf.column, by_id=statistics.by_id)
        except CorruptDataError:  # the name does not identify one column: reading reports that
            continue
        if there is not None and leaf.has_bounds:
            yield leaf, there


def _plain(leaves: Sequence[tuple[IndexedColumn, Located]], text: str) -> Iterator[list[Bounds]]:
    """The bounds of each of the leaves, if it has any. The text is parsed once for all of them."""
    wanted = [Wanted(leaf.names, leaf.type, was_float=leaf.was_float, as_written=True) for leaf, _ in leaves]
    for (leaf, there), found in zip(leaves, read_stats(arrow_array([text]), wanted), strict=True):
        sides = [side[0] if side[0].is_valid else None for side in (found.min, found.max)]
        nulls = found.null_count[0].as_py()
        told = sides != [None, None] or nulls is not None
        column, request = ".".join(leaf.column), kernel.Request(there.names)
        yield [Bounds(column, request, found.min.type, sides[0], sides[1], nulls)] if told else []


def _variant(leaf: IndexedColumn, there: Located, document: dict[str, Any], wanted: list[Bounds]) -> Iterator[Found]:
    column = ".".join(leaf.column)
    sides: list[dict[str, Value | None]] = []
    for side in ("minValues", "maxValues"):
        text = documents.at(document, (side, *leaf.names))
        at = {"path": f"{side}.{column}"}
        data = z85.decode(text) if isinstance(text, str) else None
        if isinstance(text, str) and len(text) % 5:
            yield {"kind": "z85_length", **at, "found": f"the z85 text has {len(text)} characters, not a multiple of 5"}
        elif text is not None and data is None:
            yield {"kind": "z85", **at, "found": "the bounds are not z85 text"}
        if data is not None and kernel.bounds_variants(arrow_array([text])).null_count:
            yield {"kind": "bounds_object", **at, "found": "the bytes are not metadata and an object"}
        sides.append({} if data is None else read_all(text))
    for key in sorted(sides[0].keys() | sides[1].keys()):
        path = f"{column}:{key}"
        low, high = (side.get(key) for side in sides)
        if low is not None and high is not None and low.kind != high.kind:
            found = f"the minimum is of the type {low.kind}, the maximum {high.kind}"
            yield {"kind": "bound_types", "path": path, "found": found}
        elif (any_ := low or high) is None:
            yield {"kind": "bound_types", "path": path, "found": "a bound is truncated or of a type without an order"}
        else:
            try:
                steps = VariantPath.parse_normalized(key).steps
            except CorruptDataError:
                found = f"{key!r} is not a normalized path of RFC 9535"
                yield {"kind": "path_not_normalized", "path": path, "found": found}
                continue
            type_ = _TYPES.get(any_.kind) or _exact(low, high)
            ends = [None if side is None else _scalar(side, type_) for side in (low, high)]
            wanted.append(Bounds(path, kernel.Request(there.names, steps, type_), type_, ends[0], ends[1]))


def _variant_nulls(
    leaf: IndexedColumn, there: Located, document: dict[str, Any], reader: kernel.FileReader
) -> Iterator[Found]:
    """Compares nulls of a Variant column with the footer, if it counts them: deleted rows count on both sides."""
    said, nulls = documents.at(document, ("nullCount", *leaf.names)), footer_nulls(there, reader)
    if said is not None and nulls is not None and said != nulls:
        found = f"nullCount is {said}, the column has {nulls} nulls"
        yield {"kind": "null_count", "path": ".".join(leaf.column), "found": found}


def footer_nulls(there: Located, reader: kernel.FileReader) -> int | None:
    """The nulls of a column by the footer, deleted rows among them; None if it does not count them."""
    counts = reader.bounds([kernel.Request(there.names, name="v")]).column("v").field("null_count").to_pylist()
    return None if None in counts else sum(counts)


def _exact(low: Value | None, high: Value | None) -> pa.DataType:
    """Returns a decimal that holds both bounds and the rows near them: rows are rounded to it before comparing. If none
    holds both, it is DOUBLE, whose rounding keeps the order, too."""
    values = [Decimal(side.value) for side in (low, high) if side is not None]
    scale = max(-int(value.as_tuple().exponent) for value in values)
    digits = max(value.adjusted() + 1 for value in values)
    if scale + digits > 38:
        return pa.float64()
    return pa.decimal128(38, max(scale, min(scale + 9, 38 - max(digits, 19)), 0))


def _scalar(bound: Value, type_: pa.DataType) -> pa.Scalar:
    if bound.kind in ("date", "timestamp", "timestamp_ntz"):
        plain = pa.int32() if bound.kind == "date" else pa.int64()
        return scalar(bound.value, plain).cast(type_)
    if bound.kind == "exact":
        number = Decimal(bound.value)
        return scalar(float(number), type_) if pa.types.is_floating(type_) else scalar(f"{number:f}").cast(type_)
    return scalar(bound.value, type_)
