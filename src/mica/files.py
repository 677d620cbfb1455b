"""Bare Parquet files: the same scan over them, and rows written to them.

The rule: a file says itself what it holds. Columns are found by name in every file; one that a file lacks is null
there, and one that has another type in another file is an error, never a guess.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mica.arguments import OPTIONS, PATH, PATHS, SHREDDING, takes
from mica.engines import local
from mica.engines.spark import types as spark_types
from mica.errors import StorageError, UserError
from mica.expressions.bind import Bound
from mica.scan import Scan, Source
from mica.schema.arrow import from_arrow, looks_like_variant
from mica.schema.ddl import type_to_ddl
from mica.schema.types import STRING, VARIANT, ArrayType, StructField, StructType, walk
from mica.skipping.collated import Ordering
from mica.skipping.plan import FilePlan
from mica.storage import Storage, patterns, split_scheme
from mica.storage.options import ALLOW_EXTERNAL
from mica.table import Table
from mica.tasks.write import FACTS, WriteSpec, write_files
from mica.variant import kernel
from mica.variant.shredding import Limits, trees_of
from mica.write.given import arrow
from mica.write.rows import on_spark

#: How shredded Variants are laid out, and where early files have `untyped_value`.
LAYOUTS = ("standard", "early")
UNTYPED = ("always", "where needed")

#: Which columns are of the early layout: told by their fields, none, or those at these paths.
Early = bool | list[list[str]]

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


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
    if isinstance(paths, str | os.PathLike) and not os.fspath(paths).endswith(".parquet"):
        found = table_at(os.fspath(paths), storage_options)
        if found is not None:
            return found.scan(where, columns, limit, ansi, timezone)
    source = FilesSource(find(paths, storage_options), storage_options, given)
    return Scan(source, where, columns, limit, ansi, timezone)


def table_at(path: str, options: Mapping[str, str] | None) -> Table | None:
    """The Delta table of which this is the folder; None where it is none."""
    if patterns.is_pattern(path, options):
        return None
    try:
        return Table.open(path, storage_options=options)
    except UserError as e:
        if e.code != "TABLE_NOT_FOUND":
            raise
        return None


def early_option(given: Any) -> Early:
    """The option `early` as the kernel takes it."""
    if given is None or isinstance(given, bool):
        return given is not False
    if isinstance(given, str) or not all(isinstance(name, str) for name in given):
        raise UserError.bad_value("early", given, "False, or a list of column names")
    return [name.split(".") for name in given]


class FilesSource(Source):
    """A list of Parquet files, each opened once for its schema and its number of rows."""

    def __init__(
        self, paths: Sequence[str], storage_options: Mapping[str, str] | None = None, early: Early = True
    ) -> None:
        # Who names files names them wherever they are.
        anywhere = {**(storage_options or {}), ALLOW_EXTERNAL: "true"}
        self.storage = Storage.open(os.path.dirname(paths[0]) or ".", anywhere)  # noqa: PTH120 - may be a URI
        self.name = paths[0] if len(paths) == 1 else f"{len(paths)} Parquet files"
        with ThreadPoolExecutor(min(local.threads(), len(paths))) as threads:
            heads = list(threads.map(partial(_head, self.storage, early=early), paths))
        self.early = early
        self.schema = _one_schema(paths, [from_arrow(head.schema) for head in heads])
        self._files = pa.table(
            {
                "path": pa.array(paths, pa.string()),
                "size": pa.array([head.size for head in heads], pa.int64()),
                "partition_values": pa.nulls(len(paths), pa.map_(pa.string(), pa.string())),
                "deletion_vector": pa.nulls(len(paths)),
                "rows": pa.array([head.rows for head in heads], pa.int64()),
            }
        )

    def plan(self, predicate: Bound | None, ordering: Ordering | None = None) -> FilePlan:  # noqa: ARG002 - files without a log have no bounds to ask
        """All files: only a log has bounds of whole files."""
        every = np.arange(self._files.num_rows)
        return FilePlan(len(every), every, every[:0], every[:0], (), None)

    def all_files(self) -> pa.Table:
        """The files."""
        return self._files

    def files(self, indices: pa.Array) -> pa.Table:
        """The files at `indices`."""
        return self._files.take(indices)

    def rows(self, indices: pa.Array) -> pa.Array:
        """Their numbers of rows, from their footers."""
        return self._files.column("rows").take(indices).combine_chunks()


@dataclass(frozen=True)
class Head:
    """What a file's footer says."""

    schema: pa.Schema
    rows: int
    size: int


