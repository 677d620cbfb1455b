"""What statements cast on the way into a table, as delta-spark does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import mica
from tests.oracle import conf
from tests.support import dealt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


SOURCE = "USING (SELECT 3 AS id, 2 AS b, 'm' AS s, 1.5D AS d, NULL AS r, NULL AS v, 1 AS p) s ON t.id = s.id"
#: No policy changes a value of these; `t` is the table.
WITHOUT_A_CAST = (
    "INSERT INTO {t} (id, b, s) VALUES (1, 7, 'x'), (2, NULL, DEFAULT)",
    "INSERT INTO {t} BY NAME SELECT 's' AS s, named_struct('x', 1) AS r, 3 AS id",
    "INSERT INTO {t} REPLACE WHERE id = 9 SELECT 9, 1L, NULL, 3, named_struct('y', 2), NULL, 1",
    "UPDATE {t} SET b = id, s = 'y' WHERE id = 2",
    "UPDATE {t} SET r.x = id WHERE id = 1",
    "INSERT INTO {t} PARTITION (p = '1') (id, s, d) SELECT 5, 6, 7",
    "MERGE INTO {t} t {source} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    "MERGE INTO {t} t {source} AND false WHEN NOT MATCHED THEN INSERT (id, b) VALUES (s.id, s.b)",
)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["STRICT", "LEGACY"])
def test_statements_without_a_cast_run_under_any_policy(
    delta_session: SparkSession, tmp_path: Path, policy: str
) -> None:
    """They were refused by their first word."""
    found = []
    with conf(delta_session, {"spark.sql.storeAssignmentPolicy": policy}):
        for name, run in (("theirs", delta_session.sql), ("ours", lambda text: mica.sql(text, delta_session))):
            ddl = "id INT, b BIGINT, s STRING, d DOUBLE, r STRUCT<x: INT>, v VARIANT, p INT"
            table = mica.Table.create(tmp_path / name, ddl, ["p"])
            t = f"delta.`{table.path}`"
            for text in (WITHOUT_A_CAST[0], *dealt(WITHOUT_A_CAST[1:], policy == "LEGACY", 4)):
                run(text.format(t=t, source=SOURCE))
            found.append(sorted(table.refresh().to_arrow().to_pylist(), key=str))
        run(f"INSERT INTO {t} (id, v) SELECT 7, '{{\"a\": 1}}'")  # theirs has no JSON here
        for text in (
            f"MERGE INTO {t} t {SOURCE} WHEN MATCHED THEN UPDATE SET id = t.b",
            f"MERGE INTO {t} t {SOURCE} WHEN NOT MATCHED BY SOURCE THEN UPDATE SET s = t.d",
            f"INSERT INTO {t} (id) SELECT b FROM {t}",
            f"UPDATE {t} SET r.x = b",
            f"UPDATE {t} SET id = soundex(s)",
        ):
            with pytest.raises(mica.UserError, match="storeAssignmentPolicy"):
                run(text)
    assert found[0] == found[1]


def test_variants_within_other_values_are_cast_where_none_is_null(delta_session: SparkSession, tmp_path: Path) -> None:
    """Spark casts a Variant only to what may be null, and such literals may not."""
    found = []
    for name, run in (("theirs", delta_session.sql), ("ours", lambda text: mica.sql(text, delta_session))):
        ddl = "l ARRAY<INT>, m MAP<STRING, DATE>, r STRUCT<x: BIGINT, y: STRING>, d ARRAY<STRUCT<x: INT>>"
        table = mica.Table.create(tmp_path / name, ddl)
        run(f"""INSERT INTO delta.`{table.path}` SELECT array(parse_json('1')), map('a', parse_json('"2020-01-31"')),
            struct(parse_json('7'), 'x'), array(struct(parse_json('3')), struct(parse_json('null')))""")
        found.append(table.refresh().to_arrow().to_pylist())
    assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.parametrize("rows", ["range(3)", "VALUES (0), (1), (2) AS r (id)"])
def test_a_merge_casts_intervals(delta_session: SparkSession, tmp_path: Path, rows: str) -> None:
    """Arrow has none of months, and no column is one."""
    found = []
    source = f"SELECT id, INTERVAL '2' YEAR * id AS `n m`, INTERVAL '1 02:03:04.5' DAY TO SECOND * id AS s FROM {rows}"
    for name, run in (("theirs", delta_session.sql), ("ours", lambda text: mica.sql(text, delta_session))):
        table = mica.Table.create(tmp_path / name, "id INT, n SMALLINT, s STRING", data=[{"id": 1}])
        run(f"""MERGE INTO delta.`{table.path}` t USING (SELECT id, CAST(`n m` AS INTERVAL YEAR) AS `n m`, s
            FROM ({source})) s ON t.id = s.id WHEN MATCHED AND s.`n m` > INTERVAL '1' YEAR THEN UPDATE SET n = s.`n m`
            WHEN NOT MATCHED THEN INSERT (id, n, s) VALUES (s.id, s.`n m`, s.s)""")
        found.append(sorted(table.refresh().to_arrow().to_pylist(), key=str))
    assert found[0] == found[1]
    assert [row["n"] for row in found[0]] == [0, 2, 4]
