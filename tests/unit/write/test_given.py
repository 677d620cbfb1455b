"""What a person has becomes rows: the same rows, whichever library holds them, and nothing that is not meant."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import mica
from mica.errors import UserError
from mica.schema.ddl import parse_ddl
from mica.write.given import ROWS as DICTS
from mica.write.given import arrow

ROWS: list[dict[str, Any]] = [
    {"id": 1, "s": "a", "v": {"a": 1, "b": ["x", None]}},
    {"id": 2, "s": None, "v": None},
    {"id": 3, "s": "c", "v": {"a": 2, "b": []}},
]
TEXTS = ['{"a":1,"b":["x",null]}', None, '{"a":2,"b":[]}']


class Stream:
    """Nothing but the Arrow stream of its table."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def _plain() -> pa.Table:
    return pa.table({"id": [1, 2, 3], "s": ["a", None, "c"], "v": TEXTS})


FORMS: dict[str, Any] = {
    "dicts": ROWS,
    "tuple of dicts": tuple(ROWS),
    "dicts with texts": [{**row, "v": text} for row, text in zip(ROWS, TEXTS, strict=True)],
    "pandas": pd.DataFrame(ROWS),
    "pandas with another index": pd.DataFrame([{"id": 0}, *ROWS]).iloc[1:],
    "pandas with texts": pd.DataFrame({"id": [1, 2, 3], "s": ["a", None, "c"], "v": TEXTS}),
    "pandas with Arrow texts": pd.DataFrame({"id": [1, 2, 3], "s": ["a", None, "c"]}).assign(
        v=pd.Series(TEXTS, dtype=pd.ArrowDtype(pa.string()))
    ),
    "polars": pl.DataFrame(ROWS),
    "polars with texts": pl.DataFrame(_plain()),
    "polars with objects": pl.DataFrame(_plain().drop_columns(["v"])).with_columns(
        pl.Series("v", [row["v"] for row in ROWS], dtype=pl.Object)
    ),
    "polars categories": pl.DataFrame(_plain()).with_columns(pl.col("s", "v").cast(pl.Categorical)),
    "polars enums": pl.DataFrame(_plain()).with_columns(pl.col("s").cast(pl.Enum(["a", "c"]))),
    "polars, lazy": pl.LazyFrame(ROWS),
    "Arrow texts": _plain(),
    "Arrow categories": _plain().set_column(2, "v", pa.array(TEXTS).dictionary_encode()),
    "Arrow categories of views": _plain().cast(
        pa.schema([("id", pa.int32()), *((name, pa.dictionary(pa.int32(), pa.string_view())) for name in ("s", "v"))])
    ),
    "Arrow structs": pa.Table.from_pylist(ROWS),
    "batches": _plain().to_batches(max_chunksize=2),
    "batch": _plain().to_batches()[0],
    "reader": lambda: _plain().to_reader(),
    "stream": Stream(_plain()),
    "dataset": ds.dataset(_plain()),
    "dataset's scanner": ds.dataset(_plain()).scanner(),
    "iterator of dicts": lambda: iter(ROWS),
    "iterator of batches": lambda: iter(_plain().to_batches(max_chunksize=2)),
    "iterator of all kinds": lambda: iter([ROWS[0], pd.DataFrame(ROWS[1:2]), pl.DataFrame(ROWS[2:])]),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_same_rows_of_every_form(tmp_path: Path, form: str) -> None:
    table = mica.Table.create(tmp_path / "t", "id INT, s STRING, v VARIANT")
    given = FORMS[form]
    assert table.append(given() if callable(given) else given).rows == 3
    found = table.to_arrow().sort_by("id")
    assert found.select(["id", "s"]).to_pylist() == [{"id": r["id"], "s": r["s"]} for r in ROWS]
    assert mica.variant.to_json(found["v"]).to_pylist() == TEXTS


@pytest.mark.parametrize("library", [pd, pl])
def test_a_frame_may_have_variants_only(tmp_path: Path, library: Any) -> None:
    table = mica.Table.create(tmp_path / "t", "v VARIANT")
    values = [row["v"] for row in ROWS]
    frame = pd.DataFrame({"v": values}) if library is pd else pl.DataFrame({"v": values}, {"v": pl.Object})
    assert table.append(frame).rows == 3
    assert mica.variant.to_json(table.to_arrow()["v"]).to_pylist() == TEXTS


def test_each_value_becomes_a_variant_by_its_own_form(tmp_path: Path) -> None:
    one = {"metadata": b"\x01\0\0", "value": b"\x0c\x01"}
    values = [one, {"a": 1}, None, "[2]", one, {"metadata": "x", "value": b""}]
    table = mica.Table.create(tmp_path / "t", "v VARIANT")
    table.append([{"v": value} for value in values])
    texts = ["1", '{"a":1}', None, "[2]", "1", '{"metadata":"x","value":""}']
    assert mica.variant.to_json(table.to_arrow()["v"]).to_pylist() == texts


def _frame(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame(columns)


@pytest.mark.slow
@pytest.mark.parametrize("partition_by", [[], ["p"]])
@pytest.mark.parametrize(
    "second",
    [
        pl.DataFrame({"id": [2], "p": ["b"], "q": ["y"]}),
        _frame(id=[2], p=["b"], q=[None]),
        _frame(id=[2], p=["b"]),
        _frame(id=[2], p=["b"], q=["x"]).astype({"id": "int32"}),
        pa.table({"id": [2] * 20_000, "p": [str(n % 1_000) for n in range(20_000)], "q": pa.nulls(20_000)}),
    ],
    ids=["polars", "all None", "missing", "INT", "many partitions"],
)
def test_frames_of_an_iterator_may_differ_in_their_types(tmp_path: Path, partition_by: list[str], second: Any) -> None:
    table = mica.Table.create(tmp_path / "t", "id BIGINT, p STRING, q STRING", partition_by=partition_by)
    first = _frame(id=[1], p=["a"], q=["x"])
    table.append(iter([first, second, first]))
    table.overwrite(iter([second, first]))
    assert table.scan(columns=["id", "p", "q"]).to_arrow().num_rows == len(second) + 1
    assert table.scan("id = 1").to_arrow().to_pylist() == first.to_dict("records")


def test_a_scan_goes_into_a_table_and_replaces_its_own(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "id INT, s STRING, v VARIANT")
    table.append(ROWS)
    copy = mica.Table.create(tmp_path / "c", "id INT, v VARIANT")
    copy.append(table.scan(where="id > 1", columns=["id", "v"]))
    assert mica.variant.to_json(copy.to_arrow()["v"]).to_pylist() == TEXTS[1:]
    table.overwrite(table.scan(where="id = 3"))
    assert table.to_arrow()["id"].to_pylist() == [3]
    mica.write_parquet(table.scan(), tmp_path / "a.parquet")
    assert mica.read_parquet(tmp_path / "a.parquet").to_arrow()["s"].to_pylist() == ["c"]
    (Path(table.path) / table.files()["path"][0].as_py()).unlink()
    with pytest.raises(mica.MicaError):
        copy.append(mica.Table.open(table.path).scan(columns=["id"]))
    assert copy.refresh().version == 1


def test_a_stream_is_taken_as_it_comes(tmp_path: Path) -> None:
    alive: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for i in range(50):
            alive.append(i)
            yield pa.record_batch({"v": ['{"a":1}'] * 100})

    reader = arrow(
        pa.RecordBatchReader.from_batches(pa.schema([("v", pa.string())]), batches()), parse_ddl("v VARIANT")
    )
    reader.read_next_batch()
    assert len(alive) == 1
    table = mica.Table.create(tmp_path / "t", "v VARIANT")
    assert table.append(reader).rows == 4900
    lazy = arrow(pl.LazyFrame({"a": range(10)}), parse_ddl("a BIGINT"))
    assert isinstance(lazy, pa.RecordBatchReader)
    nothing = arrow(pl.LazyFrame({"a": [1]}).filter(pl.col("a") > 1), parse_ddl("a BIGINT"))
    assert nothing.read_all().num_rows == 0


def test_an_iterator_is_taken_as_it_comes_and_its_error_undoes_the_write(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "a DOUBLE, b STRING, v VARIANT")
    asked = 0

    def dicts(count: int) -> Iterator[dict[str, Any]]:
        nonlocal asked
        for asked in range(1, count + 1):
            # What the first batch lacks or has as another type comes later.
            yield {"a": asked, "v": {"n": asked}} if asked <= DICTS else {"a": asked + 0.5, "b": "x", "v": "[1]"}

    reader = arrow(dicts(100 * DICTS), table.schema)
    assert reader.read_next_batch().num_rows == DICTS
    assert asked == DICTS
    assert table.append(dicts(DICTS + 2)).rows == DICTS + 2
    last = table.scan(where=f"a > {DICTS}", columns={"a": "a", "b": "b", "v": "schema_of_variant(v)"}).to_arrow()
    assert last.to_pylist() == [{"a": DICTS + i + 0.5, "b": "x", "v": "ARRAY<BIGINT>"} for i in (1, 2)]

    def broken() -> Iterator[Any]:
        yield from dicts(DICTS + 1)
        raise RuntimeError("the source is gone")

    before = sorted(Path(table.path).glob("*.parquet"))
    with pytest.raises(RuntimeError, match="the source is gone"):
        table.append(broken())
    assert (table.refresh().version, sorted(Path(table.path).glob("*.parquet"))) == (1, before)
    assert table.append(iter([])).rows == 0


def test_a_table_is_data_too(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "id INT, s STRING, v VARIANT")
    table.append(ROWS)
    copy = mica.Table.create(tmp_path / "c", "id INT, s STRING, v VARIANT")
    assert copy.append(table).rows == 3
    assert copy.overwrite(copy).rows == 3
    mica.write_parquet(copy, tmp_path / "a.parquet")
    assert mica.read_parquet(tmp_path / "a.parquet").to_arrow().equals(table.to_arrow())
    assert pa.table(table).equals(table.to_arrow())
    assert pl.DataFrame(table)["id"].to_list() == [1, 2, 3]


def test_python_values_take_the_columns_types(tmp_path: Path) -> None:
    ddl = (
        "f FLOAT, d DECIMAL(30,2), m MAP<STRING, VARIANT>, l ARRAY<VARIANT>, s STRUCT<v: VARIANT, n: INT>, t TIMESTAMP,"
        "i MAP<INT, STRING>, x DATE"
    )
    table = mica.Table.create(tmp_path / "t", ddl)
    now = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    row = {"f": 0.5, "d": Decimal(10**20), "m": {"k": {"a": 1.5}}, "l": [1, "2", None], "s": {"v": [True]}, "t": now}
    table.append([row | {"i": {1: "x"}, "x": dt.date(2020, 1, 1)}, {}, {"d": 1, "m": [("k", 1)], "s": {"n": 4}}])
    first, empty, last = table.to_pandas().to_dict("records")
    assert (first["f"], first["d"], first["t"].to_pydatetime()) == (0.5, Decimal("100000000000000000000.00"), now)
    assert dict(first["m"]) == {"k": {"a": 1.5}}
    assert first["l"] == [1, 2, None], "a str is a JSON text"
    assert first["s"] == {"v": [True], "n": None}
    assert list(first["i"]) == [(1, "x")]
    assert empty["m"] is None
    assert empty["s"] is None
    assert dict(last["m"]) == {"k": 1}
    assert last["s"] == {"v": None, "n": 4}
    table.overwrite([{"f": 2}, {"f": None}])
    assert table.to_arrow()["f"].to_pylist() == [2.0, None]
    table.overwrite([{"f": np.int64(2)}, {"f": 2**62}, {"f": np.uint8(3)}, {"f": None}])
    assert table.to_arrow()["f"].to_pylist() == [2.0, 2.0**62, 3.0, None]
    table.overwrite([{"f": 0.1}, {"f": math.inf}, {"f": 2}, {"f": None}])
    # The nearest 32-bit float, as PySpark writes it.
    assert table.to_arrow()["f"].to_pylist() == [0.10000000149011612, math.inf, 2.0, None]


def test_no_rows_are_no_rows(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "a INT NOT NULL, v VARIANT")
    assert table.append([]).rows == 0
    other = mica.Table.create(tmp_path / "o", "a INT, v VARIANT")
    assert other.append([{}, {}]).rows == 2
    assert other.to_arrow()["a"].to_pylist() == [None, None]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ([{"v": "{"}], "INVALID_JSON"),
        (pa.table({"v": ["{"]}), "INVALID_JSON"),
        ([{"v": {1}}], "INVALID_VALUE"),
        ([{"a": 1.5}], "INCOMPATIBLE_TYPE"),
        ([{"a": "1"}], "INCOMPATIBLE_TYPE"),
        ([{"a": 1}, {"a": "x"}], "INVALID_VALUE"),
        ([{"a": 1 << 40}], "INVALID_VALUE"),
        ([{"f": 1e300}], "INVALID_VALUE"),
        ([{"z": 1}], "UNKNOWN_COLUMN"),
        ([{"s": {"z": 1}}], "UNKNOWN_COLUMN"),
        ([{"s": 1}], "INCOMPATIBLE_TYPE"),
        ([{"s": {}}, {"s": 1}], "INVALID_VALUE"),
        ([{"s": {1: 2}}], "INVALID_VALUE"),
        ([{"m": [("a",)]}], "INVALID_VALUE"),
        ([{"m": {None: 1}}], "INVALID_VALUE"),
        (pl.DataFrame({"a": [1]}, {"a": pl.Int128}), "INVALID_VALUE"),
        ([{"d": Decimal("1.234")}], "INVALID_VALUE"),
        ([{"d": 1.5}], "INCOMPATIBLE_TYPE"),
        ([{"f": 2**53 + 1}], "INVALID_VALUE"),
        ([{"f": np.int64(2**53 + 1)}], "INVALID_VALUE"),
        ([{"f": 10**400}], "INVALID_VALUE"),
        ([{"f": 2**24 + 1}], "INCOMPATIBLE_TYPE"),
        ([1], "INVALID_ARGUMENT"),
        ([{1: 2}], "INVALID_ARGUMENT"),
        ("text", "INVALID_ARGUMENT"),
        ({"a": [1]}, "INVALID_ARGUMENT"),
        (None, "INVALID_ARGUMENT"),
        (iter(["text"]), "INVALID_ARGUMENT"),
        (iter([{"a": 1}, 1]), "INVALID_ARGUMENT"),
        (iter([pa.table({"a": [1]}), pa.table({"b": [1]})]), "UNKNOWN_COLUMN"),
        (iter([{"a": 1}, pa.table({"a": [2**40]})]), "INVALID_VALUE"),
        (pa.table({"v": [1]}), "INCOMPATIBLE_TYPE"),
        (pa.table({"v": [b"1"]}), "INCOMPATIBLE_TYPE"),
        (pa.table({"v": [{"x": dt.timedelta(1)}]}), "INCOMPATIBLE_TYPE"),
        (pa.table({"v": [{"x": {"metadata": b"1", "value": b"2"}}]}), "INCOMPATIBLE_TYPE"),
        (pa.table({"v": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64()))}), "INCOMPATIBLE_TYPE"),
        (
            pa.table({"v": pa.array([{"m": [("k", 1)]}], pa.struct({"m": pa.map_(pa.string(), pa.int64())}))}),
            "INCOMPATIBLE_TYPE",
        ),
        (pl.Series("id", [1]), "INVALID_ARGUMENT"),
        (pd.Series([1], name="id"), "INVALID_ARGUMENT"),
        (pd.DataFrame([[1, 1]], columns=["a", "a"]), "INVALID_VALUE"),
        (pd.DataFrame({"v": [{1}]}), "INVALID_VALUE"),
        (pd.DataFrame({"a": [1, "x"]}), "INVALID_VALUE"),
    ],
)
def test_what_is_not_meant_is_refused_and_nothing_is_written(tmp_path: Path, data: Any, code: str) -> None:
    ddl = "a INT, f FLOAT, d DECIMAL(5,2), s STRUCT<n: INT>, m MAP<STRING, INT>, v VARIANT"
    table = mica.Table.create(tmp_path / "t", ddl)
    with pytest.raises(mica.MicaError) as caught:
        table.append(data)
    assert caught.value.code == code
    assert table.refresh().version == 0
    assert not list(Path(table.path).glob("*.parquet"))


