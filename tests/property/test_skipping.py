"""A dropped file never holds a row for which the predicate is true: random data, writers and predicates.

Writers are honest but different: bounds wider than the data, cut strings, times cut to milliseconds, one side or a null
count missing, NaN left out of the bounds as Parquet does, JSON numbers written as others write them.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, note, reject
from hypothesis import strategies as st

from mica.errors import UserError
from mica.expressions.bind import BoundExpr, bind
from mica.expressions.casts import CastFailedError, can_cast, cast_value
from mica.expressions.evaluate import RowError, filter_rows
from mica.expressions.plain_values import from_values
from mica.schema.ddl import parse_ddl, parse_type
from mica.schema.literals import show_timestamp
from mica.schema.types import DATE, DOUBLE, FLOAT, LONG, STRING, TIMESTAMP, TIMESTAMP_NTZ, DataType, decimal
from mica.skipping.plan import plan_files
from mica.stats.read import Share, shares_of
from mica.stats.times import json_date, json_timestamp
from mica.stats.variant import encode_bounds

SCHEMA = parse_ddl(
    "id BIGINT, n DECIMAL(10,2), x DOUBLE, f FLOAT, s STRING, d DATE, ts TIMESTAMP, b BOOLEAN, st STRUCT<k: INT>, "
    "v VARIANT, p INT, q STRING"
)
PLAIN = {
    "id": LONG, "n": decimal(10, 2), "x": DOUBLE, "f": FLOAT, "s": STRING, "d": DATE, "ts": TIMESTAMP,
    "b": parse_type("boolean"), "st.k": parse_type("int"),
}  # fmt: skip
ASKED = ["bigint", "int", "decimal(5,1)", "double", "float", "string", "date", "timestamp", "timestamp_ntz"]

#: Texts that are read as times, in their many forms.
TIMES = [
    "2020-01-01", "2020-01-02T03:04:05Z", "2020-01-02 03:04:05.000001+14:00", "2020-1-2", "2020-01-1", "2020-01-1T05",
    "2020-01-09T01:00", "2020-01-10 23:59:59-18:00", "2020-10-25T02:30", "2020", "20201-01-01", "1:30", "T1:30",
    "2020-01\x7f", "2019-12-31T", " 2020-01-03", "2020-13-01",
]  # fmt: skip
TEXTS = st.one_of(
    st.sampled_from(TIMES),
    st.sampled_from(["", "5", "5.0", " 5 ", "-1", "a", "ab", "abc", "\U0010ffff", "ä", "2020-01-01", "1e2", "NaN"]),
    st.text(max_size=5),
)
INTS = st.one_of(st.integers(-6, 6), st.sampled_from([2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 127, 128]))
DECIMALS = st.decimals(-999, 999, places=2)
FLOATS = st.one_of(
    st.sampled_from([0.0, -0.0, 0.1, 1.0, 5.0, -5.5, math.inf, -math.inf, math.nan, 1e300]), st.floats(width=32)
)
DAYS = st.integers(18_260, 18_264)
MICROS = st.one_of(
    st.integers(18_262 * 86_400_000_000 - 3, 18_262 * 86_400_000_000 + 3),
    st.integers(1_577_836_800_000_000, 1_577_836_800_005_000),
    # The hours of clocks that are set forward and back, in Berlin and in Lord Howe.
    st.sampled_from([1_585_443_600, 1_603_587_600, 1_585_407_600, 1_601_737_200]).flatmap(
        lambda s: st.integers(-8, 8).map(lambda n: (s + 900 * n) * 1_000_000)
    ),
    st.integers(-3_000_000, 3_000_000),
    st.sampled_from([-(2**63), 2**63 - 1, 2**63 - 1000, 2**63 - 1001, 253_402_300_799_999_999]),
)
VALUES: dict[DataType, st.SearchStrategy[Any]] = {
    LONG: INTS, decimal(10, 2): DECIMALS, DOUBLE: FLOATS,
    FLOAT: FLOATS.map(lambda v: struct.unpack("<f", pack32(v))[0]),
    STRING: TEXTS, DATE: DAYS, TIMESTAMP: MICROS, PLAIN["b"]: st.booleans(), PLAIN["st.k"]: st.integers(-6, 6),
    TIMESTAMP_NTZ: MICROS,
}  # fmt: skip
#: What a path of a variant may hold.
CLASSES = [LONG, decimal(10, 2), DOUBLE, FLOAT, STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ]


def pack32(value: float) -> bytes:
    try:
        return struct.pack("<f", value)
    except OverflowError:
        return struct.pack("<f", math.copysign(math.inf, value))


# --- data and what writers say of it


@st.composite
def files(draw: st.DrawFn) -> dict[str, Any]:
    rows = draw(st.integers(0, 4))
    columns = {
        name: draw(st.lists(st.one_of(st.none(), VALUES[t]), min_size=rows, max_size=rows)) for name, t in PLAIN.items()
    }
    paths = {}
    for path in ("a", "b"):
        kind = draw(st.sampled_from(CLASSES))
        cells = st.one_of(st.none(), VALUES[kind].map(lambda v, k=kind: (k, v)))
        if draw(st.integers(0, 4)) == 0:  # a row of another type: no bounds then
            cells = st.one_of(cells, TEXTS.map(lambda v: (STRING, v)), INTS.map(lambda v: (LONG, v)))
        paths[path] = draw(st.lists(cells, min_size=rows, max_size=rows))
    whole_null = draw(st.lists(st.booleans(), min_size=rows, max_size=rows)) if draw(st.booleans()) else [False] * rows
    for cells_of in paths.values():
        cells_of[:] = [None if null else cell for null, cell in zip(whole_null, cells_of, strict=True)]
    partition = {
        "p": draw(st.one_of(st.none(), st.integers(-2, 2).map(str))),
        "q": draw(st.sampled_from(["a b", "%", None])),
    }
    return {
        "rows": rows, "columns": columns, "paths": paths, "whole_null": whole_null, "partition": partition,
        "stats": draw(statistics(rows, columns, paths, whole_null)),
    }  # fmt: skip


@st.composite
def statistics(
    draw: st.DrawFn, rows: int, columns: dict[str, list[Any]], paths: dict[str, list[Any]], whole_null: list[bool]
) -> str | None:
    if draw(st.integers(0, 9)) == 0:
        return None
    document: dict[str, Any] = {"numRecords": rows, "minValues": {}, "maxValues": {}, "nullCount": {}}
    document["tightBounds"] = draw(st.booleans())
    for name, values in columns.items():
        present = [v for v in values if v is not None and not (isinstance(v, float) and math.isnan(v))]
        if draw(st.integers(0, 5)):
            put(document["nullCount"], name, values.count(None))
        if not present or name == "b":
            continue
        for side, pick in (("minValues", min), ("maxValues", max)):
            if draw(st.integers(0, 7)):
                text = spell(draw, PLAIN[name], pick(present), side == "maxValues")
                if text is not None:
                    put(document[side], name, text)
    document["nullCount"]["v"] = sum(whole_null)
    low, high = {}, {}
    for path, cells in paths.items():
        found = [cell for cell in cells if cell is not None]
        kinds = {kind for kind, _ in found}
        present = [v for _, v in found if not (isinstance(v, float) and math.isnan(v))]
        if len(kinds) == 1 and present and draw(st.integers(0, 5)):
            kind = kinds.pop()
            sides = draw(st.sampled_from(["both", "both", "low", "high"]))
            if sides != "high":
                low[f"$['{path}']"] = encode(draw, kind, min(present), upper=False)
            if sides != "low":
                high[f"$['{path}']"] = encode(draw, kind, max(present), upper=True)
    document["minValues"]["v"], document["maxValues"]["v"] = encode_bounds(low), encode_bounds(high)
    return json.dumps(document, default=float).replace('"@', "").replace('@"', "")


def spell(draw: st.DrawFn, kind: DataType, value: Any, upper: bool) -> Any:
    if kind == STRING:
        return cut(draw, value, upper)
    if kind == DATE:
        return json_date(value)
    if kind == TIMESTAMP:
        return json_timestamp(value, utc=True)
    if isinstance(value, Decimal):
        return f"@{value:f}@"
    if isinstance(value, float) and math.isinf(value):
        return None
    wider = draw(st.integers(0, 2)) if isinstance(value, int) and abs(value) < 2**62 and abs(value) > 0 else 0
    return value + wider * (1 if upper else -1) if kind == LONG else value


def cut(draw: st.DrawFn, text: str, upper: bool) -> str:
    length = draw(st.sampled_from([1, 2, 3, 4, 12, 32]))
    if len(text) <= length:
        return text
    return text[:length] + ("\U0010ffff" if upper else "") if text[length] != "\U0010ffff" else text


def encode(draw: st.DrawFn, kind: DataType, value: Any, *, upper: bool) -> bytes:
    if kind == LONG:
        return b"\x18" + struct.pack("<q", value)
    if kind == decimal(10, 2):
        return b"\x24\x02" + struct.pack("<q", int(value.scaleb(2)))
    if kind == DOUBLE:
        return b"\x1c" + struct.pack("<d", value)
    if kind == FLOAT:
        return b"\x38" + struct.pack("<f", value)
    if kind == DATE:
        return b"\x2c" + struct.pack("<i", value)
    if kind in (TIMESTAMP, TIMESTAMP_NTZ):
        return (b"\x30" if kind == TIMESTAMP else b"\x34") + struct.pack("<q", value)
    data = cut(draw, value, upper).encode()
    return b"\x40" + struct.pack("<I", len(data)) + data


def put(tree: dict[str, Any], name: str, value: Any) -> None:
    *outer, last = name.split(".")
    for part in outer:
        tree = tree.setdefault(part, {})
    tree[last] = value


class Snapshot:
    schema = SCHEMA

    def __init__(self, found: list[dict[str, Any]]) -> None:
        self.texts = pa.array([f["stats"] for f in found], pa.string())
        kind = pa.map_(pa.string(), pa.string())
        self.files = pa.table({"partition_values": pa.array([list(f["partition"].items()) for f in found], kind)})

    def stats(self, indices: Any = None) -> pa.Array:
        return self.texts if indices is None else self.texts.take(pa.array(indices))

    def stats_shares(self, indices: Any = None) -> Iterator[Share]:
        yield from shares_of(self.stats(indices))


# --- predicates


def sql_literal(value: Any, kind: DataType) -> str:
    if kind == STRING:
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    if kind == DATE:
        return f"DATE'{json_date(value)}'"
    if kind in (TIMESTAMP, TIMESTAMP_NTZ):
        text = show_timestamp(value)
        return f"TIMESTAMP{'_NTZ' * (kind == TIMESTAMP_NTZ)}'{text}'"
    if isinstance(value, float):
        if math.isnan(value):
            return "cast('NaN' as double)"
        return f"cast('{value!r}' as double)"
    return str(value)


LITERALS = st.sampled_from(list(VALUES)).flatmap(lambda t: VALUES[t].map(lambda v, t=t: (sql_literal(v, t), t)))


#: Functions that keep or turn the order of their argument, some within a unit of time, and their results.
KEEPING_ORDER = {
    TIMESTAMP: [(f"date_trunc('{u}', {{0}})", TIMESTAMP) for u in ("second", "hour", "day", "week", "quarter", "year")]
    + [(f"date_format({{0}}, '{p}')", STRING) for p in ("yyyy-MM-dd", "yyyyMM", "dd.MM.yyyy", "yyyy/MM/dd HH:mm")]
    + [("CAST({0} AS DATE)", DATE), ("CAST({0} AS TIMESTAMP_NTZ)", TIMESTAMP_NTZ), ("hour({0})", LONG)]
    + [("unix_seconds({0})", LONG), ("unix_millis({0})", LONG), ("year({0})", LONG), ("trunc({0}, 'mm')", DATE)]
    + [(f"{{0}} {span}", TIMESTAMP) for span in ("+ INTERVAL 1 DAY", "- INTERVAL 90 MINUTES", "+ INTERVAL 1 MONTH")]
    + [(f"{part}({{0}})", LONG) for part in ("unix_timestamp", "minute", "second", "month", "day", "quarter")]
    + [("CAST({0} AS STRING)", STRING), ("CAST({0} AS BIGINT)", LONG), ("CAST({0} AS DOUBLE)", DOUBLE)],
    DATE: [("trunc({0}, 'week')", DATE), ("year({0})", LONG), ("date_trunc('month', {0})", TIMESTAMP)]
    + [(f"{f}({{0}}, {n})", DATE) for f in ("date_add", "date_sub") for n in ("40", "-3", "2147483000")]
    + [("datediff({0}, DATE'2020-01-02')", LONG), ("datediff(DATE'2020-01-02', {0})", LONG)]
    + [
        ("CAST({0} AS TIMESTAMP)", TIMESTAMP),
        ("datediff(DATE'2020-01-02', date_add({0}, 2147466000))", LONG),
        ("to_date({0})", DATE),
    ]
    + [(f"{part}({{0}})", LONG) for part in ("dayofyear", "month", "day", "quarter", "unix_date")]
    + [(f"add_months({{0}}, {n})", DATE) for n in (1, -25, 2000000000)]
    + [(f"{{0}} {span}", DATE) for span in ("+ INTERVAL 1 MONTH", "- INTERVAL 2 DAYS", "+ INTERVAL 178000000 YEARS")]
    + [("{0} + INTERVAL 5 HOURS", TIMESTAMP), ("CAST({0} AS STRING)", STRING)],
    TIMESTAMP_NTZ: [
        ("{0} - INTERVAL 100 DAYS", TIMESTAMP_NTZ),
        ("CAST({0} AS STRING)", STRING),
        ("hour({0})", LONG),
        ("CAST({0} AS TIMESTAMP)", TIMESTAMP),
        ("date_trunc('hour', {0})", TIMESTAMP_NTZ),
    ],
    STRING: [(f, STRING) for f in ("left({0}, 1)", "substring({0}, 1, 2)", "substring({0}, 2, 1)", "left({0}, -1)")]
    + [("CAST({0} AS DATE)", DATE), ("try_cast({0} AS TIMESTAMP)", TIMESTAMP), ("to_timestamp({0})", TIMESTAMP)]
    + [("CAST({0} AS TIMESTAMP_NTZ)", TIMESTAMP_NTZ), ("year(to_date({0}))", LONG)],
    LONG: [(f"{f}({{0}})", LONG) for f in ("floor", "ceil")]
    + [(f"timestamp_{unit}({{0}})", TIMESTAMP) for unit in ("seconds", "millis", "micros")]
    + [(f"{{0}} {by}", LONG) for by in ("+ 3", "- 9223372036854775000", "* 3", "* -2", "* 0", "DIV -3", "+ id")]
    + [(f, LONG) for f in ("5 - {0}", "-({0})", "try_add({0}, 9223372036854775000)", "round({0}, -1)", "{0} * id")]
    + [("{0} / 7", DOUBLE), ("CAST({0} AS TIMESTAMP)", TIMESTAMP), ("from_unixtime({0}, 'yyyy-MM-dd HH')", STRING)]
    + [("from_unixtime({0} * 1000)", STRING), ("{0} * 2.5", decimal(10, 2)), ("{0} * -1e300", DOUBLE)]
    + [("CAST({0} AS INT)", LONG), ("CAST({0} / 1000 AS TIMESTAMP)", TIMESTAMP)],
    DOUBLE: [(f"{{0}} {by}", DOUBLE) for by in ("+ 1.5D", "* -1e300D", "/ 2", "- x", "* 0D", "* id", "/ -0.1D")]
    + [(f, LONG) for f in ("CAST({0} AS BIGINT)", "CAST({0} AS INT)", "floor({0})", "CAST({0} AS TINYINT)")]
    + [("-({0})", DOUBLE), ("CAST({0} AS TIMESTAMP)", TIMESTAMP), ("round({0}, 1)", DOUBLE)],
    decimal(10, 2): [(f"{f}({{0}})", decimal(10, 2)) for f in ("floor", "ceil", "round")]
    + [("{0} DIV 2", LONG), ("CAST({0} AS TINYINT)", LONG)]
    + [(f"{{0}} {by}", decimal(10, 2)) for by in ("* 2.5", "/ -3", "- n", "+ id", "* CAST('1e37' AS DECIMAL(38,0))")]
    + [("CAST({0} AS TIMESTAMP)", TIMESTAMP), ("{0} * 1e0", DOUBLE)],
}


@st.composite
def comparisons(draw: st.DrawFn) -> str:
    if draw(st.booleans()):
        name = draw(st.sampled_from([*PLAIN, "p", "q"]))
        kind = PLAIN.get(name, parse_type("int") if name == "p" else STRING)
    else:
        path, asked = draw(st.sampled_from(["a", "b"])), draw(st.sampled_from(ASKED))
        name, kind = f"try_variant_get(v, '$.{path}', '{asked}')", parse_type(asked)
    near = {parse_type("int"): LONG, decimal(5, 1): decimal(10, 2)}.get(kind, kind)
    own = VALUES[near].map(lambda v: sql_literal(v, near))
    match draw(st.integers(0, 11)):
        case 10 | 11 if near in KEEPING_ORDER:
            function, result = draw(st.sampled_from(KEEPING_ORDER[near]))
            if result in KEEPING_ORDER and draw(st.booleans()):
                outer, result = draw(st.sampled_from(KEEPING_ORDER[result]))
                function = outer.format(f"({function})")
            given = VALUES[result].map(lambda v: sql_literal(v, result))
            value = draw(
                st.sampled_from(["2019", "2020", "1577836800", "0", "-1", "-2", "1", "5", "12"])
                if result == LONG
                else given
            )
            return f"{function.format(name)} {draw(OPS)} {value}"
        case 0:
            return f"{name} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
        case 1:
            values = draw(st.lists(st.one_of(own, st.just("NULL")), min_size=1, max_size=12))
            return f"{name} {draw(st.sampled_from(['', 'NOT ']))}IN ({', '.join(values)})"
        case 2:
            return f"{name} {draw(st.sampled_from(['', 'NOT ']))}BETWEEN {draw(own)} AND {draw(own)}"
        case 3 if near in (LONG, DOUBLE, FLOAT, decimal(10, 2), STRING):
            other = draw(st.sampled_from([LONG, DOUBLE, decimal(10, 2), STRING]))
            return f"{name} {draw(OPS)} {draw(VALUES[other].map(lambda v: sql_literal(v, other)))}"
        case 4 if name in ("id", "n", "x", "f", "st.k"):
            return f"{name} {draw(OPS)} {draw(st.sampled_from(['id', 'n', 'x', 'f', 'p', 'st.k']))}"
        case 5:
            return f"NULL {draw(OPS)} {name}"
        case 6 if kind == STRING:
            return draw(likes(name))
        case 8 | 9 if near in VALUES:
            others = [draw(own) for _ in range(draw(st.integers(1, 2)))]
            values = {"case": f"CASE WHEN id > 1 THEN {name} WHEN b THEN {others[0]} END",
                      "coalesce": f"coalesce({', '.join([name, *others])})",
                      "nullif": f"nullif({name}, {others[0]})"}  # fmt: skip
            value = draw(st.sampled_from(sorted(values.values())))
            if draw(st.booleans()):
                return f"{value} {draw(OPS)} {draw(own)}"
            return f"{value} {draw(st.sampled_from(['IS NULL', 'IS NOT NULL', f'IN ({draw(own)})']))}"
        case 7 if name in ("id", "x", "n") or near == LONG:
            return f"{name} {draw(st.sampled_from(['+', '-', '*', '/', '%']))} 2 {draw(OPS)} {draw(own)}"
        case _:
            return f"{name} {draw(OPS)} {draw(own)}"


@st.composite
def likes(draw: st.DrawFn, name: str) -> str:
    prefix = draw(TEXTS).replace("\\", "").replace("'", "")
    pattern = prefix + draw(st.sampled_from(["%", "%%", "", "_", "%a", "_%"]))
    if draw(st.booleans()):
        return f"{name} {draw(st.sampled_from(['', 'NOT ']))}LIKE '{pattern}'"
    if draw(st.booleans()) and prefix.isalnum():
        return (
            f"{draw(st.sampled_from(['', 'NOT ']))}{name} RLIKE '^{prefix}{draw(st.sampled_from(['', 'b', '.', '$']))}'"
        )
    return f"{draw(st.sampled_from(['', 'NOT ']))}startswith({name}, '{prefix}')"


OPS = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>", "IS DISTINCT FROM"])
#: Predicates as values of others.
AS_VALUES = ["coalesce(({0}), false)", "NOT coalesce(({0}), true)", "({0}) = true", "({0}) <=> false", "({0}) <> true",
             "({0}) IS DISTINCT FROM false", "IF({0}, {1}, {2})", "CASE WHEN {0} THEN 1 WHEN {1} THEN 2 END = 2",
             "coalesce(({0}), ({1})) IS NULL", "NOT IF({0}, {1}, coalesce(({2}), b))"]  # fmt: skip
ZONES = ["UTC", "UTC", "Europe/Berlin", "Australia/Lord_Howe", "-03:30"]
PREDICATES = st.recursive(
    comparisons(),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from([" AND ", " OR "]), inner).map(lambda t: f"({t[0]}{t[1]}{t[2]})"),
        inner.map(lambda t: f"NOT ({t})"),
        inner.map(lambda t: f"({t}) IS NULL"),
        st.tuples(st.sampled_from(AS_VALUES), inner, inner, inner).map(lambda t: t[0].format(*t[1:])),
        st.sampled_from(["b", "NOT b", "true", "NULL", "b IS NOT TRUE"]),
    ),
    max_leaves=5,
)


# --- rows, as the kernel gives them


def leaf_arrays(bound: BoundExpr, file: dict[str, Any]) -> list[pa.Array]:
    arrays = []
    for leaf in bound.leaves:
        if leaf.partition:
            text = file["partition"][leaf.column[0]]
            value = text if text is None or leaf.type == STRING else int(text)
            arrays.append(from_values([value] * file["rows"], leaf.type))
        elif leaf.path is None:
            arrays.append(from_values(file["columns"][".".join(leaf.column)], leaf.type))
        else:
            cells = file["paths"][leaf.path.steps[0]]
            arrays.append(from_values([cast_cell(cell, leaf.type, bound.timezone) for cell in cells], leaf.type))
            arrays.append(pa.array([False] * len(cells), pa.bool_()))
    return arrays


def cast_cell(cell: tuple[DataType, Any] | None, asked: DataType, zone: str) -> Any:
    if cell is None:
        return None
    kind, value = cell
    if kind in (DOUBLE, FLOAT) and asked in (LONG, parse_type("int")):
        return int(value) if math.isfinite(value) and abs(value) < 2**31 else None
    if not can_cast(kind, asked, ansi=True):
        return None
    try:
        return cast_value(value, kind, asked, zone, ansi=True)
    except CastFailedError:
        return None


@pytest.mark.timeout(3600)
@given(st.lists(files(), min_size=1, max_size=4), PREDICATES, st.sampled_from(ZONES), st.booleans(), st.booleans())
def test_no_matching_row_is_lost(found: list[dict[str, Any]], where: str, zone: str, others: bool, ansi: bool) -> None:
    try:
        bound = bind(where, SCHEMA, ansi=ansi, timezone=zone, partition_columns=["p", "q"])
    except UserError as refused:  # the first or last instant as a clock of the zone; with ANSI a text that is no number
        wrong = "cannot be cast to" if ansi else "cannot be cast to TIMESTAMP"
        if not re.search(f"is no TIMESTAMP|{wrong}", refused.message):
            raise
        reject()
    plan = plan_files(replace(bound, other_zones=others), Snapshot(found))
    assert sorted([*plan.kept, *plan.dropped]) == list(range(len(found)))
    for i in plan.dropped:
        try:
            matches = filter_rows(bound, leaf_arrays(bound, found[i]), num_rows=found[i]["rows"])
        except RowError:  # such as the first instant cut to its second: no row makes it true
            continue
        note(f"{where}: file {i}: {found[i]}")
        assert not matches.true_count


def test_the_property_is_not_empty() -> None:
    """The strategies do make files that are dropped."""
    file = {
        "rows": 1, "columns": {name: [None] for name in PLAIN} | {"id": [3]}, "paths": {"a": [(LONG, 7)], "b": [None]},
        "whole_null": [False], "partition": {"p": "1", "q": None},
        "stats": json.dumps({
            "numRecords": 1, "minValues": {"id": 3, "v": encode_bounds({"$['a']": b"\x0c\x07"})},
            "maxValues": {"id": 3, "v": encode_bounds({"$['a']": b"\x0c\x07"})}, "nullCount": {"id": 0, "s": 1, "v": 0},
        }),
    }  # fmt: skip
    for where in ("id = 4", "try_variant_get(v, '$.a', 'double') < 7", "p <> 1", "q IS NOT NULL", "s = 'x'"):
        bound = bind(where, SCHEMA, partition_columns=["p", "q"])
        assert plan_files(bound, Snapshot([file])).dropped.tolist() == [0], where
