"""Queries as values of UPDATE and MERGE give what they give in delta-spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import mica

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_an_update_takes_values_of_queries(delta_session: SparkSession, tmp_path: Path) -> None:
    spark, places = delta_session, [f"delta.`{tmp_path / name}`" for name in ("ours", "theirs")]
    types = ["INT", "STRING", "DECIMAL(5,2)", "TIMESTAMP", "BINARY", "DATE", "DOUBLE", "BOOLEAN", "TIMESTAMP_NTZ"]
    names = [f"c{i}" for i in range(len(types))]
    values = """-7, 'it''s \\\\ (x', 1.25, TIMESTAMP'2024-10-27 00:30:00.000001Z', X'00FF', DATE'2024-02-29', 0.1D,
                true, TIMESTAMP_NTZ'2024-10-27 02:30:00'"""
    columns = ", ".join(f"{name} {type_}" for name, type_ in zip(names, types, strict=True))
    for t, run in zip(places, (lambda text: mica.sql(text, spark), spark.sql), strict=True):
        run(f"CREATE TABLE {t} (id INT, {columns}) USING {'mica' if t == places[0] else 'delta'}")
        run(f"INSERT INTO {t} (id) VALUES (1), (2)")
        run(f"INSERT INTO {t} SELECT 3, {values}")
        assigned = ", ".join(f"{name} = (SELECT max({name}) FROM {t} WHERE id = 3)" for name in names)
        run(f"UPDATE {t} x SET {assigned} WHERE x.id = 1")
        run(f"UPDATE {t} x SET c0 = x.id + (SELECT max(x.id) FROM {t} x) * 2, c1 = (SELECT c1 FROM {t} WHERE false)")
        run(f"MERGE INTO {t} USING (SELECT 2 AS id) s ON {t}.id = s.id WHEN MATCHED THEN UPDATE SET c0 = (SELECT 9)")
    ours, theirs = (sorted(map(tuple, spark.sql(f"SELECT * FROM {t}").collect())) for t in places)
    assert ours == theirs
    for wrong, why in (
        (f"(SELECT max(o.id) FROM {places[1]} o WHERE o.id = x.id)", "MERGE INTO"),
        (f"(SELECT id FROM {places[1]})", "more than one row"), ("(SELECT 1, 2)", "2 columns"),
        ("(SELECT array(1))", "plain types"),
    ):  # fmt: skip
        with pytest.raises(mica.UserError) as caught:
            mica.sql(f"UPDATE {places[0]} x SET c0 = {wrong}", spark)
        assert why in f"{caught.value} {caught.value.hint}"
