"""Bare Parquet files: read by the same scan as tables, and rows written to them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from mica import engines
from mica.arguments import OPTIONS, PATH, PATHS, SHREDDING, Mode, one_of, takes
from mica.engines.local import BATCH_ROWS
from mica.errors import UserError
from mica.log.folders import refuse_delta
from mica.log.opened import snapshot_of
from mica.scan.files import FilesSource, early_option
from mica.scan.find import Paths, find
from mica.scan.scan import Scan
from mica.scan.source import Source
from mica.scan.table import TableSource
from mica.schema.arrow import from_arrow, looks_like_variant
from mica.schema.types import STRING, VARIANT, ArrayType, StructField, StructType
from mica.variant.kernel import Layout
from mica.write import flow
from mica.write.bare import LAYOUTS, UNTYPED, Written, bare_spec, open_place, written
from mica.write.given import arrow
from mica.write.rows import source


@takes(paths=PATHS, storage_options=OPTIONS)
def read_parquet(
    paths: Paths,
    columns: Mapping[str, str] | Sequence[str] | None = None,
    where: str | None = None,
    limit: int | None = None,
    ansi: bool = True,
    timezone: str = "UTC",
    storage_options: Mapping[str, str] | None = None,
    early: bool | Sequence[str] | None = None,
) -> Scan:
    """A scan of Parquet files: a path, a pattern, a directory (its `*.parquet` files), or a list of these. A folder is
    read for what it is: that of a Delta table is the table, whose log says which files and rows count.

    Groups that are annotated as Variants are VARIANT columns, shredded or not. So are groups of the early shredding
    layout, which has no annotation: a group is taken for one where `untyped_value` (binary) stands beside `object`,
    `array` or `typed_value`, or where one of the first three stands and everything in it is of that layout. `early`
    says otherwise: False where a plain struct looks alike, or the names of the columns that are (`["v", "s.v"]`), and
    then no others. Errors: NOT_FOUND, INCOMPATIBLE_FILES, INVALID_PARQUET, MALFORMED_SHREDDING, DELTA_TABLE for a
    pattern, a list or a subfolder that would take files out of a table by their names.
    """
    given = early_option(early)
    table = snapshot_of(paths, storage_options)
    source: Source
    if table is not None:
        source = TableSource(table)
    else:
        source = FilesSource(find(paths, storage_options), storage_options, given)
    return Scan(source, where, columns, limit, ansi, timezone)


@takes(path=PATH, shredding=SHREDDING, storage_options=OPTIONS)
def write_parquet(
    data: Any,
    path: str | os.PathLike[str],
    shredding: Any = None,
    storage_options: Mapping[str, str] | None = None,
    layout: Layout = "standard",
    untyped: str = "always",
    mode: Mode | None = None,
) -> Written:
    """Writes rows to Parquet; `data` is what `Table.append` takes. Rows in process to a path that ends in `.parquet` is
    one file, which appears when it is whole; everything else is a directory of files. `shredding` is that of
    `Table.append`; other Variant columns are inferred. A column that `shredding` names is written as a Variant: JSON
    texts are parsed, structs and lists are objects and arrays, a struct with the two fields of a Variant is one.

    `mode` says what becomes of files that are there: `error` refuses, `ignore` writes nothing, `append` adds files to a
    folder, `overwrite` replaces the one file, or the folder's Parquet files once the new ones are written (there is no
    log: a reader in between sees both). Without it a file is replaced, and a folder that holds files is refused.

    `layout` is "standard" (Parquet's VariantShredding.md) or "early": groups of `object`, `array`, `typed_value` and
    `untyped_value`, as Spark's first text on shredding has them. Of early files `untyped="where needed"` leaves
    `untyped_value` out where each of a file's first rows fits; a later row that does not fit fails the write with
    DOES_NOT_FIT. Errors: INVALID_ARGUMENT, FILE_EXISTS, DELTA_TABLE for a Delta table's,
    whose log would not name them.
    """
    text = os.fspath(path)
    if layout not in LAYOUTS:
        raise UserError.bad_value("layout", layout, " or ".join(map(repr, LAYOUTS)))
    if untyped not in UNTYPED or (untyped != UNTYPED[0] and layout != "early"):
        raise UserError.bad_value("untyped", untyped, " or ".join(map(repr, UNTYPED)) + ", the latter of early files")
    if mode is not None:
        one_of("mode", mode, ("append", "error", "ignore", "overwrite"))
    refuse_delta(text, storage_options)
    named = list(shredding) if isinstance(shredding, Mapping) else []
    engine = engines.of(data)
    place = open_place(text, mode, storage_options, single=text.endswith(".parquet") and not engine.owns(data))
    if place is None:
        return Written((), 0, 0)
    rows = data if engine.owns(data) else arrow(data, StructType(tuple(StructField(n, VARIANT) for n in named)))
    schema = _as_meant(from_arrow(engine.schema(rows)), named)
    spec = bare_spec(place.storage, schema, shredding, place.name)
    spec = replace(spec, layout=layout, omit_untyped=untyped != UNTYPED[0])
    if isinstance(rows, pa.Table):
        rows = rows.to_reader(max_chunksize=BATCH_ROWS)  # by one task: names of files say nothing of the order
    facts = flow.write(engine, spec, source(engine, spec, rows))
    place.settle()
    return written(place.storage, facts)


def _as_meant(schema: StructType, named: Sequence[str]) -> StructType:
    """The columns, with those as VARIANT that `shredding` names and that can become one; others that look like
    Variants are reported.
    """
    fields = []
    for f in schema.fields:
        if f.name in named and (f.type == STRING or isinstance(f.type, ArrayType | StructType)):
            fields.append(StructField(f.name, VARIANT, f.nullable))
            continue
        if looks_like_variant(f.type):
            warnings.warn(
                f"the column {f.name!r} has the fields of a Variant and no mark of one: it is written as a struct; "
                f"shredding={{{f.name!r}: None}} writes it as a Variant",
                stacklevel=5,
            )
        fields.append(f)
    return StructType(tuple(fields))
