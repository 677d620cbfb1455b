"""Files that move page by page: what stands in them is what a writer would have written, and nothing else moves so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mica
from mica.variant import kernel
from mica.variant.kernel import Request
from tests.early import values, variants

TREE = pa.struct(
    [
        ("a", pa.int64()),
        ("b", pa.struct([("c", pa.string()), ("d", pa.float64())])),
        ("l", pa.list_(pa.struct([("x", pa.int32()), ("m", pa.list_(pa.string()))]))),
        ("t", pa.decimal128(9, 2)),
        ("u", pa.null()),
    ]
)


def document(i: int) -> Any:
    """Fully shredded by TREE; `...` is SQL NULL."""
    if i % 11 == 0:
        return ...
    row: dict[str, Any] = {"a": i} if i % 3 else {}
    if i % 5:
        row["b"] = {"c": f"text {i // 7}"} if i % 2 else {"d": i / 4 + 1e300}
    if i % 4:
        row["l"] = [{"x": k, "m": ["m"] * (k % 3)} if k % 2 else {} for k in range(i % 5)]
    return row if i % 13 else {}


DOCUMENTS = [document(i) for i in range(3000)]
LAYOUTS = ("standard", "early")


def written(path: Path, layout: str, documents: list[Any], tree: pa.DataType = TREE, **options: Any) -> Path:
    [batch] = variants(*documents).to_batches()
    shredded = kernel.shred(batch, {("v",): tree}, early=layout == "early")
    path.parent.mkdir(exist_ok=True)
    writer = kernel.FileWriter(shredded.schema, path=str(path), **{"row_group_rows": 1024, "page_rows": 100, **options})
    writer.write(shredded)
    writer.close()
    return path


def opened(path: Path) -> kernel.FileReader:
    return kernel.FileReader(path=str(path), name=path.name, early=True)


def transcribed(source: Path, target: Path, layout: str) -> dict[str, Any] | None:
    """The facts of the new file, or None where it takes more than pages."""
    made = kernel.transcribe(opened(source), [("v", True)], layout, path=str(target))
    if made is None:
        assert not target.exists()
        return None
    while made.step():
        pass
    facts: dict[str, Any] = made.close()
    return facts


LEAVES = [["a"], ["b", "c"], ["b", "d"], ["t"], ["nowhere"]]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("compression", ["zstd", "snappy", "none"])
def test_pages_hold_what_a_writer_would_have_written(tmp_path: Path, layout: str, compression: str) -> None:
    (other,) = set(LAYOUTS) - {layout}
    source = written(tmp_path / "source.parquet", other, DOCUMENTS, compression=compression)
    direct = written(tmp_path / "direct.parquet", layout, DOCUMENTS)
    target = tmp_path / "target.parquet"
    facts = transcribed(source, target, layout)
    assert facts is not None
    assert (facts["rows"], facts["row_groups"], facts["size"]) == (3000, 3, target.stat().st_size)
    assert values(target) == values(source) == [None if d is ... else d for d in DOCUMENTS]
    assert pq.ParquetFile(target).schema == pq.ParquetFile(direct).schema
    assert pq.read_table(target).equals(pq.read_table(direct))
    assert mica.check(target).ok
    one, other_one = opened(target), opened(direct)
    leaves = [Request(("v",), p, pa.string(), name=".".join(p)) for p in LEAVES]
    for pages in (False, True):
        assert one.bounds(leaves, pages=pages) == other_one.bounds(leaves, pages=pages)
    nulls = [
        [(c.num_values, c.statistics.null_count, c.path_in_schema) for c in columns(path)] for path in (target, direct)
    ]
    assert nulls[0] == nulls[1]
    where = "v:a::bigint BETWEEN 700 AND 710 AND v:b.c::string >= 'text'"
    found = mica.read_parquet(target, where=where).to_pandas()["v"].tolist()
    assert found == mica.read_parquet(direct, where=where).to_pandas()["v"].tolist() != []


def columns(path: Path) -> list[Any]:
    footer = pq.ParquetFile(path).metadata
    return [footer.row_group(g).column(c) for g in range(footer.num_row_groups) for c in range(footer.num_columns)]


def test_a_tables_bounds_are_those_of_a_writer(tmp_path: Path) -> None:
    source = written(tmp_path / "source.parquet", "early", DOCUMENTS)
    done = mica.convert_files(source, tmp_path / "table")
    assert (done.copied, done.rebuilt, done.files) == (0, 0, 1)
    [batch] = variants(*DOCUMENTS).to_batches()
    target = mica.Table.create(tmp_path / "direct", "v VARIANT").append(
        pa.Table.from_batches([batch]), shredding={"v": TREE}
    )
    assert target.rows == 3000
    logs = [json.loads(line) for name in ("table", "direct") for line in lines(tmp_path / name) if '"add"' in line]
    stats = [json.loads(line["add"]["stats"]) for line in logs]
    assert stats[0] == stats[1]
    assert stats[0]["nullCount"] == {"v": sum(d is ... for d in DOCUMENTS)}


def lines(table: Path) -> list[str]:
    return "\n".join(p.read_text() for p in sorted((table / "_delta_log").glob("*.json"))).splitlines()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_files_of_the_layout_are_copied_with_what_is_left_over(tmp_path: Path, layout: str) -> None:
    documents: list[Any] = [{"a": "odd", "z": [1]}, {"a": 1}, ..., None, 7, [{"a": 1}]]
    source = written(tmp_path / "source.parquet", layout, documents)
    done = mica.convert_files(source, tmp_path / "target", layout=layout, to="parquet")
    assert (done.rows, done.copied, done.rebuilt) == (6, 6, 0)
    [target] = (tmp_path / "target").iterdir()
    assert pq.read_table(target).equals(pq.read_table(source))
    assert opened(target).key_value_metadata == opened(source).key_value_metadata


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("odd", [{"a": "odd"}, {"z": 1}, 7, None, {"l": [None]}, {"b": []}])
def test_what_is_left_over_takes_more_than_pages(tmp_path: Path, layout: str, odd: Any) -> None:
    (other,) = set(LAYOUTS) - {layout}
    documents = [*DOCUMENTS[:30], odd]
    source = written(tmp_path / "source.parquet", other, documents)
    assert transcribed(source, tmp_path / "target.parquet", layout) is None
    done = mica.convert_files(source, tmp_path / "target", layout=layout, to="parquet")
    assert (done.rows, done.copied, done.rebuilt) == (31, 0, 0)
    assert values(tmp_path / "target") == [None if d is ... else d for d in documents]


def test_files_of_other_writers_are_decoded(tmp_path: Path) -> None:
    """What their bounds are worth is not known, nor where they leave a value."""
    source = written(tmp_path / "source.parquet", "early", DOCUMENTS, created_by="another")
    for layout in LAYOUTS:
        assert transcribed(source, tmp_path / "target.parquet", layout) is None
    done = mica.convert_files(source, tmp_path / "target", layout="early")
    assert (done.copied, done.rebuilt) == (0, 3000)


def test_what_is_missing_where_it_may_not_be_is_decoded(tmp_path: Path) -> None:
    """The footer promises empty residuals; the levels say that an element, and a column, have no value at all."""
    [batch] = variants([1]).to_batches()
    for early, rows in ((False, [[1], [None, 2], None]), (True, [[1], None, [2, None]])):
        shredded = kernel.shred(batch, {("v",): pa.list_(pa.int32())}, early=early)
        type_ = shredded.column(0).type
        place = "array" if early else "typed_value"
        made = [
            {
                place: row and [{"typed_value": n} for n in row],
                **({} if early else {"metadata": b"\x11\0\0", "value": None}),
            }
            for row in rows
        ]
        path = tmp_path / f"{early}.parquet"
        damaged = pa.RecordBatch.from_arrays([pa.array(made, type_)], schema=shredded.schema)
        writer = kernel.FileWriter(damaged.schema, path=str(path))
        writer.write(damaged)
        writer.close()
        layout = LAYOUTS[not early]
        reader = opened(path)
        made_new = kernel.transcribe(reader, [("v", True)], layout, path=str(tmp_path / f"new-{early}.parquet"))
        assert made_new is not None
        with pytest.raises(mica.UserError) as caught:
            made_new.step()
        assert caught.value.code == "DOES_NOT_FIT"
        mica.convert_files(path, tmp_path / layout, layout=layout, to="parquet")
        assert len(list((tmp_path / layout).iterdir())) == 1
        assert values(tmp_path / layout) == rows == values(path)


def test_residuals_that_the_file_lacks_are_written(tmp_path: Path) -> None:
    """`untyped="where needed"` leaves them out; the standard layout has a `value` everywhere."""
    rows = variants(*[d for d in DOCUMENTS if d is ... or "l" not in d])
    tree = pa.struct([f for f in TREE if f.name not in ("l", "u")])
    mica.write_parquet(rows, tmp_path / "a.parquet", layout="early", untyped="where needed", shredding={"v": tree})
    assert "untyped_value" not in str(pq.read_schema(tmp_path / "a.parquet"))
    assert transcribed(tmp_path / "a.parquet", tmp_path / "b.parquet", "standard") is not None
    assert values(tmp_path / "b.parquet") == values(tmp_path / "a.parquet")
    assert mica.check(tmp_path / "b.parquet").ok
    mica.write_parquet(rows, tmp_path / "c.parquet", shredding={"v": tree})
    assert pq.read_table(tmp_path / "b.parquet").equals(pq.read_table(tmp_path / "c.parquet"))


def test_other_columns_come_along(tmp_path: Path) -> None:
    table = variants(*DOCUMENTS[:50])
    table = table.append_column("n", pa.array(range(50), pa.int32()))
    table = table.append_column("l", pa.array([None if i % 7 == 0 else [i] * (i % 3) for i in range(50)]))
    table = table.append_column("s", pa.array([{"d": i / 2} if i % 2 else None for i in range(50)]))
    for layout in LAYOUTS:
        (other,) = set(LAYOUTS) - {layout}
        mica.write_parquet(table, tmp_path / f"{other}.parquet", shredding={"v": TREE}, layout=other)
        done = mica.convert_files(tmp_path / f"{other}.parquet", tmp_path / layout, layout=layout, to="parquet")
        assert (done.rows, done.copied, done.rebuilt) == (50, 0, 0)
        found = mica.read_parquet(tmp_path / layout).to_arrow()
        assert found.drop_columns(["v"]).equals(table.drop_columns(["v"]))
        assert values(tmp_path / layout) == [None if d is ... else d for d in DOCUMENTS[:50]]
