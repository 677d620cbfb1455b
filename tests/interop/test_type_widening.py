"""Columns whose type became wider: rows and skipping beside delta-spark, and changes that nobody knows."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

import mica
from mica.errors import UnsupportedTableError
from tests.oracle import conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Column → (type before, values, type after, a value that only the wider type holds).
COLUMNS = {
    "fd": ("FLOAT", "0.7 0.1 16777217 3.4028235e38 1e-45 1.17549435e-38 -0.7 'NaN'".split(), "DOUBLE", "0.7D"),
    "bs": ("BYTE", "-128 127 0 1 2 3 NULL 5".split(), "SHORT", "300"),
    "bl": ("BYTE", "-128 127 0 1 2 3 NULL 5".split(), "BIGINT", "9223372036854775807"),
    "il": ("INT", "-2147483648 2147483647 0 1 2 3 NULL 5".split(), "BIGINT", "2147483648"),
    "id": ("INT", "-2147483648 2147483647 0 1 2 3 NULL 5".split(), "DOUBLE", "0.5D"),
    "bm": ("BYTE", "-128 127 0 1 2 3 NULL 5".split(), "DECIMAL(12,2)", "1234567890.12"),
    "im": ("INT", "-2147483648 2147483647 0 1 2 3 NULL 5".split(), "DECIMAL(11,1)", "1.5"),
    "lm": ("BIGINT", "-9223372036854775808 9223372036854775807 0 1 2 3 NULL 5".split(), "DECIMAL(22,2)", "0.01"),
    "mm": ("DECIMAL(5,2)", "-999.99 999.99 0 0.1 0.01 1 NULL 5".split(), "DECIMAL(10,4)", "0.0099"),
    "dt": (
        "DATE",
        [*(f"DATE'{d}'" for d in "2020-01-01 1969-12-31 0001-01-01 9999-12-31 1582-10-15 2020-02-29".split()),
         "NULL", "NULL"],
        "TIMESTAMP_NTZ",
        "TIMESTAMP_NTZ'2020-01-01 12:00:00.0009'",
    ),
}  # fmt: skip
PREDICATES = [
    *(f"{c} {op} {v}" for c in ("fd", "s.x", "id") for op in "< <= = > >= <>".split() for v in ("0.7D", "0.1D")),
    "fd = cast(0.7F as double)", "fd < 1e-45D", "fd >= 3.4028235e38D", "fd IN (0.7D, 0.5D)",
    "fd BETWEEN 0.69D AND 0.7D",
    "bs = 127", "bs > 127", "bl >= 9223372036854775807", "il > 2147483647", "il = -2147483648", "id < -2147483647.5D",
    "bm > 127.5", "bm = 127", "im = 1.5", "im <= 2", "lm < 0.01",
    "lm = 9223372036854775807", "lm > 9223372036854775806",
    "mm = 0.01", "mm < 0.01", "mm > 0.0099", "mm >= 999.99", "dt = TIMESTAMP_NTZ'2020-01-01 00:00:00'",
    "dt > TIMESTAMP_NTZ'2020-01-01 12:00:00'", "dt = DATE'9999-12-31'", "dt < DATE'0001-01-02'", "p = 0.7D", "p < 0.7D",
]  # fmt: skip


@pytest.fixture(scope="module")
def widened(delta_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file a row, each column made wider, then a row of wide values; with a checkpoint in between."""
    spark, path = delta_session, str(tmp_path_factory.mktemp("widening") / "t")
    columns = ", ".join(f"{name} {before}" for name, (before, *_) in COLUMNS.items())
    spark.sql(
        f"CREATE TABLE delta.`{path}` ({columns}, s STRUCT<x: FLOAT>, a ARRAY<FLOAT>, p FLOAT) USING delta "
        "PARTITIONED BY (p) TBLPROPERTIES ('delta.enableTypeWidening' = 'true', 'delta.checkpointInterval' = '2', "
        "'delta.feature.timestampNtz' = 'supported')"
    )
    rows = []
    for i in range(8):
        values = ", ".join(f"CAST({values[i]} AS {before})" for before, values, *_ in COLUMNS.values())
        x = f"CAST({COLUMNS['fd'][1][i]} AS FLOAT)"
        rows.append(f"SELECT {values}, struct({x}), array({x}), {x}")
    with conf(spark, {"spark.sql.files.maxRecordsPerFile": "1"}):
        spark.sql(f"INSERT INTO delta.`{path}` {' UNION ALL '.join(rows)}")
    after = {name: after for name, (_, _, after, _) in COLUMNS.items()} | dict.fromkeys(
        ("s.x", "a.element", "p"), "DOUBLE"
    )
    changes = ", ".join(f"{name} TYPE {type_}" for name, type_ in after.items())
    spark.sql(f"ALTER TABLE delta.`{path}` ALTER COLUMN {changes}")
    wide = ", ".join(f"CAST({last} AS {type_})" for _, _, type_, last in COLUMNS.values())
    spark.sql(f"INSERT INTO delta.`{path}` SELECT {wide}, struct(0.7D), array(0.7D), 0.5D")
    return path


