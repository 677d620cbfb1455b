"""Delta Kernel (Java), which connectors such as Flink's are made of, reads the tables that mica writes.

Its jars come with delta-spark's. It reads no Variants: its own Parquet reader has none.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mica

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DDL = (
    "id INT, b BIGINT, s STRING COLLATE UTF8_LCASE, p STRING, d DATE, t TIMESTAMP, n TIMESTAMP_NTZ, x DOUBLE, "
    "m DECIMAL(10, 2), f BOOLEAN, bin BINARY"
)
EVERYTHING = {
    "delta.enableDeletionVectors": "true",
    "delta.columnMapping.mode": "name",
    "delta.enableRowTracking": "true",
    "delta.enableInCommitTimestamps": "true",
    "delta.enableTypeWidening": "true",
    "delta.checkpointPolicy": "v2",
    "delta.checkpointInterval": "3",
}
STRUCTS = {
    "delta.columnMapping.mode": "id",
    "delta.checkpoint.writeStatsAsStruct": "true",
    "delta.checkpoint.writeStatsAsJson": "false",
    "delta.checkpointInterval": "3",
}
#: A name of Kernel's types → how a row is asked for a value.
GETTERS = {
    "boolean": "getBoolean", "integer": "getInt", "date": "getInt", "long": "getLong", "timestamp": "getLong",
    "timestamp_ntz": "getLong", "double": "getDouble", "string": "getString", "binary": "getBinary",
}  # fmt: skip


class Kernel:
    """Kernel with its default engine."""

    def __init__(self, spark: SparkSession) -> None:
        assert spark._jvm is not None
        self._jvm: Any = spark._jvm
        self.of = self._jvm.io.delta.kernel
        self._engine = self.of.defaults.engine.DefaultEngine.create(spark._jsc.hadoopConfiguration())

    def create(self, path: Path, collation: str) -> None:
        """Makes a table of collated strings: the feature collations, without domainMetadata, which the RFC asks for."""
        types, properties = self.of.types, self._jvm.java.util.HashMap()
        properties.put("delta.feature.collations", "supported")
        text = types.StringType(collation)
        schema = types.StructType().add("id", types.IntegerType.INTEGER).add("s", text)
        schema = schema.add("a", types.ArrayType(text, True))
        builder = self.of.TableManager.buildCreateTableTransaction(str(path), schema, "tests")
        made = builder.withTableProperties(properties).build(self._engine)
        made.commit(self._engine, self.of.utils.CloseableIterable.emptyIterable())

    def schema(self, path: Path) -> str:
        """The schema of the newest version."""
        return str(self._snapshot(path).getSchema())

    def files(self, path: Path, column: str, equals: Any) -> int:
        """How many files it reads for a comparison."""
        predicate = self.of.expressions.Predicate("=", self.of.expressions.Column(column), equals)
        return sum(1 for _ in self._files(self._snapshot(path).getScanBuilder().withFilter(predicate).build()))

    def rows(self, path: Path) -> list[dict[str, Any]]:
        """All rows, without columns of arrays."""
        snapshot, read = self._snapshot(path), self.of.types.StructType()
        for field in snapshot.getSchema().fields():
            read = read if str(field.getDataType()).startswith("array") else read.add(field)
        scan = snapshot.getScanBuilder().withReadSchema(read).build()
        state, inner, found = scan.getScanState(self._engine), self.of.internal, []
        schema = inner.data.ScanStateRow.getPhysicalDataReadSchema(state)
        alone = inner.util.Utils.singletonCloseableIterator
        for file in self._files(scan):
            status = inner.InternalScanFileUtils.getAddFileStatus(file)
            nothing = self._jvm.java.util.Optional.empty()
            results = self._engine.getParquetHandler().readParquetFiles(alone(status), schema, nothing)
            for result in _all(results):
                whole = self.of.Scan.transformPhysicalData(self._engine, state, file, alone(result.getData()))
                found += [_values(row) for batch in _all(whole) for row in _all(batch.getRows())]
        return found

    def _snapshot(self, path: Path) -> Any:
        return self.of.TableManager.loadSnapshot(str(path)).build(self._engine)

    def _files(self, scan: Any) -> Iterator[Any]:
        for batch in _all(scan.getScanFiles(self._engine)):
            yield from _all(batch.getRows())


def _all(iterator: Any) -> Iterator[Any]:
    """What a Java iterator has; Py4J's own `next` hides why one fails."""
    from py4j.java_gateway import JavaMember

    following: Callable[[], Any] = JavaMember("next", iterator, iterator._target_id, iterator._gateway_client)
    while iterator.hasNext():
        yield following()


