"""Rows that are copied keep the storage layout of their Variants, and are the rows that they were."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mica
from mica.errors import UserError
from mica.tasks import stored
from mica.tasks.batches import cut
from mica.variant import kernel
from tests.parquet_schema import CONVERTED, I32, Element, write

KINDS = {
    "plain": {},
    "mapped": {"delta.columnMapping.mode": "name"},
    "tracked": {"delta.enableRowTracking": "true"},
    "fed": {"delta.enableChangeDataFeed": "true"},
}


def documents(count: int, seed: int) -> list[Any]:
    """Documents of a few shapes: typed paths, residuals beside and instead of them, arrays of objects, nulls."""
    made = random.Random(seed)

    def one(n: int) -> Any:
        odd = made.randrange(12)
        if odd == 0:
            return made.choice([None, 17, "text", [1, "a"], {"n": "no number", "tags": "none"}])
        tags = [{"name": f"t{made.randrange(3)}", "rank": made.choice([1, "first", None])} for _ in range(odd % 4)]
        more = {"extra": {"deep": [odd]}} if odd == 1 else {}
        return {"n": n, "user": {"name": f"u{n % 5}", **({"x": odd} if odd == 2 else {})}, "tags": tags, **more}

    return [one(n) for n in range(count)]


def table(path: Path, kind: str, rows: int = 3000) -> tuple[mica.Table, dict[int, Any]]:
    given = dict(enumerate(documents(rows, 7)))
    t = mica.Table.create(path, "id INT, p STRING, v VARIANT", partition_by=["p"], properties=KINDS[kind])
    t.append([{"id": n, "p": "a" if n % 3 else "b", "v": json.dumps(v)} for n, v in given.items()])
    return t, given


def rows_of(t: mica.Table) -> dict[int, Any]:
    found = t.scan(columns={"id": "id", "v": "to_json(v)"}).to_arrow()
    ids = found["id"].to_pylist()
    assert len(set(ids)) == len(ids)
    texts = found["v"].to_pylist()
    return {n: None if text is None else json.loads(text) for n, text in zip(ids, texts, strict=True)}


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows of each batch were written as they are stored."""
    found: list[int] = []
    made = stored.StoredRows

    def count(batch: pa.RecordBatch, trees: Any) -> stored.StoredRows:
        found.append(batch.num_rows)
        return made(batch, trees)

    monkeypatch.setattr(stored, "StoredRows", count)
    return found


def test_columns_may_be_called_as_the_kernel_calls_what_has_no_name(tmp_path: Path) -> None:
    """The mask of `v` is `v!` there, and the first of the columns `0`."""
    t = mica.Table.create(tmp_path / "t", "n INT, v VARIANT, `v!` VARIANT, `0` VARIANT")
    t.append([{"n": n, "v": {"a": n}, "v!": {"b": n}, "0": {"c": n}} for n in range(40)])
    t.delete("n = 5")
    found = t.scan(columns={"n": "n", "a": "v:a::int", "b": "`v!`:b::int", "c": "`0`:c::int"}).to_arrow().to_pylist()
    assert all(len({*row.values()}) == 1 for row in found)
    assert len(found) == 39


@pytest.mark.parametrize("kind", KINDS)
def test_changes_leave_all_other_rows_as_they_are(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "_TURN", 700)
    t, want = table(tmp_path / "t", kind)
    before = ids_of(t) if kind == "tracked" else {}
    copied = counted(monkeypatch)
    t.delete("id % 10 = 3")
    want = {n: v for n, v in want.items() if n % 10 != 3}
    assert rows_of(t) == want
    assert sum(copied) == len(want)

    del copied[:]
    t.update({"v": "parse_json('{\"n\": -1}')"}, "id % 7 = 0")
    assert sum(copied) == sum(n % 7 != 0 for n in want)
    want = {n: v if n % 7 else {"n": -1} for n, v in want.items()}
    assert rows_of(t) == want

    del copied[:]
    source = [{"id": n, "p": "b", "v": {"n": "merged"}} for n in (6, 60, 600, 9000, 9001)]
    merge = t.merge(source, "target.id = source.id").when_matched_delete("source.id = 600")
    merge.when_matched_update({"v": "source.v"}).when_not_matched_insert_all().execute()
    assert sum(copied) == sum(n % 3 == 0 for n in want) - 3
    del want[600]
    want |= {n: {"n": "merged"} for n in (6, 60, 9000, 9001)}
    assert rows_of(t) == want
    assert mica.check(tmp_path / "t").ok
    if kind == "tracked":
        after = ids_of(t)
        assert all(after[n] == before[n] for n in want if n < 9000)
        assert len(set(after.values())) == len(after)


def ids_of(t: mica.Table) -> dict[int, int]:
    rows = t.scan(columns={"id": "id", "row": "_metadata.row_id"}).to_arrow()
    return dict(zip(rows["id"].to_pylist(), rows["row"].to_pylist(), strict=True))


