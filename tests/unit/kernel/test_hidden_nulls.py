"""Required fields of structs that are null."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mica

_REQUIRED = pa.struct([pa.field("x", pa.bool_(), nullable=False)])
_DEEP = pa.struct([pa.field("s", _REQUIRED, nullable=False), pa.field("t", pa.string(), nullable=False)])
_ROWS = [{"x": True}, None]
_DEEP_ROWS = [{"s": {"x": True}, "t": "é"}, None]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (_REQUIRED, _ROWS),
        (pa.list_(_REQUIRED), [_ROWS, None, []]),
        (pa.list_(_DEEP), [_DEEP_ROWS, _DEEP_ROWS]),
        (pa.list_(pa.list_(_DEEP)), [[_DEEP_ROWS, None], [[None]]]),
        (pa.map_(pa.string(), _DEEP), [[("a", _DEEP_ROWS[0]), ("b", None)], None]),
    ],
)
def test_they_have_no_nulls_of_their_own(tmp_path: Path, kind: pa.DataType, values: list[object]) -> None:
    file = tmp_path / "f.parquet"
    pq.write_table(pa.table({"c": pa.array(values, kind)}), file)
    found = mica.read_parquet(file).to_arrow()
    assert found["c"].to_pylist() == pa.array(values, kind).to_pylist()
    assert found.cast(found.schema) == found
    mica.repair(file, tmp_path / "g.parquet")
    assert pq.read_table(tmp_path / "g.parquet")["c"].to_pylist() == found["c"].to_pylist()