def _head(storage: Storage, path: str, early: Early) -> Head:
    place, rel = storage.at(absolute(path))
    size = place.size(rel)
    reader = kernel.open_file(place, rel, size, early=early)
    return Head(reader.schema, reader.num_rows, size)


def _one_schema(paths: Sequence[str], schemas: Sequence[StructType]) -> StructType:
    """The columns of all files in order of first appearance; nullable where a file lacks them."""
    fields: dict[str, StructField] = {}
    origin: dict[str, str] = {}
    for path, schema in zip(paths, schemas, strict=True):
        for f in schema.fields:
            known = fields.get(f.name)
            if known is None:
                fields[f.name], origin[f.name] = f, path
            elif known.type != f.type and all(t == VARIANT or looks_like_variant(t) for t in (known.type, f.type)):
                fields[f.name] = StructField(f.name, VARIANT, known.nullable or f.nullable)
            elif known.type != f.type:
                raise UserError(
                    "INCOMPATIBLE_FILES",
                    f"column {f.name!r} is {type_to_ddl(known.type)} in {origin[f.name]}"
                    f" and {type_to_ddl(f.type)} in {path}",
                    hint="Read the files apart.",
                    column=f.name,
                )
            elif f.nullable:
                fields[f.name] = f
    everywhere = set.intersection(*(set(schema.names) for schema in schemas))
    return StructType(
        tuple(f if name in everywhere else StructField(name, f.type, True, f.metadata) for name, f in fields.items())
    )


@dataclass(frozen=True)
class Written:
    """What was written: the files, and how many rows and bytes they hold."""

    files: tuple[str, ...]
    rows: int
    bytes: int


@takes(path=PATH, shredding=SHREDDING, storage_options=OPTIONS)
def write_parquet(
    data: Any,
    path: str | os.PathLike[str],
    shredding: Any = None,
    storage_options: Mapping[str, str] | None = None,
    layout: str = "standard",
    untyped: str = "always",
) -> Written:
    """Writes rows to Parquet; `data` is what `Table.append` takes. Rows in process to a path that ends in `.parquet` is
    one file, which appears when it is whole and replaces one of that name; everything else is a directory of files,
    which is empty or new. `shredding` is that of `Table.append`; other Variant
    columns are inferred. A column that `shredding` names is written as a Variant: JSON texts are parsed, structs and
    lists are objects and arrays, a struct with the two fields of a Variant is one.

    `layout` is "standard" (Parquet's VariantShredding.md) or "early": groups of `object`, `array`, `typed_value` and
    `untyped_value`, as Spark's first text on shredding has them. Of early files `untyped="where needed"` leaves
    `untyped_value` out where each of a file's first rows fits; a later row that does not fit fails the write with
    DOES_NOT_FIT. Errors: INVALID_ARGUMENT, FILE_EXISTS for a folder that holds files, DELTA_TABLE for a Delta table's,
    whose log would not name them.
    """
    text = os.fspath(path)
    if layout not in LAYOUTS:
        raise UserError.bad_value("layout", layout, " or ".join(map(repr, LAYOUTS)))
    if untyped not in UNTYPED or (untyped != UNTYPED[0] and layout != "early"):
        raise UserError.bad_value("untyped", untyped, " or ".join(map(repr, UNTYPED)) + ", the latter of early files")
    refuse_delta(text, storage_options)
    named = list(shredding) if isinstance(shredding, Mapping) else []
    if spark_types.is_frame(data):
        schema = _as_meant(spark_types.from_spark(data.schema), named)
        spec = bare_spec(empty_folder(text, storage_options), schema, shredding)
        spec = replace(spec, layout=layout, omit_untyped=untyped != UNTYPED[0])
        return _written(spec.storage, on_spark(spec, data))
    source = arrow(data, StructType(tuple(StructField(name, VARIANT) for name in named)))
    schema = _as_meant(from_arrow(source.schema), named)
    single = text.endswith(".parquet")
    folder = (os.path.dirname(text) or ".") if single else text  # noqa: PTH120 - may be a URI
    place = Storage.open(folder, storage_options) if single else empty_folder(folder, storage_options)
    spec = bare_spec(place, schema, shredding, os.path.basename(text) if single else None)  # noqa: PTH119
    spec = replace(spec, layout=layout, omit_untyped=untyped != UNTYPED[0])
    batches = source if isinstance(source, pa.RecordBatchReader) else source.to_batches(max_chunksize=16_384)
    return _written(place, pa.Table.from_batches(write_files(spec, batches), FACTS))


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