def test_changed_rows_are_written_among_those_of_their_row_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "_TURN", 1000)
    t, _ = table(tmp_path / "t", "plain")
    copied = counted(monkeypatch)
    t.update({"v": "parse_json('{}')"}, "id % 10 = 1")
    assert len(copied) > 2
    for name in t.file_uris():
        ids = pq.read_table(name.removeprefix("file://"), columns=["id"])["id"].to_pylist()
        assert ids != sorted(ids)
        places = {n: at for at, n in enumerate(sorted(ids))}
        assert all(places[n] // 1000 == at // 1000 for at, n in enumerate(ids))


def test_where_most_rows_change_all_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    t, want = table(tmp_path / "t", "plain")
    copied = counted(monkeypatch)
    t.update({"v": "parse_json('{}')"}, "id % 3 <> 0")
    assert copied == []
    assert rows_of(t) == {n: {} if n % 3 else v for n, v in want.items()}


def test_rows_of_a_foreign_file_are_put_together_where_they_break_a_rule(tmp_path: Path) -> None:
    """An element that holds nothing is read as null (rule 31); a copy of it holds one."""
    element = pa.struct([pa.field("value", pa.binary()), pa.field("typed_value", pa.int64())])
    group = pa.struct([pa.field("value", pa.binary()), pa.field("typed_value", pa.list_(element))])
    fields = [pa.field("metadata", pa.binary(), False), *group]
    rows = [
        {"metadata": b"\x01\x00\x00", "value": None, "typed_value": [{"value": None, "typed_value": n}] * 2}
        for n in [1, 2, None]
    ]
    given = pa.table({"id": pa.array([1, 2, 3], pa.int32()), "v": pa.array(rows, pa.struct(fields))})
    t = mica.Table.create(tmp_path / "t", "id INT, v VARIANT")
    t.append([{"id": 1, "v": [1, 1]}])
    (uri,) = t.file_uris()
    path = Path(uri.removeprefix("file://"))
    pq.write_table(given, path)
    t = replaced(tmp_path / "t", t.version, path, 3)
    assert not mica.check(tmp_path / "t").ok
    t.delete("id = 1")
    assert rows_of(t) == {2: [2, 2], 3: [None, None]}
    assert mica.check(tmp_path / "t").ok


def replaced(table: Path, version: int, file: Path, rows: int) -> mica.Table:
    """The table once the file of this version has been written by somebody else."""
    log = table / f"_delta_log/{version:020}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"] |= {"size": file.stat().st_size, "stats": json.dumps({"numRecords": rows})}
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return mica.Table.open(table)


def unlike(path: Path, how: str) -> tuple[mica.Table, dict[int, Any]]:
    """A table whose new files do not hold Variants as its old ones do, and what `v` holds."""
    given = {n: {"n": n, "s": f"x{n}"} for n in range(100)}
    column = "s STRUCT<v: VARIANT>" if how == "in a struct" else "v VARIANT"
    t = mica.Table.create(path, "id INT" if how == "added" else f"id INT, {column}")
    if how == "added":
        t.append([{"id": n} for n in given])
        t.add_columns("v VARIANT")
        return t, dict.fromkeys(given)
    if how == "scalars":
        given = {n: n if n % 2 else f"x{n}" for n in range(100)}
    rows = [{"id": n, "v": json.dumps(v)} for n, v in given.items()]
    t.append([{"id": row["id"], "s": {"v": row["v"]}} for row in rows] if how == "in a struct" else rows)
    if how == "rules":
        t.set_properties({"mica.shredding": "s: skip"})
    if how == "not shredded":
        t.set_properties({"delta.enableVariantShredding": "false"})
    return t, given


@pytest.mark.parametrize("how", ["in a struct", "added", "scalars", "rules", "not shredded"])
def test_rows_are_put_together_where_new_files_are_unlike_the_old(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    t, want = unlike(tmp_path / "t", how)
    copied = counted(monkeypatch)
    t.delete("id = 7")
    del want[7]
    found = t.scan(columns={"id": "id", "v": f"to_json({'s.v' if how == 'in a struct' else 'v'})"}).to_arrow()
    texts = dict(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True))
    assert {n: None if text is None else json.loads(text) for n, text in texts.items()} == want
    assert copied == []
    assert mica.check(tmp_path / "t").ok


