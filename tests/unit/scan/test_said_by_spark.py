"""Spark's schema in a footer: Variants without the annotation, and collations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mica
from mica.scan.said_by_spark import SCHEMA

WHOLE = pa.struct([pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False)])
LEAF = pa.struct([("value", pa.binary()), ("typed_value", pa.int64())])
SHREDDED = pa.struct(
    [
        pa.field("metadata", pa.binary(), False),
        ("value", pa.binary()),
        ("typed_value", pa.struct([pa.field("a", LEAF, False)])),
    ]
)
LIST = {"type": "array", "elementType": "variant", "containsNull": True}
NAMES = b"\x11\x01\x00\x01a"


def said(**types: Any) -> str:
    fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in types.items()]
    return json.dumps({"type": "struct", "fields": fields})


def file(path: Path, table: pa.Table, text: str) -> Path:
    pq.write_table(table.replace_schema_metadata({SCHEMA: text}), path)
    return path


def variants(path: Path, text: str) -> Path:
    """`v` is shredded, `w` is not, and `l` is a list of such: {"a": n}, n, [n]."""
    numbers = range(1, 4)
    wholes = [{"metadata": NAMES, "value": bytes([12, n])} for n in numbers]
    typed = [{"metadata": NAMES, "typed_value": {"a": {"typed_value": n}}} for n in numbers]
    columns = {"v": pa.array(typed, SHREDDED), "w": pa.array(wholes, WHOLE)}
    return file(path, pa.table({**columns, "l": pa.array([[one] for one in wholes], pa.list_(WHOLE))}), text)


COLUMNS = {"v": "to_json(v)", "w": "to_json(w)", "l": "to_json(l[0])"}
TEXT = said(v="variant", w="variant", l=LIST)
EXPECTED = [{"v": f'{{"a":{n}}}', "w": str(n), "l": str(n)} for n in range(1, 4)]


def test_variants_without_the_annotation(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    path = variants(tmp_path / "src" / "v.parquet", TEXT)
    assert mica.read_parquet(path, COLUMNS).to_arrow().to_pylist() == EXPECTED
    assert mica.read_parquet(path, where="v:a::int >= 3 AND w::int > 2").count() == 1
    for to in ("delta", "parquet"):
        mica.convert_files(path, tmp_path / to, to=to)
    mica.Table.convert_to_delta(tmp_path / "src")
    for place in ("src", "delta", "parquet"):
        assert mica.read_parquet(tmp_path / place, COLUMNS).to_arrow().to_pylist() == EXPECTED, place
    assert mica.Table.open(tmp_path / "src").scan("v:a::int = 9").plan.kept.tolist() == []


@pytest.mark.parametrize("text", ["", "[]", said(w="binary", x="variant"), said(v={"type": "udt"}), said(v="nothing")])
def test_a_text_that_says_nothing_of_the_columns(tmp_path: Path, text: str) -> None:
    path = variants(tmp_path / "v.parquet", text)
    assert mica.read_parquet(path).schema.field("w").type == mica.read_parquet(path).schema.field("l").type.element


def test_a_column_that_is_no_variant_any_more(tmp_path: Path) -> None:
    path = file(tmp_path / "v.parquet", pa.table({"v": [{"a": 1}], "w": [2], "l": [[3]]}), TEXT)
    assert mica.read_parquet(path).to_arrow().to_pylist() == [{"v": {"a": 1}, "w": 2, "l": [3]}]


def test_collations(tmp_path: Path) -> None:
    text = json.loads(said(s="string", a={"type": "array", "elementType": "string", "containsNull": True}))
    for field, key in zip(text["fields"], ("s", "a.element"), strict=True):
        field["metadata"] = {"__COLLATIONS": {key: "spark.UTF8_LCASE"}}
    rows = pa.table({"s": ["a", "A", "b"], "a": [["x"], ["X"], ["y"]]})
    path = file(tmp_path / "s.parquet", rows, json.dumps(text))
    assert mica.read_parquet(path, where="s = 'A'").to_arrow()["s"].to_pylist() == ["a", "A"]
    assert mica.read_parquet(path, where="a[0] = 'X'").count() == 2
    assert mica.read_parquet(path).to_arrow().to_pylist() == rows.to_pylist()
    text["fields"][1]["name"] = "b"
    renamed = file(tmp_path / "s.parquet", rows.rename_columns(["s", "b"]), json.dumps(text))
    assert mica.read_parquet(renamed, where="b[0] = 'X'").count() == 1
    assert mica.read_parquet(renamed, where="s = 'A'").count() == 2
