"""Nothing that may change a scan's speed changes its rows.

One set of rows, many ways to hold it (writer, layout, partitions, order, size of row groups and pages, bloom filters,
statistics, checkpoints) and to read it (in process, by the kernel on Spark, by Spark's own reader): each predicate
finds the rows that Spark finds in a full scan of rows that no file of mica has held. A few ways a run, more in the
campaign.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pyarrow as pa
import pytest

import mica
from mica.schema.arrow import variant_field
from mica.tasks.write import TableWriter
from mica.write.target import Target
from tests.support import CAMPAIGN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS, WAYS, PREDICATES = (160, 60, 60) if CAMPAIGN else (160, 5, 30)
SCHEMA = (
    "row BIGINT, id BIGINT, s STRING, c STRING COLLATE UTF8_LCASE, g STRING COLLATE de, t TIMESTAMP, p STRING, "
    "v VARIANT"
)
#: What rows hold, and other spellings of it, which a collation calls equal and no hash or byte does.
WORDS = ["a", "b", "abc1", "Äpfel", "Straße", "", "z" * 80, "\U0010ffff", "5", "Ç c"]
CONSTANTS = [*WORDS, "A", "ABC1", "äpfel", "APFEL", "STRASSE", "strasse", "B", "zz"]
SCALARS: list[Callable[[random.Random], Any]] = [
    lambda rng: rng.randint(-5, 40), lambda rng: rng.choice([2**63 - 1, -(2**63), 2**53 + 1]),
    lambda rng: rng.choice(WORDS), lambda rng: rng.random() < 0.5, lambda _: None,
    lambda rng: Decimal(rng.randint(-999, 999)) / 100, lambda rng: rng.choice([0.1, -0.0, 1e300, 2.5]),
    lambda rng: f"2024-0{rng.randint(1, 9)}-11T10:0{rng.randint(0, 9)}:00Z",
]  # fmt: skip


def rows_of(rng: random.Random) -> list[dict[str, Any]]:
    """Rows whose paths drift: each has one type for most of a stretch of rows, now and then another."""
    rows = []
    kinds: dict[str, Callable[[random.Random], Any]] = {}
    drift = 0.0
    for row in range(ROWS):
        if row % 40 == 0:
            kinds = {name: rng.choice(SCALARS) for name in ("n", "o.k", "l")}
            kinds["s"] = lambda rng: rng.choice(WORDS)
            drift = rng.choice([0.0, 0.0, 0.0, 0.02, 0.1])

        def value(name: str) -> Any:
            return (kinds[name] if rng.random() >= drift else rng.choice(SCALARS))(rng)  # noqa: B023 - called at once

        document: Any = {"i": row // 3}
        if rng.random() < 0.9:
            document["n"] = value("n")
        if rng.random() < 0.9:
            document["s"] = value("s")
        if rng.random() < 0.8:
            document["o"] = {"k": value("o.k"), "x y": row} if rng.random() >= drift else value("n")
        if rng.random() < 0.3:
            document["l"] = [value("l") for _ in range(rng.randint(0, 3))]
        if rng.random() < drift:
            document = rng.choice([7, [], {}, "a"])
        rows.append(
            {
                "row": row,
                "id": None if rng.random() < 0.1 else row // 2 - 10,
                "s": rng.choice([None, *WORDS]),
                "c": rng.choice([None, *WORDS]),
                "g": rng.choice([None, *WORDS[:6]]) if row < 80 else rng.choice(WORDS[3:]),
                "t": None if rng.random() < 0.1 else row * 3_600_000_001,
                "p": rng.choice([None, "x", "y z"]),
                "v": None if rng.random() < 0.05 else document,
            }
        )
    return rows


def text(value: Any) -> str | None:
    return None if value is None else json.dumps(value, default=float, ensure_ascii=False)


@dataclass(frozen=True)
class Asked:
    """A predicate; whether a table alone has what it means, and whether Spark alone has the comparator for it."""

    where: str
    of_table: bool = False
    on_spark: bool = False

    @classmethod
    def random(cls, rng: random.Random, depth: int) -> Asked:
        """In a language that mica and Spark have in common; no strict cast, so that no row fails."""
        if depth == 0 or rng.random() < 0.3:
            return cls.one(rng)
        left, right = cls.random(rng, depth - 1), cls.random(rng, depth - 1)
        where = rng.choice([f"({left.where} {op} {right.where})" for op in ("AND", "OR", "AND NOT")])
        return cls(where, left.of_table or right.of_table, left.on_spark or right.on_spark)

    @classmethod
    def one(cls, rng: random.Random) -> Asked:
        op = rng.choice(["=", "=", "=", "<", "<=", ">", ">=", "<>", "<=>"])
        number = rng.choice(["-3", "0", "7", "20", "53", "1.5", "9007199254740992"])
        day = f"TIMESTAMP'1970-01-0{rng.randint(1, 8)} 05:00:00Z'"
        a, b = (f"'{rng.choice(CONSTANTS)}'" for _ in "ab")
        n, s, k = (f"try_variant_get(v, '$.{name}', '{{}}')" for name in ("n", "s", "o.k"))
        # A string is what every value can be cast to, so this one never fails either.
        s = rng.choice([s.format("string"), "v:s::string"])
        return rng.choice([
            cls(f"id {op} {number}"), cls(f"s {op} {a}"), cls(f"p {op} {a}"), cls("p = 'y z'"), cls(f"t {op} {day}"),
            cls(f"s LIKE '{rng.choice('aAbz5Ä')}%'"), cls(f"id IS {rng.choice(['', 'NOT '])}NULL"),
            cls(f"try_variant_get(v, '$.i', 'bigint') {op} {number}"), cls(f"{n.format('bigint')} {op} {number}"),
            cls(f"{n.format('double')} {op} {number}"), cls(f"{n.format('decimal(10,1)')} {op} {number}"),
            cls(f"{n.format('tinyint')} % 3 = 1"), cls(n.format("boolean")), cls(f"{s} {op} {a}"),
            cls(f"{s} IN ({a}, {b}, '5')"), cls(f"{k.format('string')} {op} {a}"),
            cls(f"{k.format('timestamp')} {op} TIMESTAMP'2024-05-11 10:03:00Z'"),
            cls(f"try_variant_get(v, '$.l[0]', 'string') {op} {a}"), cls("try_variant_get(v, '$.o', 'string') IS NULL"),
            cls(f"v IS {rng.choice(['', 'NOT '])}NULL"), cls(f"is_variant_null({rng.choice(['v', 'v:n', 'v:o.k'])})"),
            cls(f"({s}) COLLATE UTF8_LCASE {op} {a}"), cls(f"({s}) COLLATE UTF8_LCASE IN ({a}, {b})"),
            cls(f"s COLLATE UTF8_LCASE IN ({a}, {b})"),
            cls(f"c {op} {a}", of_table=True), cls(f"c IN ({a}, {b})", of_table=True),
            cls(f"g {op} {a}", of_table=True, on_spark=True), cls(f"g IN ({a}, {b})", of_table=True, on_spark=True),
            cls(f"s COLLATE UNICODE_CI {op} {a}", on_spark=True),
            cls(f"({s}) COLLATE de {op} {a}", on_spark=True),
        ])  # fmt: skip


@dataclass(frozen=True)
class Way:
    """How rows are held. `layout` is that of bare files; None: a Delta table."""

    on_spark: bool
    layout: str | None
    appends: int
    partitioned: bool
    ordered: bool
    group_rows: int
    page_rows: int
    shredded: bool
    properties: Mapping[str, str]

    @classmethod
    def random(cls, rng: random.Random) -> Way:
        choice = rng.choice
        properties = {
            "delta.checkpointInterval": choice(["1", "2", "100"]),
            "delta.checkpointPolicy": choice(["classic", "classic", "v2"]),
            "delta.checkpoint.writeStatsAsStruct": choice(["true", "false"]),
            "delta.checkpoint.writeStatsAsJson": choice(["true", "true", "false"]),
            "delta.dataSkippingNumIndexedCols": choice(["-1", "32", "0", "2"]),
            "mica.variantStats.maxPaths": choice(["32", "32", "0", "1"]),
            "delta.parquet.compression.codec": choice(["zstd", "snappy", "none"]),
        }
        if rng.random() < 0.6:
            properties["mica.bloomFilter.paths"] = choice(["v:s", "v:s, v:n, v:o.k, v:i"])
        return cls(
            on_spark=rng.random() < 0.3,
            layout=choice([None, None, None, None, "standard", "early"]),
            appends=choice([1, 2, 5]),
            partitioned=rng.random() < 0.4,
            ordered=rng.random() < 0.6,
            group_rows=choice([7, 32, 65_536]),
            page_rows=choice([2, 5, 1000]),
            shredded=rng.random() < 0.8,
            properties=properties,
        )


def arrow_of(rows: list[dict[str, Any]]) -> pa.Table:
    columns = {name: [row[name] for row in rows] for name in ("row", "id", "s", "c", "g", "t", "p")}
    kinds = {"row": pa.int64(), "id": pa.int64(), "t": pa.timestamp("us", tz="UTC")}
    arrays = {name: pa.array(values, kinds.get(name, pa.string())) for name, values in columns.items()}
    documents = mica.variant.from_json(pa.array([text(row["v"]) for row in rows], pa.string()))
    fields = [*(pa.field(name, array.type) for name, array in arrays.items()), variant_field("v")]
    storage = documents.storage if isinstance(documents, pa.ExtensionArray) else documents
    return pa.Table.from_arrays([*arrays.values(), storage], schema=pa.schema(fields))


def frame_of(spark: SparkSession, rows: list[dict[str, Any]]) -> DataFrame:
    """The rows as Spark makes them, out of its own `parse_json`."""
    plain = [{**row, "v": text(row["v"])} for row in rows]
    kinds = pa.schema([("row", pa.int64()), ("id", pa.int64()), *((n, pa.string()) for n in "scg"), ("t", pa.int64()),
                       ("p", pa.string()), ("v", pa.string())])  # fmt: skip
    frame = spark.createDataFrame(pa.Table.from_pylist(plain, kinds)).coalesce(1)
    return frame.selectExpr(
        "row", "id", "s", "c COLLATE UTF8_LCASE AS c", "g COLLATE de AS g", "timestamp_micros(t) AS t", "p",
        "parse_json(v) AS v",
    )  # fmt: skip


def written(way: Way, rows: list[dict[str, Any]], spark: SparkSession, folder: Path) -> Callable[..., mica.Scan]:
    """Holds the rows in this way; gives back what makes scans of them."""
    if not way.ordered:
        rows = random.Random(1).sample(rows, len(rows))
    size = -(-len(rows) // way.appends)
    parts = [rows[i : i + size] for i in range(0, len(rows), size)]
    small = {"row_group_rows": way.group_rows, "page_rows": way.page_rows}
    begin, spec_of = TableWriter.__init__, Target.write_spec
    # Not an option: a person has no use for groups of seven rows.
    smaller = patch.object(
        TableWriter, "__init__", lambda self, spec: begin(self, replace(spec, options={**spec.options, **small}))
    )
    for_tasks = patch.object(
        Target, "write_spec", lambda *a, **b: (s := spec_of(*a, **b)) and replace(s, options={**s.options, **small})
    )
    with smaller, for_tasks:
        if way.layout is not None:
            for number, part in enumerate(parts):
                mica.write_parquet(arrow_of(part), folder / f"{number}.parquet", layout=way.layout)
            return lambda where, **given: mica.read_parquet(str(folder / "*.parquet"), where=where, **given)
        properties = {**way.properties, "delta.enableVariantShredding": str(way.shredded).lower()}
        table = mica.Table.create(folder / "t", SCHEMA, ["p"] if way.partitioned else [], properties)
        for part in parts:
            table.append(frame_of(spark, part) if way.on_spark else arrow_of(part))
    return mica.Table.open(folder / "t").scan


@pytest.mark.usefixtures("compiled")
@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.filterwarnings("ignore:.*does not allow shredding")
def test_each_way_to_hold_and_read_rows_gives_the_same(spark: SparkSession, rng: random.Random, tmp_path: Path) -> None:
    rows = rows_of(rng)
    asked = [Asked.random(rng, rng.choice([0, 0, 1, 2])) for _ in range(PREDICATES)]
    truth = frame_of(spark, rows).localCheckpoint()
    marks = truth.selectExpr("row", *(f"coalesce({a.where}, false) AS p{i}" for i, a in enumerate(asked))).toArrow()
    expected = [sorted(marks.column("row").filter(marks.column(f"p{i}")).to_pylist()) for i in range(len(asked))]
    assert sum(map(bool, expected)) > PREDICATES // 4
    for number in range(WAYS):
        way = Way.random(rng)
        folder = tmp_path / str(number)
        folder.mkdir()
        scan_of = written(way, rows, spark, folder)
        possible = [pair for pair in zip(asked, expected, strict=True) if way.layout is None or not pair[0].of_table]
        for one, wanted in possible:
            if not one.on_spark:
                scan = scan_of(one.where, columns=["row"])
                assert sorted(scan.to_arrow()["row"].to_pylist()) == wanted, f"{way}: {one.where}"
                assert scan.count() == len(wanted), f"{way}: {one.where}"
        for one, wanted in rng.sample(possible, 3 if CAMPAIGN else 1):
            with_bounds = {} if way.layout else {"spark": spark}
            found = scan_of(one.where, **with_bounds).to_df(spark).selectExpr("row", "to_json(v)").collect()
            assert sorted(row[0] for row in found) == wanted, f"{way} on Spark: {one.where}"
            if way.layout is None:
                native = mica.Table.open(folder / "t").to_df(spark).where(one.where).selectExpr("row", "to_json(v)")
                assert sorted(native.collect()) == sorted(found), f"{way} by Spark's reader: {one.where}"
