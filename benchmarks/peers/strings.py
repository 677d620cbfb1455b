"""mica's ways to do the works of collated strings: written with bounds, found again, bounds judged by the log alone."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import mica
from benchmarks.peers.serve import fresh
from mica.engines.spark.comparator import SparkComparator

SYLLABLES = (
    "ba be bi bo bu ca ce co da de di do fa fe fi ga ge gi ha he hi ja ka ke ki la le li lo ma me mi mo na ne no pa pe "
    "po ra re ri ro sa se si so ta te ti to va ve vi wa we wi ya ye za ze zo"
).split()
#: What a text of many scripts has between its syllables.
OTHERS = "ä ö ü é è ñ ç š č ř å æ ø α β γ λ а б в д ж и к 漢 字 日 本 中 国 ひ ら カ タ".split()


def texts(kind: str, count: int) -> list[str]:
    """`names`: 1,000 distinct; `titles`: nearly all distinct, ASCII; `scripts`: nearly all distinct, a third of them
    with characters of other scripts, a tenth beginning with one.
    """
    rng = random.Random(f"{kind} {count}")

    def word() -> str:
        return "".join(rng.choices(SYLLABLES, k=rng.randint(2, 5))).capitalize()

    if kind == "names":
        pool = [word() for _ in range(1_000)]
        return rng.choices(pool, k=count)
    if kind == "titles":
        return [f"{word()} {word()} {word()}" for _ in range(count)]

    def other(share: float) -> str:
        return rng.choice(OTHERS) if rng.random() < share else ""

    return [f"{other(0.1)}{word()} {other(0.25)}{word()}" for _ in range(count)]


class Strings:
    """The works, on the session that `session` gives."""

    def __init__(self, session: Callable[[], Any]) -> None:
        self._session = session
        self._open: dict[str, mica.Table] = {}

    def texts(self, target: str, kind: str, count: int) -> int:
        """Strings as two Parquet files, for two tasks."""
        table = pa.table({"id": pa.array(range(count)), "s": texts(kind, count)})
        frame = self._session().createDataFrame(table).coalesce(1).repartition(2)
        frame.write.mode("overwrite").parquet(fresh(target))
        return count

    def write_texts(self, source: str, target: str, collation: str | None) -> None:
        """A table of them, with bounds where the column has a collation."""
        type_ = "STRING" if collation is None else f"STRING COLLATE {collation}"
        table = mica.Table.create(fresh(target), f"id BIGINT, s {type_}")
        table.append(self._session().read.parquet(source))

    def sorted_texts(self, source: str, target: str, collation: str, files: int, times: int) -> None:
        """A table of `files` files in the order of the strings, each of which stands there `times` times, numbered."""
        from pyspark.sql import functions as sql

        table = mica.Table.create(fresh(target), f"id BIGINT, s STRING COLLATE {collation}")
        frame = self._session().read.parquet(source).crossJoin(self._session().range(times).toDF("n"))
        frame = frame.selectExpr(f"id * {times} + n AS id", "concat(s, ' ', n) AS s")
        table.append(frame.repartitionByRange(files, sql.collate(frame["s"], collation)))

    def some_texts(self, source: str, count: int) -> list[str]:
        """A few that are there."""
        found = self._session().read.parquet(source).where("id % 333333 = 7").orderBy("id").limit(count).collect()
        return [f"{row['s']} 5" for row in found]

    def find_text(self, target: str, where: str) -> dict[str, Any]:
        """Open, plan, read; and how many files were read."""
        spark = self._session()
        scan = mica.Table.open(target).scan(where, spark=spark)
        return {"ids": sorted(row["id"] for row in scan.to_df(spark).collect()), "files": len(scan.plan.kept)}

    def bounds(self, target: str, collation: str, files: int, real: int) -> None:
        """A table of `files` files in its log, of which `real` are there; each holds a range of texts of its own."""
        table = mica.Table.create(fresh(target), f"s STRING COLLATE {collation}")
        table.append(self._session().createDataFrame([("k00000000 a",), ("k00000000 b",)], "s string").coalesce(1))
        (row,) = table.files().to_pylist()
        key = f"icu.{collation}.{SparkComparator(self._session()).version}"
        lines = []
        for number in range(files):
            low, high = f"k{number:08} a", f"k{number:08} b"
            collated = {key: {"minValues": {"s": low}, "maxValues": {"s": high}}}
            stats = json.loads(row["stats"]) | {"statsWithCollation": collated}
            path = f"part-{number:06}.parquet"
            if number < real:
                shutil.copy(Path(target) / row["path"], Path(target) / path)
            add = {"path": path, "partitionValues": {}, "size": row["size"], "modificationTime": 1, "dataChange": True}
            lines.append(
                json.dumps({"add": add | {"stats": json.dumps(stats), "tags": {"mica.collatedBounds": "spark/1"}}})
            )
        remove = {"path": row["path"], "dataChange": True, "deletionTimestamp": 1}
        lines.append(json.dumps({"remove": remove}))
        (Path(target) / "_delta_log" / f"{2:020}.json").write_text("\n".join(lines) + "\n")

    def judge(self, target: str, where: str) -> int:
        """How many files may hold a string, of a table that is open."""
        if target not in self._open:
            self._open[target] = mica.Table.open(target)
        return len(self._open[target].scan(where, spark=self._session()).plan.kept)

    def firsts(self, target: str, real: int, threads: int) -> int:
        """One row of each of the files that are there, by pyarrow on threads."""
        paths = [Path(target) / f"part-{number:06}.parquet" for number in range(real)]
        with ThreadPoolExecutor(threads) as pool:
            return sum(pool.map(_first, paths))


def _first(path: Path) -> int:
    with pq.ParquetFile(path) as file:
        return int(next(file.iter_batches(batch_size=1, columns=["s"])).num_rows)