def test_a_text_that_is_no_json_is_named(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "v VARIANT")
    with pytest.raises(mica.CorruptDataError, match=r"the column 'v' is VARIANT .* in '\{oops'"):
        table.append(pa.table({"v": ["1", "{oops"]}))


def test_bare_files_take_the_same(tmp_path: Path) -> None:
    for i, data in enumerate((ROWS, _plain(), pl.DataFrame(ROWS), pd.DataFrame(ROWS), pl.LazyFrame(ROWS), iter(ROWS))):
        mica.write_parquet(data, tmp_path / f"{i}.parquet", shredding={"v": "struct<a: bigint>"})
        scan = mica.read_parquet(tmp_path / f"{i}.parquet")
        assert str(scan.schema.field("v").type) == "Primitive(name='variant')"
        assert mica.variant.to_json(scan.to_arrow()["v"]).to_pylist() == TEXTS


def test_arrow_columns_become_variants_with_their_types() -> None:
    from mica.variant.plain import to_variants

    struct = pa.array(
        [
            {"i": 1, "u": 2**63, "f": 1.5, "d": Decimal("1.50"), "t": dt.datetime(2020, 1, 1), "l": [[1], None, []],  # noqa: DTZ001
             "b": b"x", "n": None, "e": {"x": None}, "day": dt.date(2020, 1, 2), "time": dt.time(1), "ok": True},
            None,
            {"i": None, "l": None, "e": None},
        ],
        pa.struct([
            ("i", pa.int8()), ("u", pa.uint64()), ("f", pa.float32()), ("d", pa.decimal128(5, 2)),
            ("t", pa.timestamp("ns")), ("l", pa.large_list(pa.list_(pa.int64()))), ("b", pa.large_binary()),
            ("n", pa.null()), ("e", pa.struct([("x", pa.string_view())])), ("day", pa.date64()),
            ("time", pa.time32("s")), ("ok", pa.bool_()),
        ]),
    )  # fmt: skip
    make = to_variants(pa.field("v", struct.type), "v")
    assert make is not None
    for array in (struct, pa.concat_arrays([struct, struct]).slice(3)):
        first, nothing, last = mica.variant.to_python(make(array))
        assert first == struct[0].as_py() | {"u": Decimal(2**63), "t": dt.datetime.fromisoformat("2020-01-01")}
        assert nothing is None
        assert last == dict.fromkeys(first)
    assert make(struct).null_count == 1
    assert len(make(struct.slice(0, 0))) == 0
    lists = pa.array([[{"a": 1}, None], None, []])
    make = to_variants(pa.field("v", lists.type), "v")
    assert make is not None
    assert mica.variant.to_json(make(lists)).to_pylist() == ['[{"a":1},null]', None, "[]"]


