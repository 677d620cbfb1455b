"""Statistics from footers: what a write would say, and nothing where a footer of others is no proof."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

import mica
from mica.scan.files import FilesSource
from mica.scan.find import find
from mica.scan.scan import Scan
from mica.stats.paths import read_all
from mica.tasks.footer_stats import FooterSpec, footer_stats
from mica.tasks.parts import parts_of
from tests.variant_files import ONE, column, file, leaf, metadata, objects


def stats(path: Path) -> dict[str, Any]:
    source = FilesSource(find(str(path)), early=False)
    [batch] = footer_stats(FooterSpec(Scan(source).spec()), parts_of(source.all_files()))
    found: dict[str, Any] = orjson.loads(batch.column("stats")[0].as_py())
    return found


def test_of_our_files_they_are_those_of_the_write(tmp_path: Path) -> None:
    schema = "id INT, d DATE, ts TIMESTAMP, x DOUBLE, s STRING, st STRUCT<a: INT, b: STRING>, o BOOLEAN, n DECIMAL(9,2)"
    table = mica.Table.create(tmp_path, f"{schema}, v VARIANT, l ARRAY<INT>")
    table.append([
        {"id": i or None, "d": dt.date(2020, 1, 1 + i % 20), "ts": dt.datetime(2020, 1, 1, i % 24, tzinfo=dt.UTC),
         "x": i / 3, "s": "y" * 40 + str(i) if i % 2 else None, "st": {"a": i, "b": None}, "o": True, "l": [i],
         "n": Decimal(i), "v": {"a": i, "s": f"t{i}", "d": float(i), "odd": i if i % 2 else "x", "t": [i]}}
        for i in range(100)
    ])  # fmt: skip
    [file] = table.files().to_pylist()
    written, found = orjson.loads(file["stats"]), stats(tmp_path / file["path"])
    for document in (written, found):  # encodings of equal numbers may differ in width
        for side in ("minValues", "maxValues"):
            document[side]["v"] = read_all(document[side]["v"])
    assert written["nullCount"].pop("l") == 0  # which a footer does not tell of lists
    assert found == written


def test_floats_of_others_have_no_maximum(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"x": [1.0, float("nan"), 3.0], "i": [1, None, 3], "s": ["a", "b", None]}), tmp_path / "a.parquet"
    )
    found = stats(tmp_path / "a.parquet")
    assert found["minValues"] == {"x": 1.0, "i": 1, "s": "a"}
    assert found["maxValues"] == {"i": 3, "s": "b"}
    assert (found["nullCount"], found["numRecords"]) == ({"x": 0, "i": 1, "s": 1}, 3)


def test_row_groups_are_taken_together(tmp_path: Path) -> None:
    rows = pa.table({"i": pa.array([*range(10), *[None] * 10, *range(50, 60)], pa.int64())})
    pq.write_table(rows, tmp_path / "a.parquet", row_group_size=10)
    found = stats(tmp_path / "a.parquet")
    assert (found["minValues"], found["maxValues"], found["nullCount"]) == ({"i": 0}, {"i": 59}, {"i": 10})


def test_without_statistics_there_are_none(tmp_path: Path) -> None:
    pq.write_table(pa.table({"i": [1, 2]}), tmp_path / "a.parquet", write_statistics=False)
    found = stats(tmp_path / "a.parquet")
    assert (found["minValues"], found["maxValues"], found["numRecords"]) == ({}, {}, 2)
    pq.write_table(pa.table({"i": pa.array([], pa.int64())}), tmp_path / "b.parquet")
    assert stats(tmp_path / "b.parquet")["numRecords"] == 0


def test_a_file_without_rows_or_without_a_column_has_its_nulls_counted(tmp_path: Path) -> None:
    pq.write_table(pa.table({"i": pa.array([], pa.int64())}), tmp_path / "none.parquet")
    assert stats(tmp_path / "none.parquet")["nullCount"] == {"i": 0}
    table = mica.Table.create(tmp_path / "t", "i INT")
    table.append([{"i": 1}, {"i": 2}])
    table.add_columns("j INT, s STRUCT<x: INT>")
    scan = mica.Table.open(tmp_path / "t").scan()
    [batch] = footer_stats(FooterSpec(scan.spec()), parts_of(scan.source.all_files()))
    found = orjson.loads(batch.column("stats")[0].as_py())
    assert (found["nullCount"], found["maxValues"]) == ({"i": 0, "j": 2, "s": {"x": 2}}, {"i": 2})


def test_paths_have_bounds_beyond_the_years_of_python(tmp_path: Path) -> None:
    days = [pa.scalar(n, pa.int32()).cast(pa.date32()) for n in (5_000_000, 2)]
    mica.write_parquet(pa.table({"v": mica.variant.from_python([{"d": day} for day in days])}), tmp_path / "a.parquet")
    found = stats(tmp_path / "a.parquet")
    assert [read_all(found[side]["v"])["$['d']"].value for side in ("minValues", "maxValues")] == [2, 5_000_000]


def test_one_row_group_without_bounds_leaves_the_file_without(tmp_path: Path) -> None:
    """Arrow's writer leaves out the bounds of texts that are too long for its statistics."""
    texts = pa.table({"s": ["a", "b", "c" * 5000, "d"], "i": [1, 2, 3, 4]})
    pq.write_table(texts, tmp_path / "a.parquet", row_group_size=2)
    found = stats(tmp_path / "a.parquet")
    assert (found["minValues"], found["maxValues"]) == ({"i": 1}, {"i": 4})


def test_texts_are_cut_after_32_code_points(tmp_path: Path) -> None:
    for text, low, high in [
        ("ä" * 32, "ä" * 32, "ä" * 32),
        ("ä" * 33, "ä" * 32, "ä" * 32 + "\U0010ffff"),
        ("ä" * 32 + "\U0010ffff", "ä" * 32, None),
    ]:
        pq.write_table(pa.table({"s": [text]}), tmp_path / "a.parquet")
        found = stats(tmp_path / "a.parquet")
        assert found["minValues"] == {"s": low}
        assert found["maxValues"] == ({} if high is None else {"s": high})


def test_paths_of_others_have_bounds_where_all_values_are_typed_and_none_is_a_float(tmp_path: Path) -> None:
    typed = objects(i=leaf(pa.int64()), x=leaf(pa.float64()), o=leaf(pa.int64()))
    rows = [
        {"typed_value": {"i": {"typed_value": n}, "x": {"typed_value": 0.5}, "o": odd}}
        for n, odd in ((3, {"typed_value": 7}), (5, {"value": ONE}))
    ]
    file(tmp_path / "a.parquet", column(rows, typed, names=metadata("i", "o", "x")))
    found = stats(tmp_path / "a.parquet")
    low, high = (read_all(found[side]["v"]) for side in ("minValues", "maxValues"))
    assert ({p: b and b.value for p, b in low.items()}, {p: b and b.value for p, b in high.items()}) == (
        {"$['i']": 3}, {"$['i']": 5},
    )  # fmt: skip
