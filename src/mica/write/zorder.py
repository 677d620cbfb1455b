"""Optimize along a curve: the rows of each partition are put in an order in which neighbours are alike in several
columns or Variant paths, so that predicates on any of them skip files.

The rule: rows stay the same, and all files of the chosen partitions are rewritten. A small job samples the values; the
engine then moves each row to its file and sorts there, on Spark by a shuffle, in process on local disk, so memory stays
flat. The paths of the order get bounds before all others.

Source: operation, parameters and metrics as delta-spark's OPTIMIZE ZORDER BY has them; the curve is Hilbert's
(`tasks/curve.py`).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from mica.arrays import to_numpy
from mica.engines.base import Engine, MadeRows, Order
from mica.errors import UserError
from mica.expressions.bind import BoundExpr, bind_value
from mica.expressions.parse import parse
from mica.expressions.tree import Cast, Column, Path
from mica.scan.scan import Scan
from mica.scan.table import TableSource
from mica.schema.ddl import type_to_ddl
from mica.schema.spelling import quote_if_needed
from mica.schema.types import LONG, VARIANT, ArrayType, MapType, StructField, StructType
from mica.stats.named import Named
from mica.tasks import ranges
from mica.tasks.curve import (
    VARIANT_PARTS,
    Curve,
    CurveSpec,
    Dimension,
    KeysSpec,
    bits_for,
    curve_rows,
    sample,
)
from mica.tasks.packed import PACKED, collected
from mica.tasks.parts import FilePart, in_tasks
from mica.tasks.write import WriteSpec
from mica.write import flow

#: About how much larger rows are in memory than in a file.
IN_MEMORY = 5


def ordered(
    engine: Engine, scan: Scan, files: Sequence[FilePart], texts: Sequence[str], write: WriteSpec
) -> tuple[flow.RowSource, WriteSpec] | None:
    """The rows of the files in the order of the curve, and the spec to write them; None if there are no rows."""
    schema, partitions = scan.source.schema, scan.source.partition_by
    outputs, dimensions, bounded = _dimensions(texts, schema, partitions)
    total = sum(file.size or 0 for file in files)
    inputs = in_tasks(files, engine.parallelism)
    columns = dict(scan.rewriting().outputs)
    named = {name: columns[name] for name in partitions}
    looked = KeysSpec(replace(scan.spec(), outputs={**named, **outputs}), partitions, dimensions, total)
    found = collected(engine.run(partial(sample, looked), inputs, PACKED))
    if found is None:
        return None
    _tell_of_absent(scan, found.columns[len(partitions) : -1], texts, dimensions, outputs)
    sampled, curve = _curve(found, len(partitions), dimensions)
    ids = (StructField(name, LONG) for name in scan.source.kept_ids)
    written = StructType((*schema.fields, *ids))
    spec = CurveSpec(replace(scan.spec(), outputs={**columns, **outputs}), written, curve)
    count = max(1, round(total / write.target_file_size))
    rows = MadeRows(
        task=partial(curve_rows, spec),
        inputs=inputs,
        schema=spec.rows,
        size=total * IN_MEMORY,
        files=count,
        sampled=sampled,
    )
    order = Order(partitions, tuple((name, False) for name, _ in spec.keys))
    # A range that is a little larger than planned is not cut into a file and a rest.
    changed = replace(write, bounded=bounded, target_file_size=write.target_file_size * 3 // 2)
    return flow.FromRows(rows, order), changed


def _tell_of_absent(
    scan: Scan,
    keys: list[pa.ChunkedArray],
    texts: Sequence[str],
    dimensions: tuple[Dimension, ...],
    outputs: Mapping[str, BoundExpr],
) -> None:
    """Warns of a path that no row has, by which nothing is ordered; only what the sample lacks is looked for."""
    for text, dimension in zip(texts, dimensions, strict=True):
        width = len(VARIANT_PARTS) if dimension.variant else 1
        own, keys = keys[:width], keys[width:]
        leaf = outputs[dimension.columns[0]].leaves[0]
        if leaf.path is None or not leaf.path.steps or any(key.null_count < len(key) for key in own):
            continue
        if Scan(scan.source, f"{leaf.name} IS NOT NULL", {"found": leaf.name}, 1).to_arrow().num_rows:
            continue
        near = scan.source.nearest_path(leaf, 0) if isinstance(scan.source, TableSource) else None
        hint = "" if near is None else f"; the nearest path with bounds is {near}"
        warnings.warn(f"zorder_by names {text}, a path that no row of {scan.source.name} has{hint}", stacklevel=2)


def _curve(found: pa.Table, partitions: int, dimensions: tuple[Dimension, ...]) -> tuple[pa.Table, Curve]:
    """The ranges of each dimension by the sample, and the sample in the order of the curve: partition values, keys."""
    *columns, counts = (column.combine_chunks() for column in found.columns)
    weights = to_numpy(counts)
    keys, at = [], partitions
    for dimension in dimensions:
        width = len(VARIANT_PARTS) if dimension.variant else 1
        keys.append(columns[at : at + width])
        at += width
    bits = bits_for(len(dimensions))
    cut = []
    for own in keys:
        planned = ranges.plan(ranges.weighted(own, weights), 1 << bits, [False] * len(own))
        assert planned is not None
        cut.append(planned)
    curve = Curve(dimensions, tuple(cut))
    more = keys[0] if len(dimensions) == 1 else []
    return ranges.weighted([*columns[:partitions], curve.places(keys), *more], weights), curve


def _dimensions(
    texts: Sequence[str], schema: StructType, partitions: Sequence[str]
) -> tuple[dict[str, BoundExpr], tuple[Dimension, ...], frozenset[Named]]:
    """What is read for the columns and paths, and the paths among them."""
    outputs: dict[str, BoundExpr] = {}
    dimensions, bounded = [], set()
    options: dict[str, Any] = {"ansi": False, "timezone": "UTC", "partition_columns": partitions}
    for number, text in enumerate(texts):
        same = [name for name in schema.names if name.lower() == text.lower()]
        asked = quote_if_needed(same[0]) if same else text
        bound = bind_value(asked, schema, **options)
        if all(leaf.partition for leaf in bound.leaves):
            raise UserError(
                "INVALID_PARTITION_COLUMN",
                f"zorder_by names {text!r}, which is a partition column: files hold one value of it anyway",
                hint="Order by other columns.",
                column=text,
            )
        if isinstance(bound.type, StructType | ArrayType | MapType):
            raise UserError(
                "TYPE_MISMATCH",
                f"rows have no order by {text!r}, which is {type_to_ddl(bound.type)}",
                hint="Name a column or path of a plain type, such as a field of it.",
                column=text,
            )
        for leaf in bound.leaves:
            if leaf.path is not None:
                bounded.add((tuple(name.lower() for name in leaf.column), leaf.path.normalized))
        if bound.type == VARIANT:
            parts = {f"__mica_{number}_{name}": form.format(f"({asked})") for name, form in VARIANT_PARTS}
            outputs |= {name: bind_value(part, schema, **options) for name, part in parts.items()}
            dimensions.append(Dimension(tuple(parts), variant=True))
        else:
            outputs[f"__mica_{number}"] = _tolerant(asked, schema, options)
            dimensions.append(Dimension((f"__mica_{number}",), collation=dict(bound.collations).get("")))
    return outputs, tuple(dimensions), frozenset(bounded)


def _tolerant(text: str, schema: StructType, options: dict[str, Any]) -> BoundExpr:
    """The expression; values that a cast of a path cannot take are null instead of an error."""
    found = parse(text)
    if isinstance(found, Cast) and isinstance(found.child, Path | Column):
        found = replace(found, strict=False)
    return bind_value(found, schema, **options)


def unique(texts: Sequence[str]) -> list[str]:
    """The columns of an order. Errors: INVALID_ARGUMENT for none, more than 16, or one given twice."""
    # Keys of a Variant differ in case, names of columns do not.
    named = {(column.lower(), path) for column, _, path in (text.partition(":") for text in texts)}
    if not texts or len(texts) > 16 or len(named) < len(texts):
        raise UserError.bad_value("zorder_by", list(texts), "1 to 16 distinct columns or paths")
    return list(texts)
