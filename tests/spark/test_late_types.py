"""Values that Spark's Variants have no type for: an error that names their path, or strings, in a Spark session."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import mica
from mica.schema.arrow import variant_field
from tests.spark.readers import is_native
from tests.variant_files import ONE, column, container, file, metadata

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("by_tasks")

TIME = bytes([17 << 2]) + (3_600_000_000).to_bytes(8, "little")
ROWS = column([container([TIME], [0]), None], names=metadata("at"))


def test_a_time_is_refused_with_its_path_or_becomes_a_string(spark: SparkSession, tmp_path: Path) -> None:
    path = file(tmp_path / "v.parquet", ROWS)
    with pytest.raises(Exception, match=r"a value of v, a time is at \$\['at'\]") as caught:
        mica.read_parquet(path).to_df(spark).collect()
    assert "unsupported='string'" in str(caught.value)
    rows = mica.read_parquet(path).to_df(spark, unsupported="string").selectExpr("to_json(v) AS t").collect()
    assert [row.t for row in rows] == ['{"at":"01:00:00"}', None]


def _table(path: Path, rows: pa.Array, *, shreds: bool) -> mica.Table:
    table = mica.Table.create(path, "v VARIANT", properties={"delta.enableVariantShredding": str(shreds).lower()})
    table.append(pa.Table.from_arrays([rows.cast(variant_field("v").type)], schema=pa.schema([variant_field("v")])))
    return table


@pytest.mark.parametrize("shreds", [True, False])
def test_a_table_with_a_time_is_not_for_sparks_own_reader(spark: SparkSession, tmp_path: Path, shreds: bool) -> None:
    # Odd in one row of a thousand: where the others are shredded, it hides in a residual that no footer tells of.
    hidden = container([TIME], [0])
    table = _table(
        tmp_path / "t", column([*[container([ONE], [0])] * 999, hidden], names=metadata("at")), shreds=shreds
    )
    frame = table.scan().to_df(spark)
    assert not is_native(frame)
    with pytest.raises(Exception, match=r"a value of v, a time is at \$\['at'\]"):
        frame.selectExpr("variant_get(v, '$.at', 'string')").collect()


def test_sparks_own_reader_is_taken_where_the_log_or_the_footers_say_so(spark: SparkSession, tmp_path: Path) -> None:
    table = _table(tmp_path / "t", column([container([ONE], [0])], names=metadata("at")), shreds=True)
    assert is_native(table.scan().to_df(spark))
    # Without the tag nobody knows what a file of mica's holds.
    (commit,) = sorted((tmp_path / "t" / "_delta_log").glob("*1.json"))
    said = '"mica.lateTypes":"no"'
    text = commit.read_text()
    assert said in text
    commit.write_text(text.replace(said, ""))
    assert not is_native(mica.Table.open(tmp_path / "t").scan().to_df(spark))


def test_files_that_spark_wrote_are_for_its_own_reader(delta_session: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    rows = delta_session.range(10).selectExpr("parse_json('{\"a\": 1}') AS v")
    rows.write.format("delta").save(path)
    assert is_native(mica.Table.open(path).scan().to_df(delta_session))


def test_a_table_gives_strings_where_they_are_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "v VARIANT")
    table.append(pa.Table.from_arrays([ROWS.cast(variant_field("v").type)], schema=pa.schema([variant_field("v")])))
    rows = table.scan().to_df(spark, unsupported="string").selectExpr("variant_get(v, '$.at', 'string') AS t").collect()
    assert {row.t for row in rows} == {"01:00:00", None}
    assert {v and v["at"].hour for v in table.scan().to_pandas()["v"]} == {1, None}
    with pytest.raises(mica.UserError):
        table.scan().to_df(spark, unsupported="null")  # type: ignore[arg-type]


def test_strings_are_given_where_spark_compares_by_a_collation_too(spark: SparkSession, tmp_path: Path) -> None:
    path = file(tmp_path / "v.parquet", ROWS)
    scan = mica.read_parquet(path, where="(v:at::string) COLLATE UNICODE_CI = '01:00:00'", columns=["v"])
    rows = scan.to_df(spark, unsupported="string").selectExpr("to_json(v) AS t").collect()
    assert [row.t for row in rows] == ['{"at":"01:00:00"}']
    with pytest.raises(Exception, match="a time is at"):
        scan.to_df(spark).collect()