@pytest.mark.parametrize(
    "given",
    [[], [{}, {}], iter([]), pd.DataFrame(index=range(3)), pa.table({"n": [1, 2]}).select([])],
    ids=["nothing", "empty dicts", "an empty iterator", "a pandas DataFrame", "an Arrow table"],
)
def test_rows_that_name_no_column_are_counted_by_the_table(tmp_path: Path, given: Any) -> None:
    rows = 0 if isinstance(given, Iterator) else len(given)
    defaults = {"delta.feature.allowColumnDefaults": "supported"}
    columns = "id BIGINT GENERATED ALWAYS AS IDENTITY, s STRING, n INT DEFAULT 7"
    table = mica.Table.create(tmp_path, columns, properties=defaults)
    table.append(given)
    assert table.to_arrow().to_pylist() == [{"id": i + 1, "s": None, "n": 7} for i in range(rows)]


@pytest.mark.parametrize(
    "type_",
    [pa.large_list(pa.int64()), pa.list_(pa.int64(), 2), pa.list_view(pa.int64()), pa.large_list_view(pa.int64())],
    ids=str,
)
def test_lists_of_any_layout_become_variants(tmp_path: Path, type_: pa.DataType) -> None:
    """Arrow's cast of views to lists loses values."""
    lists = [[0, 0], [1, 2], None, [3, None]]
    table = mica.Table.create(tmp_path, "v VARIANT")
    table.append(pa.table({"v": pa.array(lists, type_)}).slice(1))
    assert mica.variant.to_python(table.to_arrow().column("v")) == lists[1:]


