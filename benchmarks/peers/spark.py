"""Spark's ways to do the works, for Spark 4.3 (bare Parquet), delta-spark and Sail (Delta), which share its API.

python -m benchmarks.peers.spark {spark43|delta|sail}
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from benchmarks.peers.serve import fresh, serve, works_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "4g",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
}
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # 50 by default: slow on two cores, and not what we want to win against.
    "spark.databricks.delta.snapshotPartitions": "2",
}


_KEPT: list[object] = []
"""Sail's server, which stops when nobody holds it."""


def session(kind: str, jars: str, threads: int) -> SparkSession:
    """A local session on `threads` cores; Sail's server runs in this process."""
    from pyspark.sql import SparkSession

    if kind == "sail":
        from pysail.spark import SparkConnectServer

        server = SparkConnectServer("127.0.0.1", 0)
        server.start(background=True)
        _KEPT.append(server)
        _, port = server.listening_address
        return SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
    builder = SparkSession.builder.master(f"local[{threads}]").appName(f"mica-bench-{kind}")
    for key, value in (CONF | (DELTA | {"spark.jars": jars} if kind == "delta" else {})).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _path(path: str, type_: str = "string") -> str:
    return f"variant_get(v, '$.{path}', '{type_}')"


DID, TIME, KIND = _path("did"), _path("time_us", "bigint"), _path("kind")
OPERATION, COLLECTION = _path("commit.operation"), _path("commit.collection")
CREATED = f"{KIND} = 'commit' AND {OPERATION} = 'create'"
POSTS = f"{CREATED} AND {COLLECTION} = 'app.bsky.feed.post'"
FEEDS = "('app.bsky.feed.post', 'app.bsky.feed.repost', 'app.bsky.feed.like')"
QUERIES = {
    "count by collection": f"SELECT {COLLECTION} AS c, count(*) AS n FROM t GROUP BY c ORDER BY n DESC, c",
    "distinct users": f"SELECT {COLLECTION} AS c, count(*) AS n, count(DISTINCT {DID}) FROM t WHERE {CREATED} "
    "GROUP BY c ORDER BY n DESC, c",
    "by hour": f"SELECT {COLLECTION} AS c, hour(timestamp_micros({TIME})) AS h, count(*) FROM t WHERE {CREATED} "
    f"AND {COLLECTION} IN {FEEDS} GROUP BY c, h ORDER BY h, c",
    "earliest posters": f"SELECT {DID} AS d, min({TIME}) AS f FROM t WHERE {POSTS} GROUP BY d ORDER BY f LIMIT 3",
    "longest spans": f"SELECT {DID} AS d, max({TIME}) - min({TIME}) AS s FROM t WHERE {POSTS} GROUP BY d "
    "ORDER BY s DESC, d LIMIT 3",
}


