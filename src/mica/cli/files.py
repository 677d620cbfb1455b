"""`mica files`: lists the data files of a table."""

from __future__ import annotations

import typer

from mica import compute as pc
from mica.arrays import from_numpy
from mica.cli import options
from mica.cli.console import print_json, print_rows, storage_options
from mica.log.paths import decode_path
from mica.log.replay import partition_keys
from mica.table import Table
from mica.wording import counted


def run(
    table: options.TablePath,
    where: options.Where = None,
    version: options.Version = None,
    timestamp: options.Timestamp = None,
    storage_option: options.StorageOption = None,
    json: options.Json = False,
) -> None:
    """List the files of a table, or those that a condition does not skip: path, partition, rows, bytes."""
    opened = Table.open(table, version, timestamp, storage_options(storage_option))
    scan = opened.scan(where)
    kept = from_numpy(scan.plan.kept)
    snapshot = opened.snapshot
    files = pc.take(snapshot.files, kept)
    logical = dict(zip(partition_keys(snapshot.metadata, snapshot.protocol), opened.partition_by, strict=False))
    found = []
    for row, count in zip(files.to_pylist(), scan.source.rows(kept).to_pylist(), strict=True):
        deleted = (row["deletion_vector"] or {}).get("cardinality") or 0
        partition = {logical.get(key, key): value for key, value in row["partition_values"] or ()}
        found.append({
            "path": decode_path(row["path"]), "partition": partition, "size": row["size"],
            "rows": count, "deleted_rows": deleted,
            "modification_time": row["modification_time"],
        })  # fmt: skip
    if json:
        print_json(found)
        return
    parted = bool(opened.partition_by)
    names = ["file", *(["partition"] if parted else []), "rows", "bytes"]
    rows = [
        [file["path"], *([_partition(file["partition"])] if parted else []), _count(file), f"{file['size']:,}"]
        for file in found
    ]
    print_rows(f"{table}, version {opened.version}", names, rows, right=["rows", "bytes"], short="file")
    typer.echo(f"{len(found):,} of {counted(scan.plan.total, 'file')}", err=True)


def _partition(values: dict[str, str | None]) -> str:
    return ", ".join(f"{name}={'NULL' if value is None else value}" for name, value in values.items())


def _count(file: dict[str, object]) -> str:
    return "unknown" if file["rows"] is None else f"{file['rows']:,}"
