"""`mica.sql` gives the rows that Spark gives: random queries, over narrowed scans and over whole tables. So do actions
of an enabled session's DataFrames, whose plans are narrowed.

Spark's side reads the same tables whole (`to_df`), so it is Spark that evaluates every part of the text.
"""

from __future__ import annotations

import datetime as dt
import random
import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mica
from mica.query import frames
from mica.scan import little
from mica.table import marked
from tests.support import CAMPAIGN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = 4_000 if CAMPAIGN else 15

WORDS = ["a", "b", "Ä", "ä", "x'y", "", "zz"]
#: What a generated query may use as a value, by type.
VALUES = {
    "BIGINT": ["id", "st.x", "v:n::bigint", "variant_get(v, '$.n', 'bigint')", "try_variant_get(v, '$.odd', 'bigint')",
               "try_cast(v:odd AS BIGINT)", "length(s)", "CASE WHEN id > 20 THEN v:n::bigint ELSE 0 END",
               "coalesce(v:n::bigint, 3)", "coalesce(try_variant_get(v, '$.odd', 'bigint'), id)"],
    "STRING": ["s", "st.y", "v:k::string", "variant_get(v, '$.o.k', 'string')", "v:odd::string", "upper(v:k::string)",
               "coalesce(s, v:k::string)", "substring(s, 1, 1)", "left(v:k::string, 2)", "substring(s, 2)"],
    "COLLATED": ["c", "s COLLATE UNICODE_CI", "v:k::string COLLATE UTF8_LCASE"],
    "DOUBLE": ["x", "v:f::double", "try_variant_get(v, '$.odd', 'double')"],
    "DATE": ["d", "v:d::date", "date_add(d, 3)", "date_sub(v:d::date, st.x::int)", "to_date(t)", "nvl(v:d::date, d)"],
    "TIMESTAMP": ["t", "timestamp_micros(v:us::bigint)", "timestamp_seconds(v:n::bigint)", "timestamp_millis(st.x)"],
    "DECIMAL": ["m", "variant_get(v, '$.m', 'decimal(10,2)')"],
    "BOOLEAN": ["b", "v:b::boolean"],
}  # fmt: skip
#: What rows are grouped by.
KEYS = {
    "STRING": VALUES["STRING"], "BIGINT": VALUES["BIGINT"], "BOOLEAN": VALUES["BOOLEAN"],
    "TIME": ["hour(timestamp_micros(v:us::bigint))", "year(d)", "date_trunc('MONTH', t)", "minute(t)", "date(t)",
             "month(timestamp_micros(v:us::bigint))", "to_date(v:d::string)", "day(v:d::date)"],
}  # fmt: skip
VALUES["INT"] = [*KEYS["TIME"][:2], KEYS["TIME"][3], "datediff(d, DATE'2020-01-10')", "datediff(DATE'2020-02-01', d)"]
CONSTANTS = {
    "INT": ["1970", "2020", "10", "NULL", "3L"],
    "BIGINT": ["0", "7", "20", "33L", "NULL", "3S"],
    "STRING": ["'a'", "'b'", "'x\\'y'", "''", "NULL", "'Ä'"],
    "COLLATED": ["'A'", "'ä'", "'zz'"],
    "DOUBLE": ["1.5D", "0D", "20", "double('NaN')", "2.25"],
    "DATE": ["DATE'2020-01-05'", "DATE'2020-02-01'"],
    "TIMESTAMP": ["TIMESTAMP'2020-01-05 10:00:00'", "TIMESTAMP'2020-01-20'"],
    "DECIMAL": ["3.25", "10", "0.5BD"],
    "BOOLEAN": ["true", "false"],
}


