"""What a scan computes of a query's rows is what Spark computes, and fails where Spark fails."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import mica
from mica.query import copies, here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DDL = """id BIGINT, n INT, x DOUBLE, f FLOAT, m DECIMAL(18,2), s STRING, k STRING, c CHAR(4),
    l STRING COLLATE UTF8_LCASE, b BINARY, t BOOLEAN, dt DATE, ts TIMESTAMP, tn TIMESTAMP_NTZ, v VARIANT,
    st STRUCT<a: INT, s: STRING>"""

#: Every column is null in some rows.
ROWS = """SELECT id, nullif(int(id % 7), 3) n, if(id % 9 = 0, NULL, if(id % 9 = 1, double('NaN'), id / 3 - 50)) x,
    float(nullif(id % 5, 2)) f, nullif(decimal(id / 7), 0)::decimal(18,2) m, nullif('é' || id, 'é5') s,
    if(id % 4 = 1, NULL, if(id % 4 = 2, '', '😀x')) k, if(id % 3 = 0, NULL, 'x' || id % 9) c,
    if(id % 4 = 0, NULL, 'Ä' || id) l, nullif(binary('b' || id), binary('b6')) b, nullif(id % 2 = 0, id % 5 = 0) t,
    date_add(DATE'1500-01-01', int(nullif(id, 9) * 997)) dt, timestamp_micros(nullif(id, 10) * 9876543210123) ts,
    if(id % 3 = 1, NULL, TIMESTAMP_NTZ'2024-02-29 23:59:59.999999') tn,
    parse_json(nullif('{"k": "' || id || '", "n": ' || id || '}', '{"k": "4", "n": 4}')) v,
    if(id % 8 = 0, NULL, named_struct('a', int(nullif(id % 6, 1)), 's', 'y' || id)) st FROM range(200)"""

#: Expressions, and whether the scan computes them.
TEXTS = [
    ("'a constant'", True),
    ("NULL::STRING", True),
    ("current_timestamp()", True),
    ("current_date()", True),
    ("DATE'2024-02-29'", True),
    ("1.5BD", True),
    ("id + 1", True),
    ("n * 2 - n", True),
    ("id * n + 1L", True),
    ("x * 2 + n", True),
    ("x - x", True),
    ("s || '/' || k", True),
    ("concat(s, k)", True),
    ("concat(c, 'x')", None),
    ("length(s)", True),
    ("length(k)", True),
    ("substring(s, 2, 2)", True),
    ("substring(k, -1)", True),
    ("coalesce(s, k, 'none')", True),
    ("coalesce(n, 0)", True),
    ("coalesce(v:n::bigint, id)", True),
    ("CASE WHEN id > 100 THEN 'large' WHEN n = 1 THEN s END", None),
    ("if(t, s, k)", None),
    ("st.a", True),
    ("st.s || 'x'", True),
    ("v:k::string || '!'", True),
    ("v:n::bigint + 1", True),
    ("timestamp_micros(v:n::bigint)", True),
    ("date(ts)", True),
    ("year(dt)", True),
    ("date_trunc('HOUR', ts)", True),
    ("date_add(dt, 1)", True),
    ("double(n)", True),
    ("bigint(n)", True),
    ("l", True),
    ("m", True),
    ("b", True),
    ("tn", True),
    # Spark's: other letters than Python knows, collations, sums of decimals and of floats, texts of numbers.
    ("upper(s)", False),
    ("l || 'x'", False),
    ("coalesce(l, 'x')", False),
    ("m + 1", False),
    ("f + f", False),
    ("string(id)", False),
    ("x / 3", False),
    ("rand(1)", False),
    ("length(b)", False),
    ("b || b", False),
    ("coalesce(s, v:k::int::string)", False),
    ("try_add(id, 1)", False),
]  # fmt: skip


@pytest.fixture(scope="module")
def source(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    table = mica.Table.create(tmp_path_factory.mktemp("computed") / "source", DDL)
    table.append(spark.sql(ROWS))
    return table.path


@pytest.fixture(autouse=True)
def large(by_tasks: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are read as large ones are."""
    monkeypatch.setattr(here, "rows", lambda *_: None)


def inserted(spark: SparkSession, path: Path, query: str) -> list[str]:
    """The rows of a query after they were inserted."""
    mica.sql(f"CREATE OR REPLACE TABLE delta.`{path}` USING mica AS {query}", spark)
    return sorted(map(str, mica.Table.open(path).to_arrow().to_pylist()))


