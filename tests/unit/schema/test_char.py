"""CHAR(n) and VARCHAR(n): their declared types, and values read with their blanks."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as pads
import pytest

import mica
from mica.errors import UserError
from mica.schema import char
from mica.schema.special import CHAR_VARCHAR
from mica.schema.types import INTEGER, STRING, ArrayType, StructField, StructType

_NESTED = "struct<c:char(3),n:decimal(4,2),a:array<varchar(2)>,m:map<char(2),struct<x:char(1)>>>"


def test_a_declared_type_is_taken_apart_by_names() -> None:
    assert char.declared(StructField("c", STRING, True, {CHAR_VARCHAR: "char(3)"})) == "char(3)"
    for text in ("string", "struct<c:char(3)", 7):
        assert char.declared(StructField("c", STRING, True, {CHAR_VARCHAR: text})) == ""
    odd = "struct<`a:b`:char(1),`a``,>b`:varchar(2),a b:char(3)>"  # the last as Spark writes it
    assert [char.inside(odd, n) for n in ("A:b", "a`,>b", "a b")] == ["char(1)", "varchar(2)", "char(3)"]
    assert char.inside(_NESTED, "C") == "char(3)"
    assert char.inside(_NESTED, "a") == "array<varchar(2)>"
    assert char.inside(_NESTED, "n") == char.inside(_NESTED, "other") == char.inside("", "c") == ""
    assert [char.char_length(t) for t in ("char(7)", "varchar(7)", _NESTED)] == [7, None, None]
    assert [char.is_padded(t) for t in ("char(7)", "varchar(7)", _NESTED)] == [True, False, True]


def test_a_field_that_was_renamed_without_its_declared_type_is_known_by_its_place() -> None:
    fields = tuple(StructField(name, STRING) for name in ("z", "first-name", "y", "n"))
    text = "struct<z:string collate de,x:char(3) collate de,y:varchar(2)>"
    column = StructField("s", StructType(fields), True, {CHAR_VARCHAR: text})
    assert char.declared(column) == "struct<z:string,`first-name`:char(3),y:varchar(2),n:string>"
    moved = StructField("s", StructType((fields[1], *fields[::2])), True, {CHAR_VARCHAR: text})
    assert char.declared(moved) == "struct<`first-name`:string,z:string,y:varchar(2)>", "z has moved to another place"
    (restated,) = char.restated(StructType((StructField("s", StructType(fields[:1]), True, {CHAR_VARCHAR: text}),)))
    assert restated.metadata == {}


def test_values_are_padded_at_any_depth() -> None:
    kind = pa.struct(
        [
            ("c", pa.string()), ("n", pa.decimal128(4, 2)), ("a", pa.list_(pa.string())),
            ("m", pa.map_(pa.string(), pa.struct([("x", pa.string())]))),
        ]
    )  # fmt: skip
    rows = [{"c": "x"}, None, {"c": "äöüß", "a": ["long", None], "m": [("k", {"x": ""}), ("l", None)]}, {"c": "é"}]
    values = pa.array(rows, kind)
    found = char.padded(values, _NESTED)
    assert found.type == kind
    assert found.to_pylist() == [
        {"c": "x  ", "n": None, "a": None, "m": None}, None,
        {"c": "äöüß", "n": None, "a": ["long", None], "m": [("k ", {"x": " "}), ("l ", None)]},
        {"c": "é  ", "n": None, "a": None, "m": None},
    ]  # fmt: skip
    assert char.padded(values.slice(2, 1), _NESTED).to_pylist() == found.to_pylist()[2:3]
    assert char.too_long(values, _NESTED).to_pylist() == [False, False, True, False]
    assert char.too_long(values.slice(1), _NESTED).to_pylist() == [False, True, False]


_STRUCT = StructType((StructField("c", STRING), StructField("v", STRING)))
_SCHEMA = StructType(
    (
        StructField("id", INTEGER),
        StructField("c", STRING, True, {CHAR_VARCHAR: "char(5)"}),
        StructField("d", STRING, True, {CHAR_VARCHAR: "char(3)"}),
        StructField("s", _STRUCT, True, {CHAR_VARCHAR: "struct<c:char(4),v:varchar(2)>"}),
        StructField("a", ArrayType(STRING), True, {CHAR_VARCHAR: "array<char(2)>"}),
    )
)


def ids(table: mica.Table, where: str) -> list[int]:
    """The rows for which a predicate is true."""
    return sorted(table.scan(where).to_arrow().column("id").to_pylist())


def test_rows_of_char_columns_are_found_whatever_their_files_hold(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", _SCHEMA)
    for number, text in enumerate(("x", "x    ", "y ", None)):
        table.append([{"id": number, "c": text, "d": "x", "s": {"c": "x", "v": "v"}, "a": ["x", None]}])
    rows = table.scan().to_arrow()
    assert rows.column("c").to_pylist() == ["x    ", "x    ", "y    ", None]
    assert rows.column("s").to_pylist()[0] == {"c": "x   ", "v": "v"}
    assert rows.column("a").to_pylist()[0] == ["x ", None]
    for where in ("c = 'x'", "'x  ' = c", "c = 'x         '", "c IN ('x', 'q')", "c <=> 'x'", "c = d", "c LIKE 'x    '",
                  "concat(c, '') = 'x    '", "c < 'y'"):  # fmt: skip
        assert ids(table, where) == [0, 1], where
    # As in Spark: nothing is padded beside a NULL, in BETWEEN, beside an expression, and inside of a struct.
    for where in ("c IN ('x', NULL)", "c BETWEEN 'x' AND 'x'", "c = concat(d, '')", "s.c = 'x'",
                  "nullif(c, 'x') IS NULL AND id < 3"):  # fmt: skip
        assert ids(table, where) == [], where
    assert ids(table, "s.c = 'x   '") == [0, 1, 2, 3]
    assert ids(table, "c > 'x'") == ids(table, "c = 'y'") == [2]
    assert table.scan("c = 'y'").plan.kept.tolist() == [2]


def test_bounds_and_partitions_skip_no_row_of_a_char_column(tmp_path: Path) -> None:
    random_ = random.Random(5)
    texts = ["".join(random_.choices("ab \t\x01é", k=random_.randrange(1, 4))) for _ in range(60)]
    for partition_by in ([], ["c"]):
        table = mica.Table.create(tmp_path / f"t{len(partition_by)}", _SCHEMA, partition_by=partition_by)
        for at in range(0, len(texts), 3):
            table.append([{"id": i, "c": texts[i], "d": "x"} for i in range(at, at + 3)])
        for wanted in texts[:20]:
            for op, holds in (("=", str.__eq__), ("<", str.__lt__), (">=", str.__ge__), ("<>", str.__ne__)):
                found = ids(table, f"c {op} '{wanted}'")
                assert found == [i for i, t in enumerate(texts) if holds(t.ljust(5), wanted.ljust(5))], (op, wanted)


def test_rows_are_changed_by_their_padded_values(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", _SCHEMA)
    table.append([{"id": 1, "c": "x", "d": "x"}, {"id": 2, "c": "y", "d": "y"}, {"id": 3, "c": "z", "d": "z"}])
    table.update({"d": "'u'"}, "c = 'x'")
    table.delete("c IN ('y')")
    source = [{"id": 3, "c": "z    ", "d": "m"}, {"id": 4, "c": "z", "d": "n"}]
    (
        table.merge(source, "t.c = s.c AND t.c = 'z'", target_alias="t", source_alias="s")
        .when_matched_update({"d": "s.d"}).when_not_matched_insert({"id": "s.id", "c": "s.c"}).execute()
    )  # fmt: skip
    rows = table.scan(columns=["id", "c", "d"]).to_arrow().sort_by("id").to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        (1, "x    ", "u  "), (3, "z    ", "m  "), (4, "z    ", None)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("row", "column"),
    [({"c": "123456"}, "c"), ({"c": "x     "}, "c"), ({"s": {"v": "123"}}, "s"), ({"a": ["12", "123"]}, "a")],
)
def test_texts_that_are_too_long_are_refused_at_any_depth(tmp_path: Path, row: dict[str, object], column: str) -> None:
    table = mica.Table.create(tmp_path / "t", _SCHEMA)
    table.append([{"id": 1, "c": "12345", "s": {"c": "1234", "v": "12"}, "a": ["12", None]}])
    with pytest.raises(UserError, match=f"of '{column}'") as caught:
        table.append([{"id": 2, **row}])
    assert caught.value.code == "CONSTRAINT_VIOLATED"


def test_other_libraries_filter_padded_values(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "id INT, c CHAR(3)")
    table.append([{"id": 1, "c": "x"}])
    scanned = mica.dataset(table).to_table(filter=pads.field("c") > "x")
    assert scanned.to_pylist() == [{"id": 1, "c": "x  "}]


def test_ddl_keeps_lengths_at_any_depth(tmp_path: Path) -> None:
    ddl = (
        "a ARRAY<CHAR(3)>, s STRUCT<x: CHARACTER(2) NOT NULL, `y`: ARRAY<VARCHAR(2)>, d: DECIMAL(4,2), n: BIGINT, "
        "z: STRING COLLATE UNICODE>, m MAP<CHAR(2), STRING>, p STRUCT<x: INT>"
    )
    table = mica.Table.create(tmp_path / "t", ddl)
    texts = [f.metadata.get(CHAR_VARCHAR) for f in mica.Table.open(tmp_path / "t").schema.fields]
    nested = "struct<x:char(2),y:array<varchar(2)>,d:decimal(4,2),n:bigint,z:string collate UNICODE>"
    assert texts == ["array<char(3)>", nested, "map<char(2),string>", None]
    assert table.schema.field("a").type == ArrayType(STRING)
    row = {"a": ["x"], "s": {"x": "y", "y": ["z"]}, "m": [("k", "v")], "p": None}
    table.append([row])
    (found,) = table.to_arrow().to_pylist()
    assert (found["a"], found["s"]["x"], found["s"]["y"], found["m"]) == (["x  "], "y ", ["z"], [("k ", "v")])
    with pytest.raises(UserError, match="violates the type array<char"):
        table.append([{**row, "a": ["long"]}])
    for wrong in ("a ARRAY<CHAR(0)>", "a STRUCT<x: CHAR>", "a VARCHAR(-1)"):
        with pytest.raises(UserError, match="INVALID_DDL"):
            mica.Table.create(tmp_path / "wrong", wrong)


def test_names_that_need_backticks_and_collations_keep_lengths(tmp_path: Path) -> None:
    ddl = "c CHAR(2) COLLATE de, v VARCHAR(3), s STRUCT<`a:b`: CHAR(2) COLLATE UTF8_LCASE, `c``d`: VARCHAR(1)>"
    table = mica.Table.create(tmp_path / "t", ddl, properties={"delta.columnMapping.mode": "name"})
    table.set_collation("v", "UTF8_LCASE").rename_column("s.`a:b`", "first-name").rename_column("c", "k")
    texts = [f.metadata[CHAR_VARCHAR] for f in table.schema.fields]
    nested = "struct<`first-name`:char(2) collate UTF8_LCASE,`c``d`:varchar(1)>"
    assert texts == ["char(2) collate de", "varchar(3) collate UTF8_LCASE", nested]
    assert table.schema.field("k").metadata["__COLLATIONS"] == {"k": "icu.de"}
    table.append([{"k": "x", "v": "abc", "s": {"first-name": "y", "c`d": "z"}}])
    assert table.to_arrow().to_pylist() == [{"k": "x ", "v": "abc", "s": {"first-name": "y ", "c`d": "z"}}]
    for row in ({"k": "xyz"}, {"v": "abcd"}, {"s": {"first-name": "xyz"}}, {"s": {"c`d": "xy"}}):
        with pytest.raises(UserError, match="CONSTRAINT_VIOLATED"):
            table.append([row])
    table.alter_column("k", type="CHAR(2)").alter_column("v", type="VARCHAR(4)")
    with pytest.raises(UserError, match=r"(?s)a collation is not allowed.*Table\.set_collation"):
        table.alter_column("v", type="VARCHAR(5) COLLATE de")
    assert table.schema.field("v").metadata[CHAR_VARCHAR] == "varchar(4) collate UTF8_LCASE"
    table.set_collation("v", None).alter_column("k", type="STRING")
    assert [f.metadata.get(CHAR_VARCHAR) for f in table.schema.fields] == [None, "varchar(4)", nested]


def test_lengths_of_a_column_are_altered_as_in_spark(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "c CHAR(2), v VARCHAR(3), s STRING, n STRUCT<x: CHAR(2)>")
    table.append([{"c": "x", "v": "abc", "s": "", "n": {"x": "y"}}])
    wrong = [
        ("c", "CHAR(9)"), ("c", "VARCHAR(1)"), ("v", "CHAR(3)"), ("v", "VARCHAR(2)"), ("s", "VARCHAR(9)"),
        ("n.x", "STRING"), ("n.x", "VARCHAR(3)"), ("v", "BIGINT"),
    ]  # fmt: skip
    for column, type_ in wrong:
        with pytest.raises(UserError, match="INCOMPATIBLE_TYPE"):
            table.alter_column(column, type=type_)
    assert table.version == 1
    table.alter_column("c", type="CHAR(2)").alter_column("n.x", type="char(2)")
    table.alter_column("c", type="VARCHAR(2)").alter_column("v", type="VARCHAR(4)")
    assert [f.metadata.get(CHAR_VARCHAR) for f in table.schema.fields][:2] == ["varchar(2)", "varchar(4)"]
    assert table.to_arrow().column("c").to_pylist() == ["x"]
    table.alter_column("v", type="STRING")
    assert table.schema.field("v").metadata == {}
    table.append([{"c": "xy", "v": "long enough", "s": "", "n": None}])


def test_a_constraint_sees_new_rows_as_they_will_be_read(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "id INT, c CHAR(3)").add_constraint("k", "c = 'z' AND length(c) = 3")
    table.append([{"id": 1, "c": "z"}, {"id": 2, "c": "z  "}])
    with pytest.raises(UserError, match="CONSTRAINT_VIOLATED"):
        table.append([{"id": 1, "c": "y"}])
    table.update({"id": "id + 1"})
    assert table.count() == 2