def test_maps_may_all_be_empty_in_the_source_of_a_merge(tmp_path: Path) -> None:
    """Without a pair nothing tells the type of the keys but the table; a raw TypeError of Arrow's came."""
    table = mica.Table.create(tmp_path, "k INT, m MAP<STRING, INT>, l ARRAY<MAP<DATE, STRING>>")
    table.append([{"k": 1, "m": {"a": 1}, "l": [{dt.date(2020, 1, 1): "x"}]}])
    merge = table.merge([{"k": 1, "m": {}, "l": [{}]}, {"k": 2, "m": [], "l": None}], "target.k = source.k")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    wanted = [{"k": 1, "m": [], "l": [[]]}, {"k": 2, "m": [], "l": None}]
    assert sorted(table.to_arrow().to_pylist(), key=str) == wanted


def test_maps_whose_keys_have_no_type_are_refused_in_the_source_of_a_merge(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "k INT")
    untyped = pa.MapArray.from_arrays([0, 0], pa.nulls(0), pa.nulls(0))
    with pytest.raises(UserError) as refused:
        table.merge(pa.table({"k": [1], "m": untyped}), "target.k = source.k").when_matched_delete().execute()
    assert refused.value.code == "UNSUPPORTED_TYPE"


FIRST, OTHERS = (
    {"id": pa.array([1], pa.int64()), "s": ["a"]},
    [
        {"id": pa.array([2], pa.int32()), "s": ["b"]},
        {"s": ["b"], "id": pa.array([2], pa.int64())},
        {"id": pa.array([2], pa.int64())},
    ],
)