@pytest.mark.slow
@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize(("text", "is_computed"), TEXTS, ids=[text for text, _ in TEXTS])
def test_a_value_is_that_of_spark(
    spark: SparkSession, tmp_path: Path, source: str, fusions: list[bool], monkeypatch: pytest.MonkeyPatch,
    text: str, is_computed: bool | None,
) -> None:  # fmt: skip
    query = f"SELECT id, {text} AS y FROM delta.`{source}` WHERE id >= 3"
    found = inserted(spark, tmp_path / "here", query)
    if is_computed is not None:
        assert fusions == [is_computed]
    monkeypatch.setattr(copies, "are_stored", lambda _: False)
    if "current" not in text:
        assert found == inserted(spark, tmp_path / "there", query)
    else:
        assert len(set(mica.Table.open(tmp_path / "here").to_arrow()["y"].to_pylist())) == 1
    assert len(found) == 197


@pytest.mark.slow
@pytest.mark.usefixtures("compiled")
def test_a_value_that_is_too_large_fails(
    spark: SparkSession, tmp_path: Path, source: str, fusions: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only of rows that are written, and not where Spark cuts its bits."""
    query = f"SELECT id, id + 9223372036854775700 AS y FROM delta.`{source}`"
    with pytest.raises(mica.UserError) as raised:
        inserted(spark, tmp_path / "here", query)
    assert raised.value.code == "ARITHMETIC_OVERFLOW"
    assert not (tmp_path / "here").exists() or not list((tmp_path / "here").rglob("*.parquet"))
    assert len(inserted(spark, tmp_path / "here", f"{query} WHERE id < 100")) == 100
    assert fusions == [True, True]
    monkeypatch.setattr(copies, "are_stored", lambda _: False)
    assert inserted(spark, tmp_path / "here", f"{query} WHERE id < 100") == inserted(
        spark, tmp_path / "there", f"{query} WHERE id < 100"
    )


@pytest.mark.usefixtures("compiled")
def test_a_value_that_is_too_large_is_cut_without_ansi(
    spark: SparkSession, tmp_path: Path, source: str, fusions: list[bool]
) -> None:
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        found = inserted(spark, tmp_path / "t", f"SELECT id, id + 9223372036854775700 AS y FROM delta.`{source}`")
        assert (len(found), fusions) == (200, [False])
        inserted(spark, tmp_path / "t", f"SELECT id, s || 'x' AS y FROM delta.`{source}`")
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    assert fusions == [False, True]


@pytest.mark.usefixtures("compiled")
def test_rows_are_computed_of_a_version_under_deletes_and_for_rules(
    spark: SparkSession, tmp_path: Path, source: str, fusions: list[bool]
) -> None:
    target = tmp_path / "t"
    mica.Table.create(
        target, "id BIGINT, y STRING, g BIGINT GENERATED ALWAYS AS (id * 2), d INT DEFAULT 7, at TIMESTAMP",
        properties={"delta.columnMapping.mode": "name", "delta.enableRowTracking": "true"},
    ).add_constraint("known", "y <> 'éé190'")  # fmt: skip
    mica.sql(
        f"""INSERT INTO delta.`{target}` (at, id, y) SELECT current_timestamp(), id + 1000, coalesce(s, 'none')
        FROM delta.`{source}` VERSION AS OF 1 WHERE id < 190 AND n = 1""",
        spark,
    )
    rows = mica.Table.open(target).to_arrow().sort_by("id").to_pylist()
    assert [(r["id"], r["y"], r["g"], r["d"]) for r in rows] == [
        (n + 1000, f"é{n}", 2 * n + 2000, 7) for n in range(190) if n % 7 == 1
    ]
    assert len({r["at"] for r in rows}) == 1
    with pytest.raises(mica.UserError) as raised:
        mica.sql(f"INSERT INTO delta.`{target}` (id, y) SELECT id, 'é' || s FROM delta.`{source}`", spark)
    assert raised.value.code == "CONSTRAINT_VIOLATED"
    assert fusions == [True, True]


@pytest.mark.slow
@pytest.mark.usefixtures("compiled")
def test_integers_are_cast_where_they_are_written(
    spark: SparkSession, tmp_path: Path, source: str, fusions: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those that do not fit."""
    for name in ("here", "there"):
        target = mica.Table.create(tmp_path / name, "id BIGINT, n BIGINT, k BIGINT, y TINYINT, c INT")
        insert = f"INSERT INTO delta.`{target.path}`"
        mica.sql(f"{insert} SELECT id, n, year(dt), n, 7 FROM delta.`{source}`", spark)
        with pytest.raises(mica.UserError) as raised:
            mica.sql(f"{insert} (id, y) SELECT id, id FROM delta.`{source}`", spark)
        assert raised.value.code in ("INVALID_VALUE", "ARITHMETIC_OVERFLOW", "INVALID_CAST")
        monkeypatch.setattr(copies, "are_stored", lambda _: False)
    assert fusions[:2] == [True, True]
    here, there = (sorted(map(str, mica.Table.open(tmp_path / n).to_arrow().to_pylist())) for n in ("here", "there"))
    assert here == there
    assert len(here) == 200