def _rows(rng: random.Random, first: int, count: int) -> list[dict[str, Any]]:
    rows = []
    for i in range(first, first + count):
        day = dt.date(2020, 1, 1) + dt.timedelta(days=i % 40)
        v: dict[str, Any] = {
            "n": i % 11,
            "k": rng.choice(WORDS),
            "f": i / 4,
            "d": day,
            "us": i * 10**12,
            "b": i % 3 == 0,
        }
        v |= {"o": {"k": rng.choice(WORDS)}, "odd": rng.choice([1, "seven", 2.5, None, [1]])}
        v |= {"l": [i, i + 1], "m": i % 7}
        if rng.random() < 0.2:
            v.pop(rng.choice(sorted(v)))
        row = {
            "id": i, "s": rng.choice([*WORDS, None]), "c": rng.choice([*WORDS, None]), "b": i % 2 == 0,
            "x": rng.choice([i / 2, float("nan"), None]), "d": day, "m": i % 9,
            "t": dt.datetime(2020, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=i), "p": "even" if i % 2 == 0 else "odd",
            "st": rng.choice([{"x": i % 5, "y": rng.choice(WORDS)}, None]),
            "v": v if rng.random() < 0.95 else None,
        }  # fmt: skip
        rows.append(row)
    return rows


DDL = (
    "id BIGINT NOT NULL, s STRING, c STRING COLLATE UNICODE_CI, b BOOLEAN, x DOUBLE, d DATE, m DECIMAL(10,2), "
    "t TIMESTAMP, p STRING, st STRUCT<x: BIGINT, y: STRING>, v VARIANT"
)


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, seed: int) -> Iterator[None]:
    """`one`, of three files, and `two`, partitioned, with deleted rows: names for `mica.sql`, and views for Spark."""
    rng = random.Random(seed)
    folder = tmp_path_factory.mktemp("sql")
    for name, partitions in (("one", []), ("two", ["p"])):
        table = mica.Table.create(
            folder / name, DDL, partition_by=partitions, properties={"delta.enableDeletionVectors": "true"}
        )
        for first in (0, 20, 40):
            table.append(_rows(rng, first, 20))
        if partitions:
            table.delete("id % 10 = 3")
        table.to_df(spark).createOrReplaceTempView(f"whole_{name}")
        mica.register(f"narrow_{name}", table.path)
        with mock.patch.object(little, "FEW_FILE_BYTES", -1):  # few rows have no mark
            frame = marked.of_table(spark, table.to_df(spark), table.snapshot)
        frame.createOrReplaceTempView(f"marked_{name}")
    yield
    for name in ("whole_one", "whole_two", "marked_one", "marked_two"):
        spark.catalog.dropTempView(name)


