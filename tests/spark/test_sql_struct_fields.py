"""Which values of an INSERT's structs go to which fields, beside delta-spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

import mica
from tests.oracle import RUNS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Fields of structs by their places: as many as the column has, fewer, more; with and without new ones.
OF_STRUCTS = [
    "INSERT INTO {t} SELECT 1, named_struct('b', 1, 'a', 5), array(named_struct('b', 1, 'a', 5))",
    "INSERT INTO {t} SELECT 2, named_struct('b', 1), NULL",
    "INSERT INTO {t} VALUES (3, named_struct('a', 1), NULL)",
    "INSERT INTO {t} (id, l) SELECT 4, array(named_struct('b', 1))",
    "INSERT INTO {t} SELECT 5, named_struct('x', 1, 'y', 5, 'z', 6), NULL",
    "INSERT WITH SCHEMA EVOLUTION INTO {t} SELECT 6, named_struct('b', 1, 'a', 5, 'z', 6), NULL",
    "INSERT INTO {t} SELECT 7, named_struct('b', 1, 'a', 5), NULL",
    "INSERT INTO {t} SELECT 8, named_struct('z', 1, 'b', 5, 'a', 6), NULL",
]


@pytest.mark.slow
def test_an_insert_takes_fields_of_structs_by_their_places(delta_session: SparkSession, tmp_path: Path) -> None:
    found = []
    for name, sql in RUNS.items():
        path = tmp_path / name
        mica.Table.create(path, "id BIGINT, st STRUCT<a: INT, b: INT>, l ARRAY<STRUCT<a: INT, b: INT>>")
        found.append([])
        for text in OF_STRUCTS:
            try:
                sql(text.format(t=f"delta.`{path}`"), delta_session)
            except (mica.MicaError, PySparkException):
                found[-1].append(None)
                continue
            table = mica.Table.open(path)
            found[-1].append((str(table.schema), sorted(table.to_arrow().to_pylist(), key=str)))
    assert found[0] == found[1]
    assert [one is None for one in found[0]] == [False, True, True, True, True, False, True, False]


#: By name where all columns have the table's names and types, else by place. Where the columns are listed, structs take
#: the names by place, and keep those of fields within arrays.
OF_NAMED_STRUCTS = [
    "INSERT INTO {t} SELECT 1 AS id, {st} AS st, array({st}) AS l, 's' AS s, 0 AS p",
    "INSERT INTO {t} SELECT 2L AS id, {st} AS st, array({st}) AS l, 's' AS s, 0 AS p",
    "INSERT INTO {t} SELECT 3 AS ID, {st} AS st, array({st}) AS l, 's' AS s, 0 AS p",
    "INSERT INTO {t} (id, st, p) SELECT 4 AS id, {st} AS st, 0 AS p",
    "INSERT INTO {t} PARTITION (p = 1) SELECT 5 AS id, {st} AS st, array({st}) AS l, 's' AS s",
    "INSERT INTO {t} SELECT 7 AS id, {st} AS st, array({st}) AS l, 's' COLLATE UTF8_LCASE AS s, 0 AS p",
    "INSERT OVERWRITE {t} PARTITION (p = 1) SELECT 6 AS id, {st} AS st, array({st}) AS l, 's' AS s",
    "INSERT INTO {t} (id, st, l, p) SELECT 8, {st}, array({st}), 0",
    "INSERT INTO {t} (l, s, id) SELECT array({st}), DEFAULT, 9",
    "INSERT INTO {t} (id, l) SELECT 10L, array({st})",
    "INSERT INTO {t} PARTITION (p = 1) (id, l) SELECT 11, array({st})",
    "INSERT WITH SCHEMA EVOLUTION INTO {t} (id, st) SELECT 12, named_struct('b', 1, 'a', 5, 'z', 6)",
]


@pytest.mark.slow
def test_an_insert_takes_fields_by_name_in_rows_that_need_no_cast(delta_session: SparkSession, tmp_path: Path) -> None:
    """As rows of a query of another table with the same columns: by place values changed their fields."""
    found = []
    for name, sql in RUNS.items():
        path = tmp_path / name
        mica.Table.create(
            path, "id INT, st STRUCT<a: INT, b: INT>, l ARRAY<STRUCT<a: INT, b: INT>>, s STRING, p INT", ["p"]
        )
        for text in OF_NAMED_STRUCTS:
            sql(text.format(t=f"delta.`{path}`", st="named_struct('b', 1, 'a', 5)"), delta_session)
        found.append(sorted(mica.Table.open(path).to_arrow().to_pylist(), key=str))
    assert found[0] == found[1]
    of_structs = [(row["id"], row["st"]["a"]) for row in found[0] if row["st"]]
    assert of_structs == [(1, 5), (12, 5), (2, 1), (3, 1), (4, 1), (6, 5), (7, 1), (8, 1)]
    of_arrays = [(row["id"], row["l"][0]["a"]) for row in found[0] if row["l"] and row["id"] > 7]
    assert of_arrays == [(10, 1), (11, 5), (8, 5), (9, 5)]