def empty_folder(path: str, options: Mapping[str, str] | None) -> Storage:
    """The folder of that path. Errors: FILE_EXISTS where it holds files: nobody could tell them from the new ones."""
    storage = Storage.open(path, options)
    if next(iter(storage.list()), None) is not None:
        raise UserError("FILE_EXISTS", f"{path!r} holds files", hint="Name a folder that is empty or new.", path=path)
    return storage


def refuse_delta(path: str, options: Mapping[str, str] | None) -> None:
    """A Delta table's directory, or one below it, is no place for files that its log does not name."""
    table = _table_above(path, options)
    if table is not None:
        raise UserError(
            "DELTA_TABLE",
            f"{path} lies in the Delta table {table}, whose log would not name the file",
            hint="Append the rows to the table (mica.Table.open(…).append), or write elsewhere.",
            path=path,
        )


def _table_above(path: str, options: Mapping[str, str] | None) -> str | None:
    """The Delta table in whose folder, or below it, a path lies."""
    scheme, rest = split_scheme(path)
    if _is_local(path):
        at = os.path.abspath(path if scheme is None else "/" + rest.lstrip("/"))  # noqa: PTH100
        while at != "/" and not os.path.isdir(os.path.join(at, "_delta_log")):  # noqa: PTH112, PTH118
            at = os.path.dirname(at)  # noqa: PTH120
        return at if at != "/" else None
    at = rest.strip("/")
    while at:
        if next(iter(Storage.open(f"{scheme}://{at}/_delta_log", options).list()), None) is not None:
            return f"{scheme}://{at}"
        at = at.rpartition("/")[0]
    return None


def bare_spec(storage: Storage, schema: StructType, shredding: Any, name: str | None = None) -> WriteSpec:
    """How bare files of these columns are written; `name` is that of the one file, where there is to be one."""
    variants = tuple(at for at, f in walk(schema) if f.type == VARIANT)
    return WriteSpec(
        storage=storage,
        schema=schema,
        variants=variants,
        trees=trees_of(shredding, variants),
        limits=Limits().to_kernel(),
        name=name,
        target_file_size=(1 << 62) if name else (128 << 20),
    )


def _written(storage: Storage, facts: pa.Table) -> Written:
    adds = facts.filter(pc.equal(facts.column("kind"), "add"))
    return Written(
        files=tuple(storage.path(rel) for rel in adds.column("path").to_pylist()),
        rows=pc.sum(adds.column("rows")).as_py() or 0,
        bytes=pc.sum(adds.column("bytes")).as_py() or 0,
    )


