"""mica's ways to do the works, through its public names, on Spark and in process.

python -m benchmarks.peers.mica
"""

from __future__ import annotations

import hashlib
import itertools
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import mica
from benchmarks.peers.serve import Work, fresh, serve
from benchmarks.peers.strings import Strings
from mica.variant import kernel
from mica.variant.shredding import Limits

CODEC = "delta.parquet.compression.codec"


DID, TIME, COLLECTION = "v:did::string", "v:time_us::bigint", "v:commit.collection::string"
CREATED = "v:kind::string = 'commit' AND v:commit.operation::string = 'create'"
POSTS = f"{CREATED} AND {COLLECTION} = 'app.bsky.feed.post'"
FEEDS = "('app.bsky.feed.post', 'app.bsky.feed.repost', 'app.bsky.feed.like')"


def _rows(table: pa.Table, order: list[tuple[str, str]], limit: int | None = None) -> list[list[Any]]:
    table = table.take(pc.sort_indices(table, sort_keys=order, null_placement="at_start"))[:limit]
    return [list(row.values()) for row in table.to_pylist()]


def _by_collection(found: pa.Table) -> list[list[Any]]:
    counts = found.group_by("c").aggregate([([], "count_all")])
    return _rows(counts, [("count_all", "descending"), ("c", "ascending")])


def _users(found: pa.Table) -> list[list[Any]]:
    counts = found.group_by("c").aggregate([([], "count_all"), ("d", "count_distinct")])
    return _rows(counts, [("count_all", "descending"), ("c", "ascending")])


def _by_hour(found: pa.Table) -> list[list[Any]]:
    hours = pc.cast(pc.hour(pc.cast(found["t"], pa.timestamp("us"))), pa.int32())
    counts = found.append_column("h", hours).group_by(["c", "h"]).aggregate([([], "count_all")])
    return _rows(counts, [("h", "ascending"), ("c", "ascending")])


def _earliest(found: pa.Table) -> list[list[Any]]:
    first = found.group_by("d").aggregate([("t", "min")])
    return _rows(first, [("t_min", "ascending")], 3)


def _spans(found: pa.Table) -> list[list[Any]]:
    ends = found.group_by("d").aggregate([("t", "min"), ("t", "max")])
    spans = pa.table({"d": ends["d"], "s": pc.subtract(ends["t_max"], ends["t_min"])})
    return _rows(spans, [("s", "descending"), ("d", "ascending")], 3)