class Peer:
    """The works, on one session."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.format = "parquet" if kind == "spark43" else "delta"
        self.spark: SparkSession

    def start(self, jars: str, threads: int) -> str:
        self.spark = session(self.kind, jars, threads)
        return str(self.spark.range(1000).selectExpr("sum(id)").first())

    def _source(self, source: str) -> DataFrame:
        if self.kind == "sail":  # has no singleVariantColumn
            return self.spark.read.text(source).selectExpr("parse_json(value) as v")
        return self.spark.read.option("singleVariantColumn", "v").json(source)

    def _write(self, frame: DataFrame, target: str, codec: str | None, partitions: int | None = None) -> None:
        if partitions:
            from pyspark.sql import functions as f

            frame = frame.withColumn("p", f.expr(f"pmod({TIME}, {partitions})"))
        writer = frame.write.format(self.format).mode("overwrite")
        if self.format == "delta":
            writer = writer.option("delta.enableVariantShredding", "true")
        if codec:
            writer = writer.option("compression", codec)
        if partitions:
            writer = writer.partitionBy("p")
        writer.save(fresh(target))

    def ingest(self, source: str, target: str, codec: str | None = None, partitions: int | None = None) -> None:
        """NDJSON to a table of one shredded column `v`, in the codec that the system takes by itself; by `partitions`
        values of a column `p`."""
        self._write(self._source(source), target, codec, partitions)

    def check(self, target: str) -> dict[str, Any]:
        """What every system must find in what it wrote."""
        row = (
            self.spark.read.format(self.format)
            .load(target)
            .selectExpr(
                "variant_get(v, '$.time_us', 'bigint') as t",
                "variant_get(v, '$.commit.collection', 'string') as c",
            )
            .selectExpr("count(*)", "sum(t % 1000000)", "count(c)", "count(distinct c)")
            .first()
        )
        return dict(zip(["rows", "time", "collections", "distinct"], map(int, row or ()), strict=True))

    def sliced(self, source: str, target: str, files: int) -> None:
        """The same events as `files` files in the order of time."""
        frame = self._source(source)
        from pyspark.sql import functions as f

        self._write(frame.repartitionByRange(files, f.expr("variant_get(v, '$.time_us', 'bigint')")), target, None)

    def ranged(self, target: str, low: int, high: int) -> dict[str, Any]:
        """Count and least `did` of a range of time."""
        row = (
            self.spark.read.format(self.format)
            .load(target)
            .where(f"variant_get(v, '$.time_us', 'bigint') between {low} and {high}")
            .selectExpr("count(*)", "min(variant_get(v, '$.did', 'string'))")
            .first()
        )
        assert row is not None
        return {"rows": row[0], "least": row[1]}

    def identified(self, target: str, value: str) -> list[int]:
        """The times of the events with this `commit.cid`."""
        frame = self.spark.read.format(self.format).load(target)
        found = frame.where(f"variant_get(v, '$.commit.cid', 'string') = '{value}'")
        return sorted(row[0] for row in found.selectExpr("variant_get(v, '$.time_us', 'bigint')").collect())

    def query(self, target: str, name: str) -> list[list[Any]]:
        """One of five questions like JSONBench's."""
        self.spark.read.format(self.format).load(target).createOrReplaceTempView("t")
        return [list(row) for row in self.spark.sql(QUERIES[name]).collect()]

    def streamed(self, source: str, target: str, way: str, files: int) -> None:
        """A folder as a stream into a table, from its beginning, as far as it goes."""
        self.spark.sql(
            f"CREATE TABLE delta.`{fresh(target)}` (v VARIANT) USING delta "
            "TBLPROPERTIES ('delta.enableVariantShredding' = 'true')"
        )
        read = self.spark.readStream.option("maxFilesPerTrigger", files)
        if way == "json":
            rows = read.schema("v VARIANT").option("singleVariantColumn", "v").json(source)
        else:
            rows = read.text(source).selectExpr("parse_json(value) AS v")
        query = rows.writeStream.format("delta").option("checkpointLocation", fresh(f"{target}.state"))
        query.trigger(availableNow=True).start(target).awaitTermination()

    def single(self, source: str, target: str) -> None:
        """The events in the order of time, in one file."""
        self._write(self._source(source).coalesce(1), target, None)

    def lookup(self, target: str, where: str) -> list[str]:
        """Whole rows; `where` is in the words of `variant_get`."""
        frame = self.spark.read.format(self.format).load(target).where(where)
        return sorted(row[0] for row in frame.selectExpr("to_json(v)").collect())

    def elements(self, target: str) -> list[int]:
        """How many orders have a first item of 50,000 or more, and what these cost together."""
        price = "variant_get(v, '$.items[0].price', 'bigint')"
        found = self.spark.read.format(self.format).load(target).where(f"{price} >= 50000")
        return list(found.selectExpr("count(*)", f"sum({price})").collect()[0])

    def rebuild(self, target: str) -> None:
        """Every row's whole Variant, to nobody: what Spark makes of it afterwards is the same for all."""
        self.spark.read.format(self.format).load(target).write.format("noop").mode("overwrite").save()

    def digest(self, target: str) -> int:
        """What the whole Variants say, as one number."""
        frame = self.spark.read.format(self.format).load(target)
        return int(frame.selectExpr("sum(length(to_json(v)))").collect()[0][0])

    def find_text(self, target: str, where: str, collation: str) -> dict[str, Any]:
        """Spark's own scan of Parquet files, with a collated column."""
        frame = self.spark.read.schema(f"id BIGINT, s STRING COLLATE {collation}").parquet(target)
        return {"ids": sorted(row["id"] for row in frame.where(where).collect())}

    def changing(self, source: str, target: str, files: int) -> None:
        """The events as `files` files in the order of time, with a plain column."""
        from pyspark.sql import functions as f

        frame = self._source(source).withColumn("kind", f.expr("variant_get(v, '$.kind', 'string')"))
        self._write(frame.repartitionByRange(files, f.expr("variant_get(v, '$.time_us', 'bigint')")), target, None)

    def deleting(self, target: str, low: int, high: int) -> dict[str, Any]:
        """Delete a range of time."""
        return self._deleted(target, f"variant_get(v, '$.time_us', 'bigint') BETWEEN {low} AND {high}")

    def clearing(self, target: str, collection: str) -> dict[str, Any]:
        """Delete the events of a collection."""
        return self._deleted(target, f"variant_get(v, '$.commit.collection', 'string') = '{collection}'")

    def _deleted(self, target: str, where: str) -> dict[str, Any]:
        return {"rows": self.spark.sql(f"DELETE FROM delta.`{target}` WHERE {where}").collect()[0][0]}

    def updating(self, target: str, low: int, high: int) -> dict[str, Any]:
        """Set a plain column in a range of time."""
        where = f"variant_get(v, '$.time_us', 'bigint') BETWEEN {low} AND {high}"
        found = self.spark.sql(f"UPDATE delta.`{target}` SET kind = 'changed' WHERE {where}").collect()
        return {"rows": found[0][0]}

    def copying(self, target: str, high: int) -> dict[str, Any]:
        """Insert what the table has before a time."""
        where = f"variant_get(v, '$.time_us', 'bigint') < {high}"
        self.spark.sql(f"INSERT INTO delta.`{target}` SELECT v, kind FROM delta.`{target}` WHERE {where}")
        return {"rows": int(self._told(target)["numOutputRows"])}

    def merging(self, target: str, given: str) -> dict[str, Any]:
        """Merge documents by a path."""
        self._source(given).createOrReplaceTempView("given")
        on = " = ".join(f"variant_get({side}.v, '$.time_us', 'bigint')" for side in "ts")
        self.spark.sql(
            f"MERGE INTO delta.`{target}` t USING given s ON {on} WHEN MATCHED THEN UPDATE SET v = s.v, "
            "kind = 'merged' WHEN NOT MATCHED THEN INSERT (v, kind) VALUES (s.v, 'new')"
        )
        told = self._told(target)
        return {"rows": [int(told["numTargetRowsUpdated"]), int(told["numTargetRowsInserted"])]}

    def _told(self, target: str) -> dict[str, str]:
        found = self.spark.sql(f"DESCRIBE HISTORY delta.`{target}` LIMIT 1").select("operationMetrics").first()
        assert found is not None
        return dict(found[0])

    def joining(self, target: str) -> dict[str, Any]:
        """Join small files."""
        self.spark.sql(f"OPTIMIZE delta.`{target}`").collect()
        return {}

    def listing(self, target: str) -> dict[str, Any]:
        """How many files a vacuum would delete; it names directories too."""
        found = self.spark.sql(f"VACUUM delta.`{target}` DRY RUN").collect()
        return {"files": sum(row[0].endswith(".parquet") for row in found)}

    def checked(self, target: str) -> dict[str, Any]:
        """What every system must find after a change."""
        frame = self.spark.read.format("delta").load(target)
        names = ("changed", "merged", "new")
        kinds = [f"count_if(kind = '{name}')" if "kind" in frame.columns else "0" for name in names]
        time = "sum(variant_get(v, '$.time_us', 'bigint') % 1000000)"
        row = frame.selectExpr("count(*)", time, "count(variant_get(v, '$.merged', 'boolean'))", *kinds).first()
        return dict(zip(["count", "time", "marked", *names], map(int, row or ()), strict=True))

    def plan(self, target: str, low: int, high: int, cached: bool) -> int:
        """How many files of a Delta table stay for a range of `id`; with the last snapshot cached, or without."""
        if not cached:
            self._log().clearCache()
        frame = self.spark.read.format("delta").load(target).where(f"id between {low} and {high}")
        return len(frame.inputFiles())

    def checkpoint(self, target: str) -> None:
        """Write a checkpoint of a Delta table."""
        self._log().forTable(self.spark._jsparkSession, target).checkpoint()  # noqa: SLF001

    def _log(self) -> Any:
        # delta-spark has no public way to its cache.
        jvm: Any = self.spark._jvm  # noqa: SLF001
        return jvm.org.apache.spark.sql.delta.DeltaLog


def main() -> None:
    serve(works_of(Peer(sys.argv[1])))


if __name__ == "__main__":
    main()
