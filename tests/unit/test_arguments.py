"""Arguments of a Python type that they cannot have are refused by name, whichever call they are given to."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import mica
from mica.arguments import COUNT, TIME, takes
from mica.errors import UserError

ROWS = pa.table({"a": pa.array([1], pa.int32())})


@pytest.fixture
def table(tmp_path: Path) -> mica.Table:
    return mica.Table.create(tmp_path / "t", "a INT, v VARIANT")


CALLS: list[tuple[str, Callable[[mica.Table, Path], Any]]] = [
    ("snapshot", lambda t, p: mica.Table(t.path)),  # type: ignore[arg-type]
    ("path", lambda t, p: mica.Table.open(None)),  # type: ignore[arg-type]
    ("version", lambda t, p: mica.Table.open(t.path, version="1")),  # type: ignore[arg-type]
    ("version", lambda t, p: mica.Table.open(t.path, version=True)),
    ("timestamp", lambda t, p: mica.Table.open(t.path, timestamp=[1])),  # type: ignore[arg-type]
    ("storage_options", lambda t, p: mica.Table.open(t.path, storage_options={"a": 1})),  # type: ignore[dict-item]
    ("partition_by", lambda t, p: mica.Table.create(p / "n", "a INT, b INT", partition_by="a")),
    ("properties", lambda t, p: mica.Table.create(p / "n", "a INT", properties={"x": 1})),  # type: ignore[dict-item]
    ("limit", lambda t, p: t.history(limit="1")),  # type: ignore[arg-type]
    ("shredding", lambda t, p: t.append(ROWS, shredding=1)),
    ("where", lambda t, p: t.overwrite(ROWS, where=1)),  # type: ignore[arg-type]
    ("properties", lambda t, p: t.set_properties([])),  # type: ignore[arg-type]
    ("where", lambda t, p: t.scan(1)),  # type: ignore[arg-type]
    ("columns", lambda t, p: t.scan(columns="a")),
    ("columns", lambda t, p: t.scan(columns={"a": 1})),  # type: ignore[dict-item]
    ("limit", lambda t, p: t.scan(limit=-1)),
    ("ansi", lambda t, p: t.scan(ansi="no")),  # type: ignore[arg-type]
    ("timezone", lambda t, p: t.scan(timezone=1)),  # type: ignore[arg-type]
    ("spark", lambda t, p: t.scan().to_df("local")),  # type: ignore[arg-type]
    ("paths", lambda t, p: mica.ingest_json(None, p / "n")),
    ("table", lambda t, p: mica.ingest_json(p / "in", 1)),  # type: ignore[arg-type]
    ("columns", lambda t, p: mica.ingest_json(p / "in", p / "n", columns=["a"])),  # type: ignore[arg-type]
    ("sort_by", lambda t, p: mica.ingest_json(p / "in", p / "n", sort_by="v:a::int")),
    ("target_file_size", lambda t, p: mica.ingest_json(p / "in", p / "n", target_file_size=1.5)),  # type: ignore[arg-type]
    ("paths", lambda t, p: mica.read_parquet(1)),  # type: ignore[arg-type]
    ("path", lambda t, p: mica.write_parquet(ROWS, None)),  # type: ignore[arg-type]
    ("texts", lambda t, p: mica.variant.from_json(1)),
    ("a text", lambda t, p: mica.variant.from_json([1])),  # type: ignore[list-item]
    ("variants", lambda t, p: mica.variant.to_python([1])),
    ("limits", lambda t, p: mica.variant.infer(mica.variant.from_json(["1"]), 5)),  # type: ignore[arg-type]
    ("max_fields", lambda t, p: mica.variant.Limits(max_fields="x")),  # type: ignore[arg-type]
    ("min_share", lambda t, p: mica.variant.Limits(min_share=float("nan"))),
    ("min_share", lambda t, p: mica.variant.Limits(min_share=True)),
    ("interval", lambda t, p: mica.stream_json(p / "in", t.path, interval=True)),
    ("path", lambda t, p: mica.check(5)),  # type: ignore[arg-type]
    ("limit", lambda t, p: mica.check(t, limit=True)),
    ("path", lambda t, p: mica.check_erased([t.path], "v:a")),  # type: ignore[arg-type]
    ("erased", lambda t, p: mica.check_erased(t, 5)),  # type: ignore[arg-type]
    ("table", lambda t, p: mica.drift(5)),  # type: ignore[arg-type]
    ("table", lambda t, p: mica.suggest(5)),  # type: ignore[arg-type]
    ("master", lambda t, p: mica.session(5)),  # type: ignore[arg-type]
    ("timestamp", lambda t, p: mica.Table.open(t.path, timestamp=pd.NaT)),  # type: ignore[arg-type]
    ("mode", lambda t, p: mica.write_parquet(ROWS, p / "n", mode=pd.DataFrame())),  # type: ignore[arg-type]
    ("the data", lambda t, p: t.append([None])),
    ("source", lambda t, p: mica.convert_files(None, p / "n")),  # type: ignore[arg-type]
    ("target", lambda t, p: mica.convert_files(t, b"n")),  # type: ignore[arg-type]
    ("connection", lambda t, p: t.to_duckdb(-1)),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("name", "call"), CALLS, ids=[f"{i}-{name}" for i, (name, _) in enumerate(CALLS)])
def test_a_wrong_type_is_refused_by_name(
    tmp_path: Path, table: mica.Table, name: str, call: Callable[[mica.Table, Path], Any]
) -> None:
    (tmp_path / "in").write_text("{}")
    with pytest.raises(UserError) as caught:
        call(table, tmp_path)
    assert caught.value.code == "INVALID_ARGUMENT"
    assert caught.value.message.startswith(f"{name} must be ")
    assert not (tmp_path / "n").exists()


@pytest.mark.parametrize("share", [0, 0.5, np.float32(0.5), np.int64(1)])
def test_a_share_may_be_any_real_number(share: Any) -> None:
    limits = mica.variant.Limits(min_share=share)
    assert mica.variant.infer(mica.variant.from_json(['{"a": 1}']), limits).to_ddl() == "STRUCT<a: BIGINT>"


def test_none_passes_where_it_is_the_default_and_nowhere_else() -> None:
    @takes(a=COUNT, b=COUNT, t=TIME)
    def call(a: int, b: int | None = None, t: int | None = None) -> tuple[int, int | None]:
        return a, b

    assert call(1, None) == (1, None)
    assert call(1, b=2) == (1, 2)
    with pytest.raises(UserError):
        call(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"call\(\) missing 1 required"):
        call()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"call\(\) got an unexpected keyword argument 'c'"):
        call(1, c=2)  # type: ignore[call-arg]


def test_integers_of_numpy_are_integers(table: mica.Table) -> None:
    """As pandas has them in the versions of a history: the commit could not be written as JSON."""
    one = np.int64(1)
    table.append(ROWS, txn=("a", one))  # type: ignore[arg-type]
    assert table.restore(np.int64(0), txn=("b", one)).restored_version == 0  # type: ignore[arg-type]
    assert table.optimize(target_file_size=np.int64(1 << 20)).version == 2  # type: ignore[arg-type]
    made = np.int64(table.history().column("timestamp")[-1].as_py().timestamp() * 1000)
    assert mica.Table.open(table.path, timestamp=made).version == 0  # type: ignore[arg-type]


def test_a_name_that_no_file_can_have_is_refused(tmp_path: Path) -> None:
    for name, code in (("x" * 300, "INVALID_NAME"), ("a\0b", "INVALID_ARGUMENT")):
        with pytest.raises(mica.MicaError) as caught:
            mica.write_parquet(ROWS, tmp_path / name)
        assert caught.value.code == code


def test_half_a_character_is_told_as_that(table: mica.Table, tmp_path: Path) -> None:
    """They ended in Python's errors, and a statement in three stacks of py4j's."""
    half = "x\ud800"
    for ask in (
        lambda: mica.Table.create(tmp_path / half, "id INT"),
        lambda: mica.ingest_json(tmp_path / half, tmp_path / "t"),
        lambda: table.set_properties({"a": half}),
        lambda: table.set_properties({half: "a"}),
        lambda: mica.sql(f"SELECT '{half}'"),
    ):
        with pytest.raises(UserError, match=r"^\[INVALID_ARGUMENT\] .* must be .*, got ") as caught:
            ask()
        assert caught.value.hint == r"'\ud800' is half of a character, which UTF-8 cannot write."
    with pytest.raises(UserError, match="got a name with half of a character") as caught:
        mica.Table.open(tmp_path, storage_options={half: "secret"})
    assert "secret" not in str(caught.value)
    with pytest.raises(UserError, match=r"at offset 2: '\\ud800' is half of a character") as caught:
        mica.Table.create(tmp_path / "other", f"`{half}` INT")
    assert caught.value.code == "INVALID_DDL"


def test_none_is_the_default_of_an_ingest(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("{}")
    assert mica.ingest_json(tmp_path / "in", tmp_path / "n", mode=None, format=None).rows == 1  # type: ignore[arg-type]


def test_values_of_rows_are_told_to_be_sql(table: mica.Table) -> None:
    said = """set must be a dict of columns to SQL texts, such as "1" or "'a'", got {'a': 1}"""
    for call in (table.update, table.merge(ROWS, "target.a = source.a").when_matched_update):
        with pytest.raises(UserError) as caught:
            call({"a": 1})  # type: ignore[dict-item]
        assert (caught.value.code, caught.value.message) == ("INVALID_ARGUMENT", said)


def test_the_note_about_shredding_points_at_the_caller(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "v VARIANT", properties={"delta.enableVariantShredding": "false"})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table.append(pa.table({"v": mica.variant.from_json(["1"])}))
    assert [w.filename for w in caught] == [__file__]