@pytest.mark.slow
def test_rows_of_all_widths_are_those_of_delta_spark(delta_session: SparkSession, widened: str) -> None:
    shown = [*(f"CAST({c} AS STRING) AS {c}" for c in COLUMNS), "CAST(s.x AS STRING) AS x", "CAST(p AS STRING) AS p"]
    expected = delta_session.read.format("delta").load(widened).selectExpr(*shown).collect()
    for frame in (mica.Table.open(widened).to_df(delta_session), delta_session.createDataFrame(_arrow(widened))):
        assert sorted(map(tuple, frame.selectExpr(*shown).collect()), key=repr) == sorted(
            map(tuple, expected), key=repr
        )


def _arrow(path: str) -> Any:
    return mica.Table.open(path).scan().to_arrow()


@pytest.mark.slow
def test_no_row_is_skipped_by_bounds_of_another_width(delta_session: SparkSession, widened: str) -> None:
    frame = delta_session.read.format("delta").load(widened)
    expected = frame.selectExpr(*(f"count_if({where})" for where in PREDICATES)).collect()[0]
    table = mica.Table.open(widened)
    wrong = [(w, n) for w, n in zip(PREDICATES, expected, strict=True) if table.scan(where=w).count() != n]
    assert wrong == []


def test_bounds_of_older_files_still_skip_and_a_check_finds_them_sound(widened: str) -> None:
    table = mica.Table.open(widened)
    assert len(table.scan(where="fd = 0.1D").plan.dropped) >= 4
    assert len(table.scan(where="il > 2147483647").plan.dropped) >= 7
    assert list(mica.check(widened)) == []


@pytest.mark.parametrize(
    "change",
    [
        {"fromType": "string", "toType": "long"}, {"fromType": "long", "toType": "double"},
        {"fromType": "decimal(10,2)", "toType": "decimal(11,4)"}, {"fromType": "long", "toType": "decimal(19,0)"},
        {"fromType": "double", "toType": "float"}, {"toType": "long"}, "nonsense",
        {"fromType": ["int"], "toType": "long"},
    ],
)  # fmt: skip
def test_a_change_that_is_not_known_is_refused(shared: Path, tmp_path: Path, change: Any) -> None:
    def load(change: Any) -> mica.Table:
        shutil.rmtree(tmp_path / "t", ignore_errors=True)
        shutil.copytree(shared / "conformance" / "delta-tables" / "type-widening", tmp_path / "t")
        last = max((tmp_path / "t" / "_delta_log").glob("*.json"))
        lines = [
            orjson.loads(line) for log in sorted(last.parent.glob("*.json")) for line in log.read_bytes().splitlines()
        ]
        metadata = [line for line in lines if "metaData" in line][-1]
        schema = orjson.loads(metadata["metaData"]["schemaString"])
        schema["fields"][0]["metadata"] = {"delta.typeChanges": [change]}
        metadata["metaData"]["schemaString"] = orjson.dumps(schema).decode()
        last.with_name(f"{int(last.stem) + 1:020}.json").write_bytes(orjson.dumps(metadata))
        return mica.Table.open(tmp_path / "t")

    assert load({"fromType": "byte", "toType": "long"}).scan().to_arrow().num_rows == 2
    with pytest.raises(UnsupportedTableError) as refused:
        load(change).scan().count()
    assert refused.value.code == "UNSUPPORTED_TYPE_CHANGE"
    assert "byte_long" in str(refused.value)