class Generator:
    """A random query, in which `{one}` and `{two}` are the tables."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def value(self, kind: str, alias: str = "") -> str:
        text = self.rng.choice(VALUES[kind])
        if not alias:
            return text
        return re.sub(r"(?<![\w.:$'])\b(id|s|c|b|x|d|m|t|st|v)\b(?![('])", rf"{alias}.\1", text)

    def condition(self, alias: str = "", depth: int = 2) -> str:
        rng = self.rng
        if depth and rng.random() < 0.5:
            parts = [self.condition(alias, depth - 1) for _ in range(rng.randint(2, 3))]
            return f"({rng.choice([' AND ', ' AND ', ' OR ']).join(parts)})"
        if depth and rng.random() < 0.1:
            return f"NOT {self.condition(alias, depth - 1)}"
        kind = rng.choice(sorted(VALUES))
        value, constants = self.value(kind, alias), CONSTANTS[kind]
        match rng.randint(0, 6):
            case 0:
                return f"{value} IS {rng.choice(['', 'NOT '])}NULL"
            case 1:
                return f"{value} {rng.choice(['', 'NOT '])}IN ({self.listed(constants)})"
            case 2 if kind != "BOOLEAN":
                return f"{value} BETWEEN {rng.choice(constants)} AND {rng.choice(constants)}"
            case 3 if kind == "STRING":
                pattern = rng.choice(["a%", "%b", "x_y", "_"])
                return f"{value} LIKE '{pattern}'"
            case 4 if kind in ("STRING", "COLLATED"):
                return f"startswith({value}, 'a')"
            case 5:
                return f"({alias}.v IS NOT NULL)" if alias else "v IS NULL"
        return f"{value} {rng.choice(['=', '<', '<=', '>', '>=', '<>', '<=>'])} {rng.choice(constants)}"

    def listed(self, constants: list[str]) -> str:
        return ", ".join(self.rng.choices(constants, k=self.rng.choice([2, 12])))

    def table(self) -> str:
        return self.rng.choice(["{one}", "{two}"])

    def values(self, alias: str = "") -> str:
        kinds = self.rng.choices([k for k in sorted(VALUES) if k != "COLLATED"], k=self.rng.randint(1, 3))
        return ", ".join(f"{self.value(kind, alias)} AS c{i}" for i, kind in enumerate(kinds))

    def measures(self) -> str:
        """What an aggregate may take of rows in groups, and now and then something else."""
        rng, found = self.rng, []
        for i in range(rng.randint(1, 3)):
            value = self.value(rng.choice(["BIGINT", "STRING", "DATE", "TIMESTAMP", "DECIMAL", "BOOLEAN"]))
            one = rng.choice(
                ["count(*)", "count({0})", "min({0})", "max({0})", "count(DISTINCT {0})", "count({0}) + 1"]
            )
            found.append(f"{rng.choice([one] * 9 + ['bool_and({0} IS NULL)']).format(value)} AS m{i}")
        return ", ".join(found)

    def query(self) -> str:
        rng = self.rng
        table = self.table()
        forms = [
            lambda: f"SELECT id, {self.values()} FROM {table} WHERE {self.condition()}",
            lambda: f"SELECT id, to_json(v) AS j FROM {table} WHERE {self.condition()}",
            lambda: f"SELECT {self.value('STRING')} AS k, count(*), max({self.value('BIGINT')}), "
            f"count(DISTINCT {self.value('STRING')}), min({self.value('DOUBLE')}) FROM {table} "
            f"WHERE {self.condition()} GROUP BY k HAVING count(*) > 1",
            lambda: f"SELECT {rng.choice(rng.choice(list(KEYS.values())))} AS k, {self.measures()} FROM {table} "
            f"WHERE {self.condition()} GROUP BY ALL",
            lambda: f"SELECT {rng.choice(rng.choice(list(KEYS.values())))} AS k, {self.measures()}, "
            f"max(v:us::bigint) - min(v:n::bigint) AS s FROM {table} GROUP BY k "
            f"ORDER BY {rng.choice(['m0', 's', 'k'])} "
            f"{rng.choice(['', 'DESC', 'NULLS LAST', 'DESC NULLS FIRST'])}, k LIMIT {rng.randint(0, 5)}",
            lambda: f"SELECT a.id, a.v:odd::double AS x FROM {table} a {rng.choice(['', 'LEFT SEMI '])}JOIN "
            f"{self.table()} e ON a.id = e.id WHERE a.v:odd::string IN ('1', '2.5') AND {self.condition('a', 1)} "
            f"{rng.choice(['', 'AND hash(a.id) <> 7', 'LIMIT 100'])}",
            lambda: f"SELECT {self.measures()} FROM {table} WHERE {self.condition()}",
            lambda: f"SELECT DISTINCT {self.values()} FROM {table} WHERE {self.condition()}",
            lambda: f"SELECT k, {self.measures().replace('v:', 'w:')} FROM (SELECT v AS w, id, s, st, d, t, m, b, v, "
            f"{rng.choice(KEYS['TIME'])} AS k FROM {table}) GROUP BY k",
            lambda: f"SELECT a.id, {self.values('e')} FROM {table} a {rng.choice(['', 'LEFT ', 'FULL '])}"
            f"JOIN {self.table()} e ON a.id = e.id AND {self.condition('e', 1)} WHERE {self.condition('a', 1)}",
            lambda: f"WITH w AS (SELECT id, v, s FROM {table} WHERE {self.condition()}) "
            f"SELECT w.id, {self.value('STRING', 'w').replace('w.st.y', 'w.s')} AS k FROM w WHERE w.v:n::int < 8 "
            "UNION ALL SELECT count(*), max(s) FROM w",
            lambda: f"SELECT id FROM {table} WHERE {self.condition()} AND id IN "
            f"(SELECT {self.value('BIGINT')} FROM {self.table()} WHERE {self.condition()})",
            lambda: f"SELECT id FROM {table} a WHERE EXISTS (SELECT 1 FROM {self.table()} e WHERE e.id = a.id + 1 "
            f"AND {self.condition('e', 1)})",
            lambda: f"SELECT id, (SELECT max({self.value('BIGINT')}) FROM {self.table()}) AS m FROM {table} "
            f"WHERE {self.condition()}",
            lambda: f"SELECT id, row_number() OVER (PARTITION BY {self.value('STRING')} ORDER BY id) AS r, "
            f"{self.values()} FROM {table} WHERE {self.condition()} QUALIFY r <= 2",
            lambda: f"SELECT a.id, e.pos, e.value::bigint AS e FROM {table} a, LATERAL variant_explode(a.v:l) AS e "
            f"WHERE {self.condition('a')}",
            lambda: f"SELECT id, e FROM {table} LATERAL VIEW explode(array(1, v:n::int)) AS e WHERE {self.condition()}",
            lambda: f"SELECT * EXCEPT (v, st) FROM {table} WHERE {self.condition()} ORDER BY id LIMIT 5",
            lambda: f"SELECT id, s FROM {table} WHERE {self.condition()} "
            f"{rng.choice(['UNION', 'INTERSECT', 'EXCEPT'])} SELECT id, s FROM {self.table()} WHERE {self.condition()}",
            lambda: f"SELECT p, d, count(*) FROM {table} WHERE {self.condition()} GROUP BY ROLLUP (p, d)",
            lambda: f"SELECT count(*) FROM {table} WHERE {self.condition()}",
            lambda: f"SELECT count(*) FROM (SELECT {self.values()} FROM {table} WHERE {self.condition()} LIMIT 7)",
            lambda: f"SELECT c, count(*) FROM {table} WHERE {self.condition()} GROUP BY c COLLATE UTF8_BINARY, c",
        ]  # fmt: skip
        return str(rng.choice(forms)())


def _answer(work: Any) -> Any:
    """The rows in any order, or that there was an error."""
    try:
        return Counter(repr(tuple(row)) for row in work().collect())
    except Exception as e:  # noqa: BLE001 - told from rows
        return f"{type(e).__name__}"


@pytest.mark.slow
@settings(max_examples=CASES)
@given(st.integers(0, 2**32))
def test_the_same_rows_as_spark(tables: None, spark: SparkSession, number: int) -> None:
    text = Generator(number).query()
    whole = _answer(lambda: spark.sql(text.format(one="whole_one", two="whole_two")))
    # Small tables are read in this process: now and then by Spark's tasks, as large ones are.
    with mock.patch.object(little, "given", little.given if number % 3 else lambda *_, **__: None):
        narrow = _answer(lambda: mica.sql(text.format(one="narrow_one", two="narrow_two"), spark))
    if isinstance(whole, Counter):
        assert narrow == whole, text
        found = frames.narrowed(spark.sql(text.format(one="marked_one", two="marked_two")))
        assert found is None or _answer(lambda: found) == whole, text
        if number % 3 == 0:
            found = _made_of(spark, text.format(one="narrow_one", two="narrow_two"))
            assert found is None or _answer(lambda: found) == whole, text


def _made_of(spark: SparkSession, text: str) -> Any:
    """What an action reads of a DataFrame that is made of a text."""
    mica.enable(spark)
    try:
        with mock.patch.object(little, "given", return_value=None):
            made = spark.sql(text)
            return frames.narrowed(made.toDF(*map(str, range(len(made.columns)))))
    finally:
        mica.disable(spark)
