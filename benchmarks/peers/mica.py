"""mica's ways to do the works, through its public names, on Spark and in process.

python -m benchmarks.peers.mica
"""

from __future__ import annotations

import itertools
import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import mica
from benchmarks.peers.changes import Changes
from benchmarks.peers.layouts import Layouts
from benchmarks.peers.serve import fresh, serve, works_of
from benchmarks.peers.spark import COLLECTION as SPARK_COLLECTION
from benchmarks.peers.spark import DID as SPARK_DID
from benchmarks.peers.spark import KIND as SPARK_KIND
from benchmarks.peers.spark import OPERATION as SPARK_OPERATION
from benchmarks.peers.spark import QUERIES as SPARK_QUERIES
from benchmarks.peers.spark import TIME as SPARK_TIME
from benchmarks.peers.strings import Strings
from mica.format.source import register

CODEC = "delta.parquet.compression.codec"


DID, TIME, COLLECTION = "v:did::string", "v:time_us::bigint", "v:commit.collection::string"
CREATED = "v:kind::string = 'commit' AND v:commit.operation::string = 'create'"
POSTS = f"{CREATED} AND {COLLECTION} = 'app.bsky.feed.post'"
FEEDS = "('app.bsky.feed.post', 'app.bsky.feed.repost', 'app.bsky.feed.like')"


def _rows(table: pa.Table, order: list[tuple[str, str]]) -> list[list[Any]]:
    return _lists(table.take(pc.sort_indices(table, sort_keys=order, null_placement="at_start")))


def _first(table: pa.Table, order: list[tuple[str, str]], count: int) -> list[list[Any]]:
    """The first rows in an order of columns without nulls, the rest unsorted."""
    return _lists(table.take(pc.select_k_unstable(table, count, order)))


def _lists(table: pa.Table) -> list[list[Any]]:
    return [list(row.values()) for row in table.to_pylist()]


def _by_collection(found: pa.Table) -> list[list[Any]]:
    counts = found.group_by("c").aggregate([([], "count_all")])
    return _rows(counts, [("count_all", "descending"), ("c", "ascending")])


def _users(found: pa.Table) -> list[list[Any]]:
    # Each of pyarrow's threads would gather nearly all users, to be joined afterwards.
    counts = found.group_by("c", use_threads=False).aggregate([([], "count_all"), ("d", "count_distinct")])
    return _rows(counts, [("count_all", "descending"), ("c", "ascending")])


def _by_hour(found: pa.Table) -> list[list[Any]]:
    hours = pc.cast(pc.hour(pc.cast(found["t"], pa.timestamp("us"))), pa.int32())
    counts = found.append_column("h", hours).group_by(["c", "h"]).aggregate([([], "count_all")])
    return _rows(counts, [("h", "ascending"), ("c", "ascending")])


def _earliest(found: pa.Table) -> list[list[Any]]:
    first = found.group_by("d", use_threads=False).aggregate([("t", "min")])
    return _first(first, [("t_min", "ascending")], 3)


def _spans(found: pa.Table) -> list[list[Any]]:
    ends = found.group_by("d").aggregate([("t", "min"), ("t", "max")])
    spans = pa.table({"d": ends["d"], "s": pc.subtract(ends["t_max"], ends["t_min"])})
    return _first(spans, [("s", "descending"), ("d", "ascending")], 3)


QUERIES: dict[str, tuple[dict[str, str], str | None, Callable[[pa.Table], list[list[Any]]]]] = {
    "count by collection": ({"c": COLLECTION}, None, _by_collection),
    "distinct users": ({"c": COLLECTION, "d": DID}, CREATED, _users),
    "by hour": ({"c": COLLECTION, "t": TIME}, f"{CREATED} AND {COLLECTION} IN {FEEDS}", _by_hour),
    "earliest posters": ({"d": DID, "t": TIME}, POSTS, _earliest),
    "longest spans": ({"d": DID, "t": TIME}, POSTS, _spans),
}


