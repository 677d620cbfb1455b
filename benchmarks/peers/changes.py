"""mica's ways to change rows, join files and list a directory. Shares the session of the other works."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import mica
from benchmarks.peers.serve import fresh

COLUMNS = {"v": "VARIANT", "kind": "STRING"}


class Changes:
    """The works, on Spark and in process."""

    def __init__(self, spark: Callable[[], Any]) -> None:
        self._spark = spark

    def _engine(self, engine: str) -> Any:
        return self._spark() if engine == "spark" else None

    def changing(self, source: str, target: str, files: int) -> None:
        """The events as `files` files in the order of time, with a plain column."""
        from pyspark.sql import functions as f

        frame = self._spark().read.option("singleVariantColumn", "v").json(source)
        frame = frame.withColumn("kind", f.expr("variant_get(v, '$.kind', 'string')"))
        table = mica.Table.create(fresh(target), "v VARIANT, kind STRING")
        table.append(frame.repartitionByRange(files, f.expr("variant_get(v, '$.time_us', 'bigint')")))

    def deleting(self, target: str, low: int, high: int, engine: str) -> dict[str, Any]:
        return self._deleted(target, f"v:time_us::bigint BETWEEN {low} AND {high}", engine)

    def clearing(self, target: str, collection: str, engine: str) -> dict[str, Any]:
        return self._deleted(target, f"v:commit.collection::string = '{collection}'", engine)

    def _deleted(self, target: str, where: str, engine: str) -> dict[str, Any]:
        done = mica.Table.open(target).delete(where, spark=self._engine(engine))
        return {"rows": done.metrics["numDeletedRows"]}

    def updating(self, target: str, low: int, high: int, engine: str) -> dict[str, Any]:
        where = f"v:time_us::bigint BETWEEN {low} AND {high}"
        done = mica.Table.open(target).update({"kind": "'changed'"}, where, spark=self._engine(engine))
        return {"rows": done.metrics["numUpdatedRows"]}

    def copying(self, target: str, high: int, engine: str) -> dict[str, Any]:
        """A statement on Spark, an Arrow reader in process."""
        where = f"v:time_us::bigint < {high}"
        if engine == "spark":
            text = f"INSERT INTO delta.`{target}` SELECT v, kind FROM delta.`{target}` WHERE {where}"
            return {"rows": mica.sql(text, self._spark()).collect()[0][1]}
        table = mica.Table.open(target)
        return {"rows": table.append(table.scan(where).to_reader()).rows}

    def merging(self, target: str, given: str, engine: str) -> dict[str, Any]:
        """A DataFrame of the documents on Spark, an Arrow table in process."""
        source: Any
        if engine == "spark":
            source = self._spark().read.option("singleVariantColumn", "v").json(given)
        else:
            source = pa.table({"v": mica.variant.from_json(Path(given).read_text().splitlines())})
        merge = mica.Table.open(target).merge(source, "target.v:time_us::bigint = source.v:time_us::bigint")
        merge = merge.when_matched_update({"v": "source.v", "kind": "'merged'"})
        done = merge.when_not_matched_insert({"v": "source.v", "kind": "'new'"}).execute()
        return {"rows": [done.metrics["numTargetRowsUpdated"], done.metrics["numTargetRowsInserted"]]}

    def joining(self, target: str, engine: str) -> dict[str, Any]:
        mica.Table.open(target).optimize(spark=self._engine(engine))
        return {}

    def listing(self, target: str, engine: str) -> dict[str, Any]:
        del engine  # a vacuum lists in this process
        return {"files": mica.Table.open(target).vacuum(dry_run=True).files}

    def checked(self, target: str) -> dict[str, Any]:
        """What every system must find afterwards."""
        table = mica.Table.open(target)
        has_kind = table.schema.find("kind") is not None
        columns = {"t": "v:time_us::bigint", "m": "v:merged::boolean", **({"kind": "kind"} if has_kind else {})}
        found = table.scan(columns=columns).to_arrow()
        counts = pc.value_counts(found["kind"]).to_pylist() if has_kind else []
        kinds = {row["values"]: row["counts"] for row in counts}
        few = {name: kinds.get(name, 0) for name in ("changed", "merged", "new")}
        marked = len(found["m"].drop_null())
        time = pc.sum(pc.subtract(found["t"], pc.multiply(pc.divide(found["t"], 1_000_000), 1_000_000)))
        return {"count": found.num_rows, "time": time.as_py(), "marked": marked, **few}
