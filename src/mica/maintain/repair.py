"""Repair: rewrites faulty files so that they obey the formats, with the same rows.

The rule: a repair reads as mica always reads, lenient if the meaning is clear and strict otherwise, so the new files
hold what readers of mica saw before. Nothing is changed in place: a file is rewritten as another file, and a table gets
one commit that removes faulty files and adds the new ones. New files are checked before the commit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

import pyarrow as pa

from mica import engines
from mica.checking.check import check, check_files, check_table
from mica.checking.report import Report
from mica.errors import CorruptDataError, UserError
from mica.log.folders import refuse_delta
from mica.log.opened import Opened, snapshot_of
from mica.log.snapshot import Snapshot
from mica.records import dataclass
from mica.scan.find import find
from mica.scan.scan import Scan
from mica.scan.table import TableSource
from mica.schema.arrow import is_list, is_variant, with_leaves
from mica.storage import Storage, Writer
from mica.tasks.parts import in_tasks
from mica.tasks.rewrite import RewriteSpec, rewrite_files
from mica.variant import kernel
from mica.variant.shredding import Limits
from mica.write import flow
from mica.write.facts import Facts
from mica.write.target import target_of

#: Keys of the footer that are not true of the new file: it gets its own Arrow schema, and what is read of the calendar
#: of old Sparks is by today's (the kernel's `legacy`).
_OTHERS = {
    "ARROW:schema",
    "org.apache.spark.legacyDateTime",
    "org.apache.spark.legacyINT96",
    "org.apache.spark.timeZone",
}
#: Metadata of a field that is annotated in Parquet as no Arrow type is.
_ANNOTATION = b"PARQUET:annotation"
#: The key of Spark's version. Of files by older ones than this all is taken to be by the old calendar.
_SPARK, _TODAYS = "org.apache.spark.version", "3.1.0"


@dataclass(frozen=True)
class Repair:
    """The result of a repair: the written files, their rows, and the committed version of a table."""

    files: tuple[str, ...]
    rows: int
    version: int | None
    #: The violations before the repair.
    report: Report


def repair(
    source: str | os.PathLike[str] | Opened,
    target: str | os.PathLike[str] | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
) -> Repair:
    """Rewrites a Parquet file to `target`, or the faulty files of a table in one commit (`dataChange` is false).

    Variant columns keep their layout and shredding schema. A table without faulty files gets no commit. Errors: those
    of reading for ambiguous values (MALFORMED_SHREDDING, …), UNSUPPORTED_TYPE for a column of intervals or geometries,
    FILE_EXISTS, REPAIR_FAILED if a new file still breaks a rule, INVALID_ARGUMENT for files without a target. Nothing
    is changed then.
    """
    snapshot = snapshot_of(source, storage_options)
    if snapshot is None:
        if target is None:
            hint = "Name the file to write. A table has its log in the folder _delta_log."
            raise UserError("INVALID_ARGUMENT", "the repair of a file needs a target", hint=hint)
        assert not isinstance(source, Opened)
        return _file(os.fspath(source), os.fspath(target), storage_options)
    if target is not None:
        raise UserError("INVALID_ARGUMENT", "a table is repaired without a target", hint="Leave the target out.")
    done = _table(snapshot)
    if isinstance(source, Opened) and done.version is not None:
        source.refresh()
    return done


def _file(source: str, target: str, options: Mapping[str, str] | None) -> Repair:
    found = find(source, options, whatever_counts=True)
    if len(found) > 1:
        raise UserError("INVALID_ARGUMENT", f"{source!r} is more than one file", hint="Repair one file at a time.")
    refuse_delta(target, options)
    [(place, entry)] = found
    report = check(source, storage_options=options)
    _refuse_hidden(report, lambda _: kernel.open_file(place, entry.path, entry.size))
    out, name = Storage.open(os.path.dirname(target) or ".", options), os.path.basename(target)  # noqa: PTH119, PTH120
    if any(entry.path == name for entry in out.list(recursive=False)):
        raise UserError("FILE_EXISTS", f"{target!r} exists", hint="Name a file that does not.", path=target)
    bare = {v.path for v in report if v.kind == "missing_annotation"}
    named = _named(kernel.open_file(place, entry.path, entry.size, early=True).schema) if bare else ()
    unmarked = [names for names, path in named if path in bare]
    reader = kernel.open_file(place, entry.path, entry.size, variants=unmarked, early=True)
    with out.writer(name) as upload:
        rows = _rewrite(reader, upload)
    left = check(out.path(name), storage_options=options)
    if not left.ok:
        out.delete(name)
        raise _failed(target, left)
    return Repair((out.path(name),), rows, None, report)


def _rewrite(reader: kernel.FileReader, upload: Writer) -> int:
    """Reads all rows and writes them; returns their number."""
    schema: pa.Schema = reader.schema
    trees: dict[bool, dict[tuple[str, ...], pa.DataType]] = {False: {}, True: {}}
    inferred = []
    for names in _variants(schema):
        found = reader.tree(names)
        if found is None:
            inferred.append(names)
        elif found[0] != pa.null():
            trees[found[1]][names] = found[0]
    items = [kernel.Request((name,), name=name) for name in schema.names]
    pairs = reader.key_value_metadata.items()
    kept = {key: value for key, value in pairs if key not in _OTHERS and value is not None}
    if kept.get(_SPARK, _TODAYS) < _TODAYS:
        del kept[_SPARK]
    # Refuses a type that cannot be written before there is a batch of it: Python has no arrays of Parquet's INTERVAL.
    said = reader.annotations()
    empty = kernel.FileWriter(_annotated(schema, iter(said)), key_value_metadata=kept)
    writer, rows = None, 0
    for batch in reader.scan(items, max_rows=8192):
        exact = pa.RecordBatch.from_arrays(batch.columns, schema=_as_nullable_as(schema, batch.schema))
        if writer is None:
            trees[False] |= {names: kernel.infer(exact, names, Limits()).tree for names in inferred}
        piece = kernel.shred(kernel.shred(exact, trees[False]), trees[True], early=True)
        if writer is None:
            writer = kernel.FileWriter(_annotated(piece.schema, iter(said)), key_value_metadata=kept)
        writer.write(piece)
        upload.write(writer.take_bytes())
        rows += batch.num_rows
    writer = empty if writer is None else writer
    writer.close()
    upload.write(writer.take_bytes())
    return rows


def _annotated(schema: pa.Schema, said: Iterator[str | None]) -> pa.Schema:
    """The schema whose leaves outside of Variants are annotated in the new file as in the old one."""

    def of(f: pa.Field) -> pa.Field:
        found = None if is_variant(f) else next(said)
        return f if found is None else f.with_metadata({**(f.metadata or {}), _ANNOTATION: found})

    return pa.schema([with_leaves(f, of, is_variant) for f in schema])


def _as_nullable_as(original: pa.Schema, read: pa.Schema) -> pa.Schema:
    """The schema `read`, with fields required where the original has them required; a scan reads all as nullable."""
    return pa.schema([f.with_nullable(o.nullable) for f, o in zip(read, original, strict=True)])


def _named(schema: pa.Schema) -> Iterator[tuple[tuple[str, ...], str]]:
    """The groups of a file: by their names and as a report has them, in one text, whose dots may be those of names."""
    work: list[tuple[tuple[str, ...], str, pa.Field]] = [((f.name,), f.name, f) for f in schema]
    for names, path, f in work:
        inner: list[tuple[str, str, pa.Field]] = []
        if pa.types.is_struct(f.type):
            yield names, path
            inner = [(child.name, child.name, child) for child in f.type]
        elif is_list(f.type):
            inner = [("element", "list.element", f.type.value_field)]
        elif pa.types.is_map(f.type):
            inner = [("key", "key_value.key", f.type.key_field), ("value", "key_value.value", f.type.item_field)]
        work += [((*names, name), f"{path}.{text}", child) for name, text, child in inner]


def _variants(schema: pa.Schema) -> Iterator[tuple[str, ...]]:
    """The Variant columns by their paths through structs."""
    work: list[tuple[tuple[str, ...], pa.Field]] = [((f.name,), f) for f in schema]
    for names, f in work:
        if is_variant(f):
            yield names
        elif pa.types.is_struct(f.type):
            work += [((*names, child.name), child) for child in f.type]


def _table(snapshot: Snapshot) -> Repair:
    report = check_table(snapshot)
    _refuse_hidden(report, lambda path: kernel.open_file(*snapshot.storage.locate(path)))
    faulty = set(report.faulty)
    source = TableSource(snapshot)
    chosen = [part for part in source.rewritten() if part.path in faulty]
    if not chosen:
        return Repair((), 0, None, report)
    target = target_of(snapshot)
    target.operation, target.parameters, target.data_change = "REPAIR", {"files": len(chosen)}, False
    scan = Scan(source)
    reading, spec = scan.rewriting(), target.rewriting_spec(target.write_spec(), scan.timezone)

    def checked(facts: Facts) -> None:
        left = check_files(snapshot, facts.names, facts.files.column("stats").to_pylist())
        if not left.ok:
            raise _failed(str(snapshot.storage), left)

    engine = engines.of()
    rows = flow.FromTasks(
        lambda spec: partial(rewrite_files, RewriteSpec(reading, spec)), in_tasks(chosen, engine.parallelism)
    )
    commit, facts = flow.commit(engine, target, replace(spec, target_file_size=1 << 62), rows, inspect=checked)
    return Repair(tuple(facts.names), facts.rows, commit.version, report)


def _refuse_hidden(report: Report, opened: Callable[[str], kernel.FileReader]) -> None:
    """Refuses a file whose footer says that a residual holds nothing, which it does: it is not read
    (`parquet/projection.rs`), and the new file would lack what it holds for good.
    """
    for found in report:
        if found.kind != "footer_null_count" or found.path.rpartition(".")[2] not in ("value", "untyped_value"):
            continue
        if found.path not in opened(found.file).held_leaves()[found.row_group or 0]:
            raise CorruptDataError(
                "CORRUPT_FILE",
                f"{found.file}: of {found.path} {found.found}, so values that are there are not read",
                hint="Restore the file from a copy. Nothing was changed.",
                path=found.file,
            )


def _failed(what: str, left: Report) -> CorruptDataError:
    first = next(iter(left))
    return CorruptDataError(
        "REPAIR_FAILED",
        f"{what} still breaks a rule after the rewrite: {first.kind} at {first.path}: {first.found}",
        hint="Nothing was changed. This is a bug in mica: please report it with the file.",
        rule=first.rule,
    )