@pytest.mark.parametrize("other", OTHERS, ids=["another type", "another order", "a column less"])
@pytest.mark.parametrize("kind", [list, iter])
def test_batches_may_differ_in_whatever_is_written_or_merged(tmp_path: Path, kind: Any, other: dict[str, Any]) -> None:
    given = [pa.RecordBatch.from_pydict(FIRST), pa.RecordBatch.from_pydict(other)]
    expected = [(1, "a"), (2, other.get("s", [None])[0])]
    table = mica.Table.create(tmp_path, "id BIGINT, s STRING", data=kind(given))
    assert sorted(tuple(row.values()) for row in table.to_arrow().to_pylist()) == expected
    merge = table.merge(kind(given), "target.id = source.id").when_matched_update({"s": "concat(source.s, '!')"})
    merge.execute()
    assert sorted(table.to_arrow()["s"].to_pylist(), key=str) == sorted(
        [None if text is None else f"{text}!" for _, text in expected], key=str
    )


def test_a_column_that_only_later_rows_of_a_source_have_is_named(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id BIGINT, s STRING")
    given = iter([pa.table({"id": [1]}), pa.table({"id": [2], "s": ["b"]})])
    with pytest.raises(UserError, match="rows of the source have the column 's', which the first ones lack") as caught:
        table.merge(given, "target.id = source.id").when_not_matched_insert({"id": "source.id"}).execute()
    assert caught.value.code == "UNKNOWN_COLUMN"
