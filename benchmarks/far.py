"""Operations on tables of many small files in an object store whose answers take 30 ms: what waits for what."""

from __future__ import annotations

import json
import shutil
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import mica
from benchmarks.run import Run
from benchmarks.store import running

DELAY, RATE = 0.03, 125e6
FILES, ROWS = 200, 200
NEW = {"id": [n * 97 for n in range(400)] + [10**9 + n for n in range(50)], "p": [n % 20 for n in range(450)]}


def run(run: Run) -> None:
    """Each operation on a copy of a table, of 200 files of 200 rows in 20 partitions; 1,000 files of JSON."""
    home = Path(run.target("far"))
    shutil.rmtree(home, ignore_errors=True)
    _table(home / "base", "false")
    _table(home / "vectors", "true")
    lines = [json.dumps({"id": n, "p": n % 20, "t": "x" * 50}) for n in range(100)]
    (home / "json").mkdir()
    for number in range(1000):
        (home / f"json/{number:04}.json").write_text("\n".join(lines))
    with running(home, DELAY, RATE) as store:
        options = store.options
        for what, (base, work) in _works().items():
            seconds, asked = [], 0
            for number in range(run.rounds):
                place = home / f"copy-{number}"
                if base:
                    shutil.copytree(home / base, place)
                table = mica.Table.open(f"s3://bucket/{place.name}", storage_options=options) if base else options
                store.requests()
                began = time.perf_counter()
                work(table)
                seconds.append(time.perf_counter() - began)
                asked = len(store.requests())
                shutil.rmtree(place, ignore_errors=True)
                shutil.rmtree(home / "new", ignore_errors=True)
            run.console.print(f"{what}: {statistics.median(seconds):.2f} s, {asked} requests")


def _table(place: Path, vectors: str) -> None:
    columns, properties = "id BIGINT, s STRING, p INT, v VARIANT", {"delta.enableDeletionVectors": vectors}
    table = mica.Table.create(place, columns, partition_by=["p"], properties=properties)
    for number in range(FILES):
        ids = range(number * ROWS, (number + 1) * ROWS)
        texts = [json.dumps({"a": n, "b": {"c": str(n)}}) for n in ids]
        parts = pa.array([number % 20] * ROWS, pa.int32())
        table.append(pa.table({"id": ids, "s": [f"text {n}" for n in ids], "p": parts, "v": texts}))


def _merged(table: mica.Table) -> Any:
    rows = pa.table({"id": NEW["id"], "s": ["m"] * 450, "p": pa.array(NEW["p"], pa.int32()), "v": ["{}"] * 450})
    merge = table.merge(rows, "target.id = source.id").when_matched_update({"s": "source.s"})
    return merge.when_not_matched_insert_all().execute()


def _works() -> dict[str, tuple[str, Callable[[Any], Any]]]:
    """Each operation, with the table that it is done on; on none it gets the options of the store."""
    rewrite = {
        "delete": lambda table: table.delete("id % 7 = 3"),
        "update": lambda table: table.update({"s": "'u'"}, where="id % 100 = 5"),
        "merge": _merged,
    }
    works: dict[str, tuple[str, Callable[[Any], Any]]] = {}
    for name, work in rewrite.items():
        works[f"{name}, files rewritten"] = "base", work
        works[f"{name}, deletion vectors"] = "vectors", work
    return works | {
        "erase of a path": ("base", lambda table: table.erase("v:b.c")),
        "optimize": ("base", lambda table: table.optimize()),
        "optimize by an order": ("base", lambda table: table.optimize(zorder_by=["id"])),
        "history": ("base", lambda table: table.history()),
        "check": ("base", mica.check),
        "check_erased": ("base", lambda table: mica.check_erased(table, "v:b.c")),
        "drift": ("base", mica.drift),
        "delete all and vacuum": ("base", _vacuumed),
        "append to 20 partitions": ("base", _appended),
        "ingest of 1,000 files of JSON": ("", _ingested),
    }


def _vacuumed(table: mica.Table) -> Any:
    table.delete()
    return table.vacuum(0, enforce_retention=False)


def _appended(table: mica.Table) -> Any:
    parts = pa.array([n % 20 for n in range(2000)], pa.int32())
    return table.append(pa.table({"id": range(2000), "s": ["o"] * 2000, "p": parts, "v": ["{}"] * 2000}))


def _ingested(options: Any) -> Any:
    return mica.ingest_json("s3://bucket/json/*", "s3://bucket/new", storage_options=options)
