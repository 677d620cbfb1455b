"""Existing files get another shredding schema; their values stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

import mica
from mica.errors import MicaError
from mica.variant import kernel
from mica.variant.shredding import ShreddingSchema


def trees(table: mica.Table, column: tuple[str, ...] = ("v",)) -> set[str]:
    """The shredding schemas of the files, as DDL."""
    found = set()
    for file in table.files().to_pylist():
        reader = kernel.open_file(*table.snapshot.locate(file["path"]), file["size"], variants=[column])
        tree = reader.tree(column)
        assert tree is not None
        found.add(ShreddingSchema(tree[0]).to_ddl())
    return found


def rows(table: mica.Table) -> list[str]:
    return sorted(map(str, table.scan(columns={"id": "id", "v": "to_json(v)"}).to_arrow().to_pylist()))


def drifting(path: Path, **options: Any) -> mica.Table:
    """Files of different times: a path that was a number became a string, and a new one appeared."""
    table = mica.Table.create(path, "id INT, p STRING, v VARIANT", **options)
    for file in range(4):
        table.append([
            {"id": i, "p": "ab"[file % 2], "v": {"a": i if file == 0 else f"x{i}", **({"new": i} if file else {})}}
            for i in range(file * 30, file * 30 + 30)
        ])  # fmt: skip
    return table


def test_todays_data_decides(tmp_path: Path) -> None:
    table = drifting(tmp_path)
    before = rows(table)
    assert len(trees(table)) == 2
    done = table.reshred()
    assert len(trees(table)) == 1
    assert (rows(table), table.version) == (before, 5)
    # Three files in four have what most rows have.
    assert done.metrics["numRemovedFiles"] == done.metrics["numAddedFiles"] == 1
    again = table.reshred()
    assert (again.version, again.files, again.metrics) == (5, 0, {})
    assert mica.check(table).ok
    lines = (tmp_path / "_delta_log" / f"{5:020d}.json").read_bytes().splitlines()
    actions = [action for line in lines for kind, action in orjson.loads(line).items() if kind in ("add", "remove")]
    assert ({action["dataChange"] for action in actions}, len(actions)) == ({False}, 2)


def test_a_given_schema_and_none(tmp_path: Path) -> None:
    table = drifting(tmp_path)
    before = rows(table)
    table.reshred("STRUCT<a: STRING>")
    assert trees(table) == {"STRUCT<a: STRING>"}
    assert table.scan(where="v:a::string = 'x70'").count() == 1
    assert len(table.scan(where="v:a::string = 'x70'").plan.kept) < 4
    done = table.reshred({"v": "STRUCT<a: STRING>"})
    assert done.files == 0
    for unshredded in ({"V": None}, "VARIANT"):
        table.reshred("STRUCT<new: BIGINT>")
        table.reshred(unshredded)
        assert trees(table) == {"VARIANT"}
    assert rows(table) == before
    assert mica.check(table).ok


def test_only_chosen_partitions_and_files_that_differ_are_rewritten(tmp_path: Path) -> None:
    table = drifting(tmp_path, partition_by=["p"], properties={"delta.enableDeletionVectors": "true"})
    table.delete("id = 5")
    before = rows(table)
    names = set(table.files().column("path").to_pylist())
    done = table.reshred("STRUCT<a: STRING, new: BIGINT>", "p = 'a'")
    left = names & set(table.files().column("path").to_pylist())
    assert {name[:3] for name in names - left} == {"p=a"}
    assert done.metrics["numDeletionVectorsRemoved"] == 1
    assert (rows(table), len(before)) == (before, 119)


def test_columns_that_are_left_out_stay(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT, v VARIANT, s STRUCT<w: VARIANT>")
    table.append([{"id": i, "v": {"a": i}, "s": {"w": {"b": i}}} for i in range(9)])
    table.reshred({"s.w": None})
    assert (trees(table, ("s", "w")), trees(table)) == ({"VARIANT"}, {"STRUCT<a: BIGINT>"} & trees(table))
    assert trees(table) != {"VARIANT"}
    assert table.scan(columns={"n": "s.w:b::int"}).to_arrow().column("n").to_pylist() == list(range(9))


def test_a_table_that_must_not_be_shredded_becomes_unshredded(tmp_path: Path) -> None:
    table = drifting(tmp_path)
    before = rows(table)
    table.set_properties({"delta.enableVariantShredding": "false"})
    with pytest.raises(MicaError) as raised:
        table.reshred("STRUCT<a: STRING>")
    assert raised.value.code == "FEATURE_NEEDED"
    table.reshred()
    assert (trees(table), rows(table)) == ({"VARIANT"}, before)
    assert table.reshred().files == 0


def test_what_cannot_be(tmp_path: Path) -> None:
    table = drifting(tmp_path)
    for schema, code in (("MAP<STRING, INT>", "INVALID_SHREDDING_SCHEMA"), ({"w": None}, "UNKNOWN_COLUMN")):
        with pytest.raises(MicaError) as raised:
            table.reshred(schema)
        assert (raised.value.code, table.version) == (code, 4)
    plain = mica.Table.create(tmp_path / "plain", "id INT")
    with pytest.raises(MicaError) as raised:
        plain.reshred()
    assert raised.value.code == "UNKNOWN_COLUMN"
    empty = mica.Table.create(tmp_path / "empty", "v VARIANT")
    assert empty.reshred().version == 0


def test_every_writer_obeys_the_rules_of_the_table(tmp_path: Path) -> None:
    rules = "a.*: skip, a.keep: infer, price: decimal(9,2), raw: later, *: max 4"
    documents = [{"a": {"keep": i, "x": i}, "price": i, "raw": {"r": i}, "s": "t"} for i in range(60)]
    lines = tmp_path / "in.ndjson"
    lines.write_bytes(b"\n".join(orjson.dumps(one) for one in documents))
    report = mica.ingest_json(lines, tmp_path / "t", properties={"mica.shredding": rules})
    assert [(one["why"], one["paths"]) for one in report.not_shredded] == [
        ("rule a.*: skip", 1),
        ("rule raw: later", 1),
    ]
    assert "rule a.*: skip): 1 path" in str(report)
    table = mica.Table.open(tmp_path / "t")
    now = "STRUCT<a: STRUCT<keep: BIGINT>, price: DECIMAL(9,2), s: STRING>"
    assert trees(table) == {now}
    table.append(table.to_arrow())
    table.merge(table.to_arrow(), "false").when_not_matched_insert_all().execute()
    table.update({"v": "variant_set(v, '$.s', 'u')"}, "v:price::int < 5")
    assert trees(table) == {now}
    again = now.replace("s:", "raw: STRUCT<r: BIGINT>, s:")
    table.optimize()
    assert trees(table) == {again}
    assert table.optimize().version == table.version
    table.delete("v:price::int = 7")
    assert trees(table) == {again}
    table.set_properties({"mica.shredding": "a: skip, ghost: date"})
    table.update({"v": "variant_set(v, '$.s', 'w')"}, "v:price::int = 8")
    assert trees(table) == {"STRUCT<ghost: DATE, price: DECIMAL(9,2), raw: STRUCT<r: BIGINT>, s: STRING>"}
    table.reshred("*: skip, s: infer")
    assert trees(table) == {"STRUCT<s: STRING>"}
    assert mica.check(table).ok
    with pytest.raises(MicaError, match="Is skip meant"):
        table.set_properties({"mica.shredding": "a: skp"})