#: Typed paths: what they are in the texts of Spark's queries, and their declarations.
TYPED = {
    "did": (SPARK_DID, "did STRING"),
    "time_us": (SPARK_TIME, "time_us BIGINT"),
    "kind": (SPARK_KIND, "kind STRING"),
    "operation": (SPARK_OPERATION, "operation STRING AS v:commit.operation"),
    "collection": (SPARK_COLLECTION, "collection STRING AS v:commit.collection"),
}


class Mica:
    """The works, on one session and in process."""

    def __init__(self) -> None:
        self.threads = 2
        self._spark: Any = None
        self._open: dict[str, mica.Table] = {}

    def start(self, jars: str, threads: int) -> str:
        """Begins the session here, as the other Spark peers do: no first run pays for a JVM."""
        del jars
        self.threads = threads
        return str(self.spark.range(1000).selectExpr("sum(id)").first())

    @property
    def spark(self) -> Any:
        if self._spark is None:
            conf = {"spark.driver.memory": "4g", "spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false"}
            self._spark = mica.session(master=f"local[{self.threads}]", **conf)
            self._spark.sparkContext.setLogLevel("ERROR")
            register(self._spark)
        return self._spark

    def ingest(
        self,
        source: str,
        target: str,
        engine: str = "spark",
        codec: str | None = None,
        partitions: int | None = None,
    ) -> None:
        fresh(target)
        spark = self.spark if engine == "spark" else None
        key = {"p": f"pmod(v:time_us::bigint, {partitions})"} if partitions else {}
        properties = {CODEC: codec} if codec else None
        mica.ingest_json(source, target, spark=spark, columns=key, partition_by=[*key], properties=properties)

    def check(self, target: str) -> dict[str, Any]:
        columns = {"t": "v:time_us::bigint", "c": "v:commit.collection::string"}
        found = mica.Table.open(target).scan(columns=columns).to_arrow()
        names = found["c"].drop_null()
        time = pc.sum(pc.subtract(found["t"], pc.multiply(pc.divide(found["t"], 1_000_000), 1_000_000)))
        numbers = [found.num_rows, time.as_py(), len(names), pc.count_distinct(names).as_py()]
        return dict(zip(["rows", "time", "collections", "distinct"], numbers, strict=True))

    def sliced(self, source: str, target: str, files: int, filters: str | None = None) -> None:
        from pyspark.sql import functions as f

        frame = self.spark.read.option("singleVariantColumn", "v").json(source)
        properties = {"mica.bloomFilter.paths": filters} if filters else {}
        table = mica.Table.create(fresh(target), "v VARIANT", properties=properties)
        table.append(frame.repartitionByRange(files, f.expr("variant_get(v, '$.time_us', 'bigint')")))

    def ranged(self, target: str, low: int, high: int, engine: str) -> dict[str, Any]:
        where = f"v:time_us::bigint BETWEEN {low} AND {high}"
        scan = mica.Table.open(target).scan(where=where, columns={"did": "v:did::string"})
        if engine == "spark":
            rows, least = scan.to_df(self.spark).selectExpr("count(*)", "min(did)").collect()[0]
            return {"rows": rows, "least": least}
        found: pa.Table = scan.to_arrow()
        return {"rows": found.num_rows, "least": pc.min(found["did"]).as_py()}

    def identified(self, target: str, value: str, engine: str) -> list[int]:
        """The times of the events with this `commit.cid`."""
        where = f"v:commit.cid::string = '{value}'"
        scan = mica.Table.open(target).scan(where=where, columns={"t": "v:time_us::bigint"})
        if engine == "spark":
            return sorted(row["t"] for row in scan.to_df(self.spark).collect())
        return sorted(scan.to_arrow()["t"].to_pylist())

    def elements(self, target: str) -> list[int]:
        """How many orders have a first item of 50,000 or more, and what these cost together."""
        columns = {"p": "v:items[0].price::bigint"}
        found = mica.Table.open(target).scan(columns=columns, where="v:items[0].price::bigint >= 50000").to_arrow()
        return [found.num_rows, pc.sum(found["p"]).as_py()]

    def rebuild(self, target: str) -> None:
        """Every row's whole Variant, to nobody: what Spark makes of it afterwards is the same for all."""
        mica.Table.open(target).scan(columns=["v"]).to_df(self.spark).write.format("noop").mode("overwrite").save()

    def digest(self, target: str) -> int:
        """What the whole Variants say, as one number."""
        frame = mica.Table.open(target).scan().to_df(self.spark)
        return int(frame.selectExpr("sum(length(to_json(v)))").collect()[0][0])

    def query(self, target: str, name: str) -> list[list[Any]]:
        """Leaves by to_arrow(), the rest by pyarrow; the table object is kept, as ClickHouse keeps its tables."""
        columns, where, aggregate = QUERIES[name]
        return aggregate(self._kept(target).scan(where=where, columns=columns).to_arrow())

    def through_sql(self, target: str, name: str) -> list[list[Any]]:
        """Spark's text for the same question, through `mica.sql`."""
        mica.register("t", target)
        return [list(row) for row in mica.sql(SPARK_QUERIES[name], self.spark).collect()]

    def through_frame(self, target: str, name: str) -> list[list[Any]]:
        """The same question of a DataFrame of `spark.table` in an enabled session."""
        mica.enable(self.spark)
        try:
            self.spark.table(f"delta.`{target}`").createOrReplaceTempView("framed")
            return [list(r) for r in self.spark.sql(SPARK_QUERIES[name].replace("FROM t", "FROM framed")).collect()]
        finally:
            mica.disable(self.spark)

    def ranged_frame(self, target: str, low: int, high: int) -> dict[str, Any]:
        """What `ranged` finds, by a DataFrame of `spark.table` in an enabled session."""
        mica.enable(self.spark)
        try:
            found = self.spark.table(f"delta.`{target}`")
            found = found.where(f"variant_get(v, '$.time_us', 'bigint') BETWEEN {low} AND {high}")
            found = found.selectExpr("count(*)", "min(variant_get(v, '$.did', 'string'))")
            rows, least = found.collect()[0]
        finally:
            mica.disable(self.spark)
        return {"rows": rows, "least": least}

    def ranged_sql(self, target: str, low: int, high: int) -> dict[str, Any]:
        """What `ranged` finds, by SQL."""
        text = (
            "SELECT count(*), min(variant_get(v, '$.did', 'string')) "
            f"FROM delta.`{target}` WHERE variant_get(v, '$.time_us', 'bigint') BETWEEN {low} AND {high}"
        )
        rows, least = mica.sql(text, self.spark).collect()[0]
        return {"rows": rows, "least": least}

    def tiny(self, target: str, through: str) -> list[list[Any]]:
        """One question of a small table, by `mica.sql`, and by Spark of its files."""
        text = SPARK_QUERIES["count by collection"]
        if through == "mica":
            return [
                list(row) for row in mica.sql(text.replace("FROM t", f"FROM delta.`{target}`"), self.spark).collect()
            ]
        self.spark.read.schema("v VARIANT").parquet(f"{target}/*.parquet").createOrReplaceTempView("tiny")
        return [list(row) for row in self.spark.sql(text.replace("FROM t", "FROM tiny")).collect()]

    def through_format(self, target: str, name: str) -> list[list[Any]]:
        """The same question of typed paths, as plain columns of `format("mica")`."""
        text = SPARK_QUERIES[name]
        for column, (path, _) in TYPED.items():
            text = text.replace(path, column)
        declared = ", ".join(ddl for _, ddl in TYPED.values())
        read = self.spark.read.format("mica").option("typedPaths", declared).option("pushFilters", "true")
        read.load(target).createOrReplaceTempView("t")
        return [list(row) for row in self.spark.sql(text).collect()]

    def streamed(self, source: str, target: str, way: str, files: int) -> None:
        """A folder as a stream into a table, from its beginning, as far as it goes."""
        fresh(target)
        if way in ("local", "spark"):
            for _ in mica.stream_json(source, target, spark=self.spark if way == "spark" else None, max_files=files):
                pass
            return
        mica.Table.create(target, "v VARIANT")
        rows = self.spark.readStream.option("maxFilesPerTrigger", files).text(source)
        rows = rows.select(mica.parse_json("value").alias("v") if way == "parse_json" else rows.value.alias("v"))
        query = rows.writeStream.format("mica").option("checkpointLocation", fresh(f"{target}.state"))
        query.trigger(availableNow=True).start(target).awaitTermination()

    def parsed(self, source: str, by: str) -> None:
        """JSON texts as Variants, to nobody."""
        texts = self.spark.read.text(source)
        made = mica.parse_json("value").alias("v") if by == "mica" else "parse_json(value) AS v"
        rows = texts.select(made) if by == "mica" else texts.selectExpr(made)
        rows.write.format("noop").mode("overwrite").save()

    def many(self, source: str, target: str, files: int) -> None:
        """A table of that many small files: one of a hundred events, and its copies, named by one more commit."""
        with Path(source).open() as lines:
            Path(f"{fresh(target)}.ndjson").write_text("".join(itertools.islice(lines, 100)))
        mica.ingest_json(f"{target}.ndjson", target)
        (log,) = Path(target, "_delta_log").glob("*.json")
        (add,) = (line for line in map(json.loads, log.read_text().splitlines()) if "add" in line)
        first, actions = Path(target, add["add"]["path"]), [{"commitInfo": {"timestamp": 0, "operation": "WRITE"}}]
        for number in range(files - 1):
            copy = Path(target, f"part-{number:05}.parquet")
            shutil.copyfile(first, copy)
            actions.append({"add": add["add"] | {"path": copy.name}})
        (log.parent / f"{1:020}.json").write_text("".join(json.dumps(action) + "\n" for action in actions))

    def path(self, target: str, reader: str) -> list[int]:
        """One path of every row, taken out of the DataFrame afterwards: by mica's, and by Spark's own of the files."""
        if reader == "mica":
            frame = mica.Table.open(target).to_df(self.spark)
        else:
            frame = self.spark.read.schema("v VARIANT").parquet(f"{target}/*.parquet")
        found = frame.selectExpr("variant_get(v, '$.time_us', 'bigint') AS t").selectExpr("count(t)", "max(t)")
        return list(found.collect()[0])

    def single(self, source: str, target: str) -> None:
        frame = self.spark.read.option("singleVariantColumn", "v").json(source)
        table = mica.Table.create(fresh(target), "v VARIANT", properties={"mica.bloomFilter.paths": "v:commit.rev"})
        table.append(frame.coalesce(1))

    def lookup(self, target: str, where: str, engine: str) -> list[str]:
        scan = mica.Table.open(target).scan(where=where)
        if engine == "spark":
            return sorted(row[0] for row in scan.to_df(self.spark).selectExpr("to_json(v)").collect())
        return sorted(mica.variant.to_json(scan.to_arrow()["v"].combine_chunks()).to_pylist())

    def middle(self, target: str) -> int:
        """The median of the events' times."""
        times = mica.Table.open(target).scan(columns={"t": "v:time_us::bigint"}).to_arrow()["t"]
        return int(pc.quantile(times, 0.5, interpolation="nearest")[0].as_py())

    def remote(self, target: str, options: dict[str, str], columns: Any, where: str | None) -> dict[str, float]:
        """All rows of a table in a store, to nobody: seconds until the first, and until the last."""
        table = mica.Table.open(target, storage_options=options)
        began, first, rows = time.perf_counter(), 0.0, 0
        for batch in table.scan(columns=columns, where=where).batches():
            first = first or time.perf_counter() - began
            rows += batch.num_rows
        seconds = time.perf_counter() - began
        return {"rows": rows, "first": first or seconds, "seconds": seconds}

    def plan(self, target: str, low: int, high: int, column: str, cached: bool) -> int:
        if not cached:
            self._open.pop(target, None)
        return int(self._kept(target).scan(where=f"{column} BETWEEN {low} AND {high}").kept.num_rows)

    def _kept(self, target: str) -> mica.Table:
        """The table at its newest version, from the object that was used before."""
        kept = self._open.get(target)
        table = mica.Table.open(target) if kept is None else kept.refresh()
        self._open[target] = table
        return table


if __name__ == "__main__":
    peer = Mica()
    serve(works_of(peer, Layouts(), Strings(lambda: peer.spark), Changes(lambda: peer.spark)))
