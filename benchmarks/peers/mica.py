"""mica's ways to do the works, through its public names, on Spark and in process.

python -m benchmarks.peers.mica
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import mica
from benchmarks.peers.serve import Work, fresh, serve

CODEC = "delta.parquet.compression.codec"


class Mica:
    """The works; the Spark session is made when first needed."""

    def __init__(self) -> None:
        self.threads = 2
        self._spark: Any = None
        self._open: dict[str, mica.Table] = {}

    def start(self, jars: str, threads: int) -> str:
        del jars
        self.threads = threads
        return "started"

    @property
    def spark(self) -> Any:
        if self._spark is None:
            conf = {"spark.driver.memory": "4g", "spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false"}
            self._spark = mica.session(master=f"local[{self.threads}]", **conf)
            self._spark.sparkContext.setLogLevel("ERROR")
        return self._spark

    def ingest(self, source: str, target: str, engine: str, codec: str | None = None) -> None:
        fresh(target)
        spark = self.spark if engine == "spark" else None
        mica.ingest_json(source, target, spark=spark, properties={CODEC: codec} if codec else None)

    def check(self, target: str) -> dict[str, Any]:
        columns = {"t": "v:time_us::bigint", "c": "v:commit.collection::string"}
        found = mica.Table.open(target).scan(columns=columns).to_arrow()
        names = found["c"].drop_null()
        time = pc.sum(pc.subtract(found["t"], pc.multiply(pc.divide(found["t"], 1_000_000), 1_000_000)))
        numbers = [found.num_rows, time.as_py(), len(names), pc.count_distinct(names).as_py()]
        return dict(zip(["rows", "time", "collections", "distinct"], numbers, strict=True))

    def sliced(self, source: str, target: str, files: int) -> None:
        from pyspark.sql import functions as f

        frame = self.spark.read.option("singleVariantColumn", "v").json(source)
        table = mica.Table.create(fresh(target), "v VARIANT")
        table.append(frame.repartitionByRange(files, f.expr("variant_get(v, '$.time_us', 'bigint')")))

    def ranged(self, target: str, low: int, high: int, engine: str) -> dict[str, Any]:
        where = f"v:time_us::bigint BETWEEN {low} AND {high}"
        scan = mica.Table.open(target).scan(where=where, columns={"did": "v:did::string"})
        if engine == "spark":
            rows, least = scan.to_df(self.spark).selectExpr("count(*)", "min(did)").collect()[0]
            return {"rows": rows, "least": least}
        found: pa.Table = scan.to_arrow()
        return {"rows": found.num_rows, "least": pc.min(found["did"]).as_py()}

    def rebuild(self, target: str) -> int:
        """Every row's whole Variant through Spark's workers."""
        frame = mica.Table.open(target).scan().to_df(self.spark)
        return int(frame.selectExpr("sum(length(to_json(v)))").collect()[0][0])

    def plan(self, target: str, low: int, high: int, column: str, cached: bool) -> int:
        table = self._open[target].refresh() if cached and target in self._open else mica.Table.open(target)
        self._open[target] = table
        return int(table.scan(where=f"{column} BETWEEN {low} AND {high}").kept.num_rows)


if __name__ == "__main__":
    peer = Mica()
    names = ["start", "ingest", "check", "sliced", "ranged", "rebuild", "plan"]
    works: dict[str, Work] = {name: getattr(peer, name) for name in names}
    serve(works)
