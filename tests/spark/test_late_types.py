"""Values that Spark's Variants have no type for: an error that names their path, or strings, in a Spark session."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import mica
from mica.schema.arrow import variant_field
from tests.variant_files import column, container, file, metadata

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIME = bytes([17 << 2]) + (3_600_000_000).to_bytes(8, "little")
ROWS = column([container([TIME], [0]), None], names=metadata("at"))


def test_a_time_is_refused_with_its_path_or_becomes_a_string(spark: SparkSession, tmp_path: Path) -> None:
    path = file(tmp_path / "v.parquet", ROWS)
    with pytest.raises(Exception, match=r"a value of v, a time stands at \$\['at'\]") as caught:
        mica.read_parquet(path).to_df(spark).collect()
    assert "unsupported='string'" in str(caught.value)
    rows = mica.read_parquet(path).to_df(spark, unsupported="string").selectExpr("to_json(v) AS t").collect()
    assert [row.t for row in rows] == ['{"at":"01:00:00"}', None]


def test_a_table_gives_strings_where_they_are_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "v VARIANT")
    table.append(pa.Table.from_arrays([ROWS.cast(variant_field("v").type)], schema=pa.schema([variant_field("v")])))
    rows = table.scan().to_df(spark, unsupported="string").selectExpr("variant_get(v, '$.at', 'string') AS t").collect()
    assert {row.t for row in rows} == {"01:00:00", None}
    assert {v and v["at"].hour for v in table.scan().to_pandas()["v"]} == {1, None}
    with pytest.raises(mica.UserError):
        table.scan().to_df(spark, unsupported="null")  # type: ignore[arg-type]
