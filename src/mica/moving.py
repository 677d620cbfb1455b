"""Folders of Parquet files from one shredding layout to the other.

The rule: what is read is what `read_parquet` reads, and what is written holds the same values; a table gets one commit
or none.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from mica.engines import local
from mica.errors import MicaError, UserError
from mica.files import LAYOUTS, FilesSource, Paths, bare_spec, early_option, find, refuse_delta
from mica.storage import Storage
from mica.tasks.move import MoveSpec, move_files
from mica.tasks.write import FACTS, FACTS_DDL
from mica.writing import open_target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Conversion:
    """What a conversion wrote. `copied` rows stood in files of the wanted layout, `rebuilt` ones became whole Variants
    on the way, all others moved column by column; `version` is None where the target is a folder of Parquet files.
    """

    target: str
    layout: str
    version: int | None
    files: int
    rows: int
    bytes: int
    copied: int
    rebuilt: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    def __str__(self) -> str:
        at = "" if self.version is None else f", version {self.version}"
        return (
            f"{self.target}{at}: {self.rows:,} rows in {self.files:,} files, {self.bytes / 1e6:,.1f} MB, in the"
            f" {self.layout} layout\n"
            f"  {self.copied:,} rows were copied, {self.rebuilt:,} built anew,"
            f" {self.rows - self.copied - self.rebuilt:,} moved column by column"
            f" ({self.seconds:.1f} s)"
        )


def convert_files(
    source: Paths,
    target: str | os.PathLike[str],
    *,
    layout: str = "standard",
    to: Literal["delta", "parquet"] | None = None,
    early: bool | Sequence[str] | None = None,
    spark: SparkSession | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Conversion:
    """Writes Parquet files of either layout (paths as for `read_parquet`) anew in one layout: to a Delta table, which
    must not exist (`to="delta"`, the default of the standard layout), or to a folder of Parquet files without any
    (`to="parquet"`, the only one of the early layout). With `spark` the files are shared among a job's tasks, without
    it among threads. `early` is that of `read_parquet`.

    Errors: those of `read_parquet`, TABLE_EXISTS, FILE_EXISTS for a folder with files, DELTA_TABLE. A conversion that
    fails commits nothing to a table, and deletes what it wrote as far as it can.
    """
    began = time.monotonic()
    if layout not in LAYOUTS:
        raise UserError.bad_value("layout", layout, " or ".join(map(repr, LAYOUTS)))
    kind = to or ("delta" if layout == "standard" else "parquet")
    if kind not in ("delta", "parquet") or (kind == "delta" and layout != "standard"):
        raise UserError.bad_value("to", to, "'parquet', or 'delta' in the standard layout")
    files = FilesSource(find(source, storage_options), storage_options, early_option(early))
    text = os.fspath(target)
    commit = None
    if kind == "delta":
        commit = open_target(
            text, files.schema, (), mode="error", properties={}, storage_options=storage_options, operation="convert"
        )
        write = commit.write_spec({})
    else:
        refuse_delta(text, storage_options)
        storage = Storage.open(text, storage_options)
        if next(iter(storage.list()), None) is not None:
            raise UserError(
                "FILE_EXISTS", f"{text!r} holds files", hint="Name a folder that is empty or new.", path=text
            )
        write = bare_spec(storage, files.schema, {})
    write = replace(write, layout=layout)
    listed = files.all_files()
    pairs = list(zip(listed.column("path").to_pylist(), listed.column("size").to_pylist(), strict=True))
    spec = MoveSpec(files.storage, write, files.early)
    facts = _on_spark(spark, spec, pairs) if spark is not None else _in_process(spec, pairs)
    kinds = facts.column("kind")
    adds, copied, rebuilt = (facts.filter(pc.equal(kinds, kind)) for kind in ("add", "copied", "rebuilt"))
    done = None if commit is None else commit.commit(facts, spark)
    return Conversion(
        target=str(write.storage),
        layout=layout,
        version=None if done is None else done.version,
        files=adds.num_rows,
        rows=pc.sum(adds.column("rows")).as_py() or 0,
        bytes=pc.sum(adds.column("bytes")).as_py() or 0,
        copied=pc.sum(copied.column("rows")).as_py() or 0,
        rebuilt=pc.sum(rebuilt.column("rows")).as_py() or 0,
        seconds=time.monotonic() - began,
    )


def _in_process(spec: MoveSpec, files: list[tuple[str, int]]) -> pa.Table:
    written: list[pa.RecordBatch] = []
    try:
        written.extend(local.run(partial(move_files, spec), [[pair] for pair in files]))
    except MicaError:
        for batch in written:
            for path in batch.filter(pc.equal(batch.column("kind"), "add")).column("path").to_pylist():
                spec.write.storage.delete(path)
        raise
    return pa.Table.from_batches(written, FACTS)


def _on_spark(spark: SparkSession, spec: MoveSpec, files: list[tuple[str, int]]) -> pa.Table:
    from mica.engines.spark import jobs

    return jobs.collect(jobs.over_tasks(spark, partial(move_files, spec), [[pair] for pair in files], FACTS_DDL))
