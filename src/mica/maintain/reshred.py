"""Reshred: the Variants of existing files get another shredding schema.

The rule: values stay the same. A file that has the wanted schema already is not rewritten; the others are, one by one,
and the commit changes no data (`dataChange` is false). Without a given schema one is inferred from a sample of the rows
of all files, so that it fits today's data rather than the first rows of each file.

Source: delta-variant-shredding.md, "Writer Requirements for Variant Shredding".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mica import engines
from mica.engines.base import Engine, Task
from mica.errors import UserError
from mica.expressions.bind import bind_value
from mica.expressions.tree import Column
from mica.log.snapshot import Snapshot
from mica.scan.scan import Scan
from mica.scan.table import TableSource
from mica.tasks.packed import PACKED, collected
from mica.tasks.parts import FilePart, in_tasks
from mica.tasks.reshred import ReshredSpec, VariantsSpec, reshred_files, sample
from mica.tasks.write import WriteSpec
from mica.variant import kernel
from mica.variant.shredding import ShreddingSchema
from mica.variant.wanted import ShreddingWishes
from mica.write import compact, flow
from mica.write.commit import Commit
from mica.write.facts import Facts
from mica.write.once import Txn, once
from mica.write.target import Target, files_in, target_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Trees = dict[tuple[str, ...], pa.DataType]


def reshred(
    snapshot: Snapshot, schema: Any, where: str | None, spark: SparkSession | None, txn: Txn | None = None
) -> Commit:
    """Rewrites Variants with another shredding schema; see `Table.reshred`."""
    return once(snapshot.storage, snapshot, txn, lambda: _reshred(snapshot, schema, where, spark, txn))


def _reshred(snapshot: Snapshot, schema: Any, where: str | None, spark: SparkSession | None, txn: Txn | None) -> Commit:
    engine = engines.of(spark)
    target = target_of(snapshot, txn)
    if not target.variants:
        raise UserError("UNKNOWN_COLUMN", f"{snapshot.storage} has no VARIANT column", hint="There is nothing to do.")
    target.operation, target.data_change = "RESHRED", False
    scan = compact.scanned(engine, TableSource(snapshot))
    spec = target.rewriting_spec(target.write_spec(schema, moment="again"), scan.timezone)
    spec = replace(spec, target_file_size=1 << 62)
    files = files_in(scan, where)
    trees = _trees(target, spec, schema, engine, scan, files)
    target.parameters = {
        "predicate": [] if where is None else [f"({where})"],
        "schema": {".".join(name): ShreddingSchema(tree).to_ddl() for name, tree in trees.items()},
    }
    target.metrics = partial(_metrics, {file.number: file for file in files})
    read = scan.rewriting()

    def task(write: WriteSpec) -> Task:
        return partial(reshred_files, ReshredSpec(read, write, trees))

    return flow.commit_changes(engine, target, spec, flow.FromTasks(task, in_tasks(files, engine.parallelism)))


def _trees(
    target: Target, spec: WriteSpec, schema: Any, engine: Engine, scan: Scan, files: Sequence[FilePart]
) -> Trees:
    """The wanted tree of each column that is to be reshredded."""
    if spec.shredding.trees is None:  # the table does not allow shredding
        wanted = ShreddingWishes.of(schema, target.variants)
        given = dict(wanted.trees)
        typed = [".".join(at) for at in (*wanted.steering, *(at for at, tree in given.items() if tree != pa.null()))]
        if typed:
            raise UserError(
                "FEATURE_NEEDED",
                f"{target.storage} does not allow shredding, so {typed[0]} cannot be shredded",
                hint="Set delta.enableVariantShredding to true first.",
                column=typed[0],
            )
        return given or dict.fromkeys(target.variants, pa.null())
    given = dict(spec.shredding.trees)
    # Columns that a call does not name stay as they are.
    chosen = target.variants if schema is None else ShreddingWishes.of(schema, target.variants).steering
    return given | _inferred(spec, [at for at in chosen if at not in given], engine, scan, files)


def _inferred(
    spec: WriteSpec, columns: Sequence[tuple[str, ...]], engine: Engine, scan: Scan, files: Sequence[FilePart]
) -> Trees:
    """Trees that fit a sample of all files."""
    if not columns:
        return {}
    schema = scan.source.schema
    tops = dict.fromkeys(name[0] for name in columns)
    outputs = {name: bind_value(Column((name,)), schema) for name in tops}
    looked = VariantsSpec(replace(scan.spec(), outputs=outputs), sum(file.size or 0 for file in files))
    inputs = in_tasks(files, engine.parallelism)
    found = collected(engine.run(partial(sample, looked), inputs, PACKED))
    if found is None:
        return {}
    [rows] = found.combine_chunks().to_batches()
    return {name: kernel.infer(rows, name, spec.shredding.limits_of(name)).tree for name in columns}


def _metrics(files: dict[int, FilePart], facts: Facts) -> dict[str, int]:
    removed = [files[number] for number in facts.removed.tolist()]
    return {
        "numAddedFiles": facts.files.num_rows,
        "numAddedBytes": facts.bytes,
        "numRemovedFiles": len(removed),
        "numRemovedBytes": sum(file.size or 0 for file in removed),
        "numDeletionVectorsRemoved": sum(file.deletion_vector is not None for file in removed),
    }
