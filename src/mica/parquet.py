"""Reads and writes Parquet files that are not in a Delta table, by the same scans and writers as tables.

The rule: what writes is imported when it is called, as by `Table`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mica import engines
from mica.arguments import NAMES, OPTIONS, PATH, PATHS, SHREDDING, Mode, one_of, takes
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
from mica.schema.named import find as find_column
from mica.schema.types import STRING, VARIANT, ArrayType, StructField, StructType
from mica.variant.kernel import Layout

if TYPE_CHECKING:
    from mica.write.bare import Written


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
    """Returns a scan of Parquet files. `paths` is a path, a pattern, a directory (its `*.parquet` files) or a list of
    these. The folder of a Delta table is read as the table: its log says which files and rows are current. Directories
    below a folder, or below the part of a pattern before its first `*`, that are named `column=value` are partition
    columns (`scan.hive`): predicates on them skip files before they are opened. Columns and fields that some files lack
    are null there; types that differ otherwise are an error.

    Groups that are annotated as Variants are VARIANT columns, shredded or not, and so are those that Spark's schema in
    the footer calls Variants; strings have the collations that it says. Groups of the early shredding layout
    have no annotation; a group is taken as one if it has `untyped_value` (binary) and one of `object`, `array` and
    `typed_value`, or if it has `untyped_value`, `object` or `array` and all its content is of that layout. `early`
    overrides this: False if a plain struct looks like one, or the names of all early columns (`["v", "s.v"]`).

    Errors: NOT_FOUND, UNKNOWN_COLUMN for an early column that no file has, INCOMPATIBLE_FILES, CORRUPT_FILE,
    MALFORMED_SHREDDING; DELTA_TABLE for a pattern, a list or a subfolder that selects files of a Delta table by name.
    """
    given = early_option(early)
    table = snapshot_of(paths, storage_options)
    source: Source
    if table is not None:
        source = TableSource(table)
    else:
        source = FilesSource(find(paths, storage_options), storage_options, given)
    return Scan(source, where, columns, limit, ansi, timezone)


@takes(path=PATH, shredding=SHREDDING, storage_options=OPTIONS, partition_by=NAMES)
def write_parquet(
    data: Any,
    path: str | os.PathLike[str],
    shredding: Any = None,
    storage_options: Mapping[str, str] | None = None,
    layout: Layout = "standard",
    untyped: str = "always",
    mode: Mode | None = None,
    partition_by: Sequence[str] = (),
) -> Written:
    """Writes rows to Parquet; `data` is what `Table.append` accepts. Without Spark, a path that ends in `.parquet`
    becomes one file, which appears when it is complete; everything else is written as a directory of files.

    `shredding` is as in `Table.append`; schemas of other Variant columns are inferred. A column that `shredding` names
    is written as a Variant: JSON texts are parsed, structs and lists become objects and arrays, and a struct with the
    two fields of a Variant is taken as one.

    `mode` says what to do with existing files: `error` refuses, `ignore` writes nothing, `append` adds files to a
    folder, `overwrite` replaces the one file, or the folder's Parquet files after the new ones are written (there is no
    log: a reader in between sees both). Without `mode` a file is replaced, and a folder that holds files is refused.

    The rows of each combination of `partition_by` values are in a directory of their own, `kind=post/`, as Hive and
    Spark name them; the files lack these columns, and `read_parquet` of the folder has them. Without a row there is one
    file, with the columns, but no partition.

    `layout` is "standard" (Parquet's VariantShredding.md) or "early": groups of `object`, `array`, `typed_value` and
    `untyped_value`, as in Spark's first text on shredding. For early files, `untyped="where needed"` omits
    `untyped_value` where all first rows of a file fit; a later row that does not fit fails with DOES_NOT_FIT.

    Errors: INVALID_ARGUMENT, INVALID_PARTITION_COLUMN, FILE_EXISTS; DELTA_TABLE for the folder of a Delta table, whose
    log would not name the new files.
    """
    from mica.write import bare
    from mica.write.bare import LAYOUTS, UNTYPED, Written, bare_spec, open_place, written
    from mica.write.given import arrow
    from mica.write.rows import source

    text = os.fspath(path)
    one_of("layout", layout, LAYOUTS)
    if untyped not in UNTYPED or (untyped != UNTYPED[0] and layout != "early"):
        raise UserError.bad_value("untyped", untyped, " or ".join(map(repr, UNTYPED)) + " (early layout only)")
    if partition_by and text.endswith(".parquet"):
        raise UserError.bad_value("path", text, "a folder, since partition_by writes directories")
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
    spec = bare_spec(place.storage, schema, shredding, place.name, partition_by)
    as_asked = replace(spec.shredding, layout=layout, omit_untyped=untyped != UNTYPED[0])
    spec = replace(spec, shredding=as_asked)
    if isinstance(rows, pa.Table):
        rows = rows.to_reader(max_chunksize=BATCH_ROWS)  # one task, since file names do not keep the order of rows
    facts = bare.write(engine, spec, source(engine, spec, rows))
    place.settle()
    return written(place.storage, facts)


def _as_meant(schema: StructType, named: Sequence[str]) -> StructType:
    """The columns, with those that `shredding` names as VARIANT if they can become one. Warns about others that look
    like Variants.
    """
    fields, wanted = [], {find_column(name, [(f.name,) for f in schema.fields]) for name in named}
    for f in schema.fields:
        if (f.name,) in wanted and (f.type == STRING or isinstance(f.type, ArrayType | StructType)):
            fields.append(StructField(f.name, VARIANT, f.nullable))
            continue
        if looks_like_variant(f.type):
            warnings.warn(
                f"the column {f.name!r} has the fields of a Variant but is not marked as one: written as a struct; "
                f"shredding={{{f.name!r}: None}} writes it as a Variant",
                stacklevel=5,
            )
        fields.append(f)
    return StructType(tuple(fields))
