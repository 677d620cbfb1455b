"""Rows that a person has to a table.

The rule: the rows are checked against the table's schema before anything is written, and either all of them are in one
commit or none is.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from mica.collation.comparator import ends
from mica.engines import local
from mica.engines.spark import types as spark_types
from mica.schema.arrow import to_arrow
from mica.schema.ddl import quote_if_needed
from mica.schema.evolution import plan_write
from mica.tasks.unshred import unshredded_schema
from mica.tasks.write import WriteSpec, facts_ddl, facts_schema, write_files
from mica.tasks.zones import zone_tags
from mica.variant.plain import to_variants
from mica.variant.shredding import trees_of
from mica.write.given import arrow
from mica.write.target import Commit, Target, undone_where_it_fails

#: Bytes in memory that are worth a thread and a file of their own.
SHARE_BYTES = 64 << 20


def write_rows(target: Target, data: Any, shredding: Any) -> Commit:
    """Writes and commits; `data` is a Spark DataFrame or what `given.arrow` takes."""
    spec = target.write_spec(trees_of(shredding, target.variants))
    for note in target.notes:
        warnings.warn(f"{target.storage}: {note}", stacklevel=5)
    spark = data.sparkSession if spark_types.is_frame(data) else None
    leaves, version = target.comparing(spark)
    spec = replace(spec, collated=tuple(leaves), version=version, tags=zone_tags())
    with undone_where_it_fails(spec):
        facts = in_process(spec, data) if spark is None else on_spark(spec, data)
    return target.commit(facts, spark)


def on_spark(spec: WriteSpec, frame: Any) -> pa.Table:
    """The facts of writing a DataFrame, by one Spark job."""
    from mica.engines.spark import jobs

    return jobs.interruptible(frame.sparkSession, lambda: _on_spark(spec, frame))


def _on_spark(spec: WriteSpec, frame: Any) -> pa.Table:
    from mica.engines.spark import jobs

    plan_write(spec.schema, to_arrow(spark_types.from_spark(frame.schema)), variants=to_variants)
    if spec.partition_by:
        # Rows of one partition value are brought together, so that its files reach their size.
        columns = [name for name in frame.columns if name.lower() in {n.lower() for n in spec.partition_by}]
        frame = frame.hint("rebalance", *map(quote_if_needed, columns)) if columns else frame
    # Each task's comparator has the strings that its Python function gathered: bounds take no job of their own.
    return jobs.collect(
        ends(
            jobs.over_rows(frame, partial(write_files, spec), facts_ddl(spec.collated)),
            {f"c{i}": leaf.sql for i, leaf in enumerate(spec.collated)},
        )
    )


def in_process(spec: WriteSpec, data: Any) -> pa.Table:
    """The facts of writing what `given.arrow` takes on threads; a stream is written as it comes, by one."""
    source = arrow(data, spec.schema)
    plan_write(spec.schema, unshredded_schema(source.schema, spec.schema), variants=to_variants)
    if isinstance(source, pa.RecordBatchReader):
        return pa.Table.from_batches(write_files(spec, source), facts_schema(spec.collated))
    count = max(1, min(local.threads(), source.nbytes // SHARE_BYTES))
    edges = [source.num_rows * i // count for i in range(count + 1)]
    shares = [source.slice(start, end - start) for start, end in itertools.pairwise(edges)]
    return pa.Table.from_batches(local.run(partial(_write_share, spec), shares), facts_schema(spec.collated))


def _write_share(spec: WriteSpec, table: pa.Table) -> Iterator[pa.RecordBatch]:
    return write_files(spec, table.to_batches(max_chunksize=16_384))