@pytest.mark.parametrize("rule", ["table", "path", "generated"])
@pytest.mark.parametrize("few", [True, False])
def test_rows_that_break_a_rule_are_refused_however_few_rows_change(tmp_path: Path, rule: str, few: bool) -> None:
    """Another writer may have added them; a DELETE checks nothing."""
    schema = "id INT, v VARIANT" + (", g INT GENERATED ALWAYS AS (v:n::int)" if rule == "generated" else "")
    t = mica.Table.create(tmp_path / "t", schema)
    if rule != "generated":
        t.add_constraint("k", "id < 90" if rule == "table" else "v:n::int < 90")
    t.append([{"id": 1, "v": {"n": 1}}])
    loose = mica.Table.create(tmp_path / "loose", schema.replace(" GENERATED ALWAYS AS (v:n::int)", ""))
    odd = {"id": 95, "v": {"n": 95}, "g": 0}
    rows = [odd if n == 95 else {"id": n % 80, "v": {"n": n % 80}, "g": n % 80} for n in range(100)]
    loose.append([{name: row[name] for name in schema_names(loose)} for row in rows])
    (uri,), (other,) = t.file_uris(), loose.file_uris()
    path = Path(uri.removeprefix("file://"))
    path.write_bytes(Path(other.removeprefix("file://")).read_bytes())
    t = replaced(tmp_path / "t", t.version, path, 100)
    version, where = t.version, "id = 7" if few else "id < 70"
    with pytest.raises(UserError) as caught:
        t.update({"id": "id"}, where)
    assert caught.value.code == "CONSTRAINT_VIOLATED"
    source = [{"id": n} for n in ([7] if few else range(10, 60))]
    with pytest.raises(UserError) as caught:
        t.merge(source, "target.id = source.id").when_matched_delete().execute()
    assert caught.value.code == "CONSTRAINT_VIOLATED"
    assert mica.Table.open(tmp_path / "t").version == version
    t.delete(where)
    assert mica.Table.open(tmp_path / "t").version == version + 1


def schema_names(t: mica.Table) -> list[str]:
    return [field.name for field in t.schema.fields]


def of_four_digits(elements: dict[str, Element]) -> None:
    """Makes DECIMAL(4,2) of the typed column."""
    column = elements["v.typed_value"]
    column.set(CONVERTED, I32, 5)
    column.set(7, I32, 2)
    column.set(8, I32, 4)


@pytest.mark.parametrize("held", [pa.int64(), pa.binary(16)])
def test_decimals_beyond_their_precision_are_put_together(tmp_path: Path, held: pa.DataType) -> None:
    """A column of decimals may be wider in the file of another writer than in a copy, which would cut them."""
    numbers = [1, 2**40 + 5, -(2**33), 9999, None]

    cells = numbers
    if held != pa.int64():
        cells = [None if n is None else n.to_bytes(16, "big", signed=True) for n in numbers]
    group = pa.struct(
        [
            pa.field("metadata", pa.binary(), False),
            pa.field("value", pa.binary()),
            pa.field("typed_value", held),
        ]
    )
    rows = [{"metadata": b"\x01\x00\x00", "value": b"\0" if n is None else None, "typed_value": n} for n in cells]
    given = pa.table({"id": pa.array(range(5), pa.int32()), "v": pa.array(rows, group)})
    (tmp_path / "t").mkdir()
    write(tmp_path / "t/x.parquet", given, of_four_digits)
    t = mica.Table.convert_to_delta(tmp_path / "t")
    want = {0: 0.01, 1: 10995116277.81, 2: -85899345.92, 3: 99.99, 4: None}
    assert rows_of(t) == want
    t.delete("id = 0")
    del want[0]
    assert rows_of(t) == want
    t.update({"v": "parse_json('7')"}, "id = 4")
    assert rows_of(t) == {**want, 4: 7}
    assert t.scan("v::decimal(20,2) > 1000").count() == 1
    assert mica.check(tmp_path / "t").ok


@pytest.mark.parametrize("early", [False, True])
def test_decimals_beyond_their_precision_cross_to_the_other_layout(tmp_path: Path, early: bool) -> None:
    names = ["untyped_value", "typed_value"] if early else ["metadata", "value", "typed_value"]
    types = {"metadata": pa.field("metadata", pa.binary(), False), "typed_value": pa.field("typed_value", pa.int64())}
    group = pa.struct([types.get(name, pa.field(name, pa.binary())) for name in names])
    cells = [{"metadata": b"\x01\x00\x00", "typed_value": n} for n in (1, 2**40 + 5, 9999)]
    rows = [{name: cell.get(name) for name in names} for cell in cells]
    (tmp_path / "s").mkdir()
    given = pa.table({"id": pa.array(range(3), pa.int32()), "v": pa.array(rows, group)})
    write(tmp_path / "s/x.parquet", given, of_four_digits)
    layout: kernel.Layout = "standard" if early else "early"
    if not early:
        mica.Table.convert_to_delta(tmp_path / "s")
    source = tmp_path / ("s/x.parquet" if early else "s")
    mica.convert_files(source, tmp_path / "made", to="parquet", layout=layout, early=early or None)
    found = mica.read_parquet(tmp_path / "made", {"v": "to_json(v)"}, early=not early).to_arrow()
    assert found["v"].to_pylist() == ["0.01", "10995116277.81", "99.99"]


def test_rows_with_names_of_their_own_are_cut_by_their_own_size() -> None:
    """Views of bytes share buffers, and a slice of them has as many bytes as its rows."""
    values = pa.array([bytes([n % 256]) * 1000 for n in range(1000)], pa.binary_view())
    rows = kernel.taken(pa.table({"v": pa.StructArray.from_arrays([values], ["metadata"])}).to_batches()[0])
    assert rows.slice(0, 10).nbytes < 11_000
    assert [piece.num_rows for piece in cut(rows, 600_000)] == [500, 500]