def _values(row: Any) -> dict[str, Any]:
    schema, found = row.getSchema(), {}
    for place in range(schema.length()):
        field = schema.at(place)
        kind = str(field.getDataType()).partition(" ")[0]
        get = "getDecimal" if kind.lower().startswith("decimal") else GETTERS[kind]
        found[field.getName()] = None if row.isNullAt(place) else getattr(row, get)(place)
    return found


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """Times as Kernel has them: days and microseconds since 1970."""
    start, found = dt.datetime.fromisoformat("1970-01-01"), {}
    for name, value in row.items():
        if isinstance(value, dt.datetime):
            found[name] = (value.replace(tzinfo=None) - start) // dt.timedelta(microseconds=1)
        elif isinstance(value, dt.date):
            found[name] = (value - start.date()).days
        else:
            found[name] = value
    return found


@pytest.mark.parametrize(
    ("properties", "partitions"), [(EVERYTHING, ["d", "p"]), (STRUCTS, ["p"])], ids=["everything", "structs"]
)
def test_kernel_reads_the_rows_and_skips_by_the_bounds(
    delta_session: SparkSession, tmp_path: Path, properties: dict[str, str], partitions: list[str]
) -> None:
    path, kernel = tmp_path / "t", Kernel(delta_session)
    table = mica.Table.create(path, DDL, properties=properties, partition_by=partitions)
    instant = dt.datetime(2024, 1, 1, 1, 2, 3, 456789, tzinfo=dt.UTC)
    local = dt.datetime.fromisoformat("1969-01-01T01:02:03.456789")
    for first in range(0, 80, 10):
        table.append(
            [
                {
                    "id": first + i, "b": 2**40 + i, "s": ["aaa", "BBB"][i % 2],
                    "p": [None, "x y", "%25/=é", ""][i % 4],
                    "d": dt.date(2024, 1, 1 + i % 2), "t": instant, "n": local,
                    "x": [0.5, None][i % 2], "m": Decimal("1.25"), "f": i % 3 == 0, "bin": b"ab",
                }
                for i in range(10)
            ]
        )  # fmt: skip
    table.delete("id % 10 = 3")
    table.update({"b": "b + 1"}, where="id % 10 = 4")
    table.rename_column("x", "xx")
    mine = sorted(map(_plain, mica.Table.open(path).scan().to_arrow().to_pylist()), key=lambda row: row["id"])
    assert len(mine) == 72
    assert sorted(kernel.rows(path), key=lambda row: row["id"]) == mine
    assert "string collate UTF8_LCASE" in kernel.schema(path)
    literal, every = kernel.of.expressions.Literal, mica.Table.open(path).snapshot.state.files.num_rows
    one, none = (kernel.files(path, "id", literal.ofInt(wanted)) for wanted in (35, -1))
    # Of checkpoints it takes the texts of statistics alone.
    assert none <= one < every
    assert none == 0 or properties is STRUCTS


@pytest.mark.slow
@pytest.mark.parametrize("collation", ["SPARK.UTF8_LCASE", "icu.UNICODE_CI", "icu.de_AUT_CI"])
def test_a_collated_table_of_kernel_is_written_and_kept_up(
    delta_session: SparkSession, tmp_path: Path, collation: str
) -> None:
    """Kernel upper-cases the whole name of a collation."""
    path, kernel = tmp_path / "t", Kernel(delta_session)
    kernel.create(path, collation)
    table = mica.Table.open(path)
    features = set(table.snapshot.protocol.writer_features or ())
    assert "domainMetadata" not in features
    for low, high in ((1, "a"), (2, "B")):
        frame = delta_session.sql(f"SELECT {low} AS id, '{high}' AS s, array('{high}') AS a")
        table.append(frame.coalesce(1))
    upper = table.scan(where="s = 'b'", columns=["id"])
    assert upper.to_df(delta_session).collect() == [(2,)]
    stats = table.snapshot.stats().to_pylist()
    assert all('"statsWithCollation":{' in text for text in stats)
    table.update({"id": "id + 10"}, where="id = 1")
    table.restats(spark=delta_session)
    table.optimize()
    assert set(table.snapshot.protocol.writer_features or ()) == features
    table.restore(2)
    table.clone(tmp_path / "copy")
    assert mica.check(path).ok
    copied = mica.Table.open(tmp_path / "copy").scan(columns=["id", "s"]).to_arrow().sort_by("id").to_pylist()
    assert copied == [{"id": 1, "s": "a"}, {"id": 2, "s": "B"}]
    assert [row["s"] for row in kernel.rows(path)] == ["a", "B"]