QUERIES: dict[str, tuple[dict[str, str], str | None, Callable[[pa.Table], list[list[Any]]]]] = {
    "count by collection": ({"c": COLLECTION}, None, _by_collection),
    "distinct users": ({"c": COLLECTION, "d": DID}, CREATED, _users),
    "by hour": ({"c": COLLECTION, "t": TIME}, f"{CREATED} AND {COLLECTION} IN {FEEDS}", _by_hour),
    "earliest posters": ({"d": DID, "t": TIME}, POSTS, _earliest),
    "longest spans": ({"d": DID, "t": TIME}, POSTS, _spans),
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
        return self._spark

    def ingest(self, source: str, target: str, engine: str = "spark", codec: str | None = None) -> None:
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

    def rebuild(self, target: str) -> None:
        """Every row's whole Variant, to nobody: what Spark makes of it afterwards is the same for all."""
        mica.Table.open(target).scan(columns=["v"]).to_df(self.spark).write.format("noop").mode("overwrite").save()

    def digest(self, target: str) -> int:
        """What the whole Variants say, as one number."""
        frame = mica.Table.open(target).scan().to_df(self.spark)
        return int(frame.selectExpr("sum(length(to_json(v)))").collect()[0][0])

    def query(self, target: str, name: str) -> list[list[Any]]:
        """Leaves by to_arrow(), the rest by pyarrow."""
        columns, where, aggregate = QUERIES[name]
        return aggregate(mica.Table.open(target).scan(where=where, columns=columns).to_arrow())

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

    def plan(self, target: str, low: int, high: int, column: str, cached: bool) -> int:
        table = self._open[target].refresh() if cached and target in self._open else mica.Table.open(target)
        self._open[target] = table
        return int(table.scan(where=f"{column} BETWEEN {low} AND {high}").kept.num_rows)


class Early:
    """The works of the early layout, in process; the rows stay in memory from one to the next."""

    def __init__(self) -> None:
        self._rows: pa.Table = None
        self._tree: pa.DataType = None

    def early_prepare(self, source: str, target: str) -> dict[str, Any]:
        """Four files of two row sets: the events in both layouts, and what typed columns alone hold of them."""
        mica.ingest_json(source, f"{fresh(target)}/table")
        self._rows = mica.Table.open(f"{target}/table").scan().to_arrow().combine_chunks()
        self._tree = kernel.infer(self._rows.to_batches()[0].slice(0, 4096), "v", Limits().to_kernel())
        full = typed_alone(self._rows, self._tree)
        sizes = {}
        for layout in ("standard", "early"):
            for name, rows in (("", self._rows), ("full-", full)):
                path = f"{target}/{name}{layout}.parquet"
                done = mica.write_parquet(rows, path, shredding={"v": self._tree}, layout=layout)
                sizes[f"{name}{layout}"] = f"{done.bytes / 1e6:.1f} MB"
        return {"rows": len(self._rows), "bytes": sizes}

    def early_write(self, target: str, layout: str) -> int:
        return mica.write_parquet(self._rows, target, shredding={"v": self._tree}, layout=layout).rows

    def early_read(self, source: str, where: str | None = None) -> int:
        return int(mica.read_parquet(source, where=where).to_arrow().num_rows)

    def early_middle(self) -> int:
        """`time_us` of the row in the middle, which no other row has."""
        row = self._rows.slice(len(self._rows) // 2, 1).to_batches()[0]
        items = [{"column": "v", "path": ["time_us"], "type": pa.int64()}]
        return int(kernel.extract(row, items).column(0)[0].as_py())

    def early_digest(self, source: str) -> str:
        """All rows as JSON texts, in their order, as one number."""
        found = hashlib.sha256()
        for batch in mica.read_parquet(source).to_arrow().to_batches(max_chunksize=16_384):
            texts = mica.variant.to_json(batch.column(0))
            found.update("".join(f"{text}\n" for text in texts.to_pylist()).encode())
        return found.hexdigest()

    def early_scan(self, source: str, columns: dict[str, str], where: str | None) -> list[Any]:
        """The rows found and, per column, its values and the least of them."""
        found = mica.read_parquet(source, columns=columns, where=where).to_arrow()
        return [len(found), *([len(c) - c.null_count, pc.min(c).as_py()] for c in found.columns)]

    def early_convert(self, source: str, target: str, layout: str, whole: bool) -> int:
        fresh(target)
        if not whole:
            return mica.convert_files(source, target, layout=layout, to="parquet").rows
        rows = mica.read_parquet(source).to_arrow()
        return mica.write_parquet(rows, target, shredding={"v": self._tree}, layout=layout).rows


def typed_alone(rows: pa.Table, tree: pa.DataType) -> pa.Table:
    """The documents without what has no place in the tree's typed columns."""
    batches = []
    for batch in rows.to_batches(max_chunksize=16_384):
        shredded = kernel.shred(batch, {"v": tree})
        cut = pa.RecordBatch.from_arrays([_typed(shredded.column(0))], schema=shredded.schema)
        batches.append(kernel.unshred(cut))
    return pa.Table.from_batches(batches)


def _typed(array: pa.Array) -> pa.Array:
    """The storage of a Variant column, or a level of it, with nothing in `value`."""
    if pa.types.is_list(array.type):
        return pa.ListArray.from_arrays(array.offsets, _typed(array.values), array.type, mask=array.is_null())
    if not pa.types.is_struct(array.type):
        return array
    children = [
        pa.nulls(len(array), f.type) if f.name == "value" and f.type == pa.binary() else _typed(array.field(i))
        for i, f in enumerate(array.type)
    ]
    return pa.StructArray.from_arrays(children, fields=list(array.type), mask=array.is_null())


if __name__ == "__main__":
    peer, early = Mica(), Early()
    names = [
        "start",
        "ingest",
        "check",
        "sliced",
        "ranged",
        "query",
        "path",
        "many",
        "single",
        "lookup",
        "rebuild",
        "digest",
        "plan",
    ]
    works: dict[str, Work] = {name: getattr(peer, name) for name in names}
    names = ["prepare", "write", "read", "middle", "digest", "scan", "convert"]
    works |= {f"early_{name}": getattr(early, f"early_{name}") for name in names}
    serve(works | Strings(lambda: peer.spark).works())