def inspect_file(path: str, storage_options: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """The shredding tree of a file, parents first: column, path, type, rows and bytes that are typed or residual."""
    head, slash, rel = path.rpartition("/")
    place = Storage.open(head or slash or ".", storage_options)
    if not rel or (place.local_path is not None and os.path.isdir(place.path(rel))):  # noqa: PTH112
        below = find(path, storage_options, whatever_counts=True)
        raise StorageError(
            "IS_A_DIRECTORY",
            f"{path} is a directory of {len(below)} Parquet files, and one file can be inspected",
            hint=f"Name one of them, such as {below[0]}.",
            path=path,
        )
    reader = kernel.open_file(place, rel, early=True)
    rows: list[dict[str, Any]] = reader.inspect().to_pylist()
    return [{**row, "type": _NAMES.get(row["type"], row["type"].lower())} for row in rows]


#: Arrow's names of leaf types, as SQL has them.
_NAMES = {
    "Utf8": "string", "Int8": "tinyint", "Int16": "smallint", "Int32": "int", "Int64": "bigint", "Float32": "float",
    "Float64": "double", "Date32": "date", "Boolean": "boolean", "Binary": "binary",
}  # fmt: skip


def find(paths: Paths, storage_options: Mapping[str, str] | None = None, *, whatever_counts: bool = False) -> list[str]:
    """The files of paths, patterns and directories, absolute. Who looks at bytes alone (`whatever_counts`) may take
    those of a table by their names. Errors: NOT_FOUND, DELTA_TABLE."""
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    found: list[str] = []
    for path in [os.fspath(p) for p in given]:
        files = _files_of(path, storage_options, whatever_counts)
        if not files:
            raise StorageError("NOT_FOUND", f"no Parquet file is at {path!r}", hint="Check the path.", path=path)
        found += files
    if not found:
        raise UserError("NO_INPUT", "no file was named")
    return [absolute(path) for path in found]


def _files_of(path: str, options: Mapping[str, str] | None, whatever_counts: bool) -> list[str]:
    scheme, rest = split_scheme(path)
    if patterns.is_pattern(path, options):
        files = [storage.path(entry.path) for storage, entry in patterns.matching(path, options)]
        if not whatever_counts:
            _refuse_tables(path, patterns.fixed_part(path), files, options)
        return files
    local_path = path if scheme is None else "/" + rest.lstrip("/")
    if _is_local(path) and not os.path.isdir(local_path):  # noqa: PTH112
        return [local_path]
    if not _is_local(path) and path.endswith(".parquet"):
        return [path]
    files = _below(Storage.open(path, options))
    if not whatever_counts:
        _refuse_tables(path, path, files, options)
    return files


def _refuse_tables(asked: str, below: str, files: Sequence[str], options: Mapping[str, str] | None) -> None:
    """Names of files do not say which files of a table count, nor which rows: a table is read by its log."""
    for folder in dict.fromkeys(map(os.path.dirname, files)) if _is_local(below) else [below]:
        table = _table_above(folder, options) or (None if _is_local(below) else _table_below(folder, files, options))
        if table is not None:
            raise UserError(
                "DELTA_TABLE",
                f"{asked} takes files out of the Delta table {table}, whose log says which of them count",
                hint=f"Read the table: mica.Table.open({table!r}).scan(). Files that are named one by one are read.",
                path=table,
            )


def _is_local(path: str) -> bool:
    return split_scheme(path)[0] in (None, "file")


def _table_below(folder: str, files: Sequence[str], options: Mapping[str, str] | None) -> str | None:
    """The Delta table below a folder of an object store in which one of the files lies: found by one listing."""
    storage = Storage.open(folder, options)
    logs = (entry.path for entry in storage.list() if "/_delta_log/" in entry.path)
    for table in dict.fromkeys(storage.path(log.rpartition("/_delta_log/")[0]) for log in logs):
        if any(file.startswith(f"{table}/") for file in files):
            return table
    return None


def _below(storage: Storage) -> list[str]:
    """The `*.parquet` files of a directory; names that begin with `_` or `.` are not data, as for Spark."""
    return [
        storage.path(entry.path)
        for entry in storage.list()
        if entry.path.endswith(".parquet") and not any(part[0] in "_." for part in entry.path.split("/") if part)
    ]


def absolute(path: str) -> str:
    """A local path made absolute; a URI as it is."""
    return path if split_scheme(path)[0] is not None else os.path.abspath(path)  # noqa: PTH100
