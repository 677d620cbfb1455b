"""Arrays made without `pyarrow.array` are those that it makes; a plain read of a new process imports no pandas."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mica
from mica.arrays import FALSE, TRUE, arrow_array, from_numpy, no_rows, scalar, to_numpy


@pytest.mark.parametrize(
    "values",
    [
        np.arange(20, dtype=np.int64), np.arange(5, dtype=np.int32)[1:4], np.arange(20, dtype=np.uint8)[::2],
        np.array([0.5, np.nan, -0.0]), np.array([True, False] * 9), np.zeros(0, np.int64), np.zeros(0, bool),
    ],
)  # fmt: skip
def test_numbers_and_booleans_go_there_and_back(values: np.ndarray) -> None:
    array = from_numpy(values)
    array.validate(full=True)
    assert array.equals(pa.array(values)) or np.isnan(values.astype(float)).any()
    np.testing.assert_array_equal(to_numpy(array), values)
    np.testing.assert_array_equal(to_numpy(array[1:]), values[1:])
    null = np.arange(len(values)) % 3 == 1
    assert str(from_numpy(values, null)) == str(pa.array(values, mask=null))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, pa.string()), (None, pa.int32()), (5, pa.int8()), (-(2**63), pa.int64()), (True, pa.bool_()),
        (1.5, pa.float64()), ("", pa.string()), ("a\x00é😀", pa.string()), (b"x", pa.binary()), (7, pa.float64()),
        (Decimal("1.50"), pa.decimal128(5, 2)), (1.5, pa.float32()), (2**64 - 1, pa.uint64()), (3, pa.date32()),
    ],
)  # fmt: skip
def test_a_scalar_is_that_of_pyarrow(value: Any, kind: pa.DataType) -> None:
    assert scalar(value, kind).equals(pa.scalar(value, kind))
    assert arrow_array([value], kind).equals(pa.array([value], kind))
    assert arrow_array([value, None], kind).equals(pa.array([value, None], kind))


@pytest.mark.parametrize(("value", "kind"), [(500, pa.int8()), ("x", pa.int64())])
def test_what_pyarrow_refuses_is_refused(value: Any, kind: pa.DataType) -> None:
    with pytest.raises((pa.ArrowInvalid, pa.ArrowTypeError)):
        scalar(value, kind)


def test_constants() -> None:
    assert TRUE.as_py() is True
    assert FALSE.as_py() is False
    schema = pa.schema([("a", pa.int8())])
    assert no_rows(schema).equals(schema.empty_table())


_READ = """
import sys
import mica

heavy = ["pandas", "pyarrow.parquet", "pyarrow.compute", "pyarrow.dataset", "pyspark", "obstore", "mica.write.merge"]
heavy += ["mica.maintain", "mica.tasks.write", "mica.checking", "mica.expressions.functions"]
heavy += ["logging", "urllib", "hashlib", "difflib", "numpy.typing"]
table = mica.Table.open(sys.argv[1])
late = ["expressions.binder", "expressions.parse", "expressions.casts", "skipping.plan", "skipping.judge"]
late += ["skipping.collated", "log.checkpoint", "log.deletion_vectors", "log.feed", "log.time_travel", "errors.codes"]
assert len(table.scan().to_arrow().to_pylist()) == 5
print([name for name in late if "mica." + name in sys.modules])
assert table.scan("v:n::bigint = 3").to_arrow().num_rows == 1
print([name for name in sys.modules if name.startswith(tuple(heavy))])
"""


def test_a_plain_read_of_a_new_process_imports_what_it_needs(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    lines = tmp_path / "events.ndjson"
    lines.write_text("".join(json.dumps({"n": n, "kind": f"k{n}"}) + "\n" for n in range(5)))
    mica.ingest_json(lines, tmp_path / "t")
    done = subprocess.run(
        [sys.executable, "-c", _READ, str(tmp_path / "t")], capture_output=True, text=True, check=False
    )
    assert done.stdout.split("\n") == ["[]", "[]", ""], done.stdout + done.stderr


_CHANGES = """
import sys
import mica

mica.ingest_json(sys.argv[1], sys.argv[2])
table = mica.Table.open(sys.argv[2])
table.append([{"v": {"n": 7, "kind": "k7"}}])
table.append(table.to_arrow())
table.update({"v": "variant_set(v, '$.n', 8)"}, where="v:n::bigint = 2")
table.delete("v:n::bigint = 1")
merge = table.merge([{"n": 3, "v": {"n": 3, "new": True}}], "target.v:n::bigint = source.n")
merge.when_matched_update({"v": "source.v"}).when_not_matched_insert({"v": "source.v"}).execute()
try:
    table.delete("1 / (v:n::bigint - 3) > 0")
except mica.MicaError as e:
    print(e.code)
print(table.history().num_rows, mica.check(sys.argv[2]).ok, "8" in str(table.scan("v:n::bigint = 8").explain()))
table.optimize()
table.restore(1)
table.vacuum()
mica.drift(sys.argv[2])
mica.suggest(sys.argv[2])
print([name for name in ("pandas", "pyarrow.parquet", "pyarrow.dataset") if name in sys.modules])
"""


def test_changes_of_a_new_process_import_no_pandas(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    lines = tmp_path / "events.ndjson"
    lines.write_text("".join(json.dumps({"n": n, "kind": f"k{n}"}) + "\n" for n in range(5)))
    command = [sys.executable, "-c", _CHANGES, str(lines), str(tmp_path / "t")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.split("\n") == ["DIVIDE_BY_ZERO", "6 True True", "[]", ""], done.stdout + done.stderr


_WHOLE = st.integers(-(2**63) - 1, 2**63) | st.integers(-200, 200)
_SIMPLE = {
    pa.null(): st.none(), pa.bool_(): st.booleans(), pa.int8(): _WHOLE, pa.int16(): _WHOLE, pa.int32(): _WHOLE,
    pa.int64(): _WHOLE, pa.uint8(): st.integers(0, 255), pa.float64(): st.floats(), pa.float32(): st.floats(width=32),
    pa.string(): st.text(alphabet=st.characters()), pa.large_string(): st.text(), pa.binary(): st.binary(),
    pa.large_binary(): st.binary(), pa.date32(): st.dates() | st.integers(-9, 9), pa.duration("ms"): st.integers(-9, 9),
    pa.timestamp("us", "UTC"): st.integers(0, 2**40) | st.datetimes(), pa.decimal128(9, 2): st.integers(0, 9),
    pa.time64("us"): st.integers(0, 99),
}  # fmt: skip


def _typed(depth: int) -> st.SearchStrategy[tuple[pa.DataType, st.SearchStrategy[Any]]]:
    simple = st.sampled_from([(kind, st.none() | values) for kind, values in _SIMPLE.items()])
    if not depth:
        return simple
    inner = _typed(depth - 1)
    lists = inner.map(
        lambda of: (pa.list_(of[0]), st.none() | st.lists(of[1], max_size=3) | st.lists(of[1]).map(tuple))
    )
    structs = st.lists(inner, max_size=3).map(
        lambda fields: (
            pa.struct([(f"f{at}", kind) for at, (kind, _) in enumerate(fields)]),
            st.none() | st.fixed_dictionaries({}, optional={f"f{at}": values for at, (_, values) in enumerate(fields)}),
        )
    )
    maps = inner.map(
        lambda of: (
            pa.map_(pa.string(), of[0]),
            st.none()
            | st.dictionaries(st.text(), of[1], max_size=3)
            | st.lists(st.tuples(st.none() | st.text(), of[1]), max_size=2),
        )
    )
    return simple | lists | structs | maps


@given(st.data())
def test_an_array_is_that_of_pyarrow(data: st.DataObject) -> None:
    kind, values = data.draw(_typed(2))
    rows = data.draw(st.lists(values, max_size=9) | st.lists(values, max_size=3).map(tuple))
    for asked in (kind,) if kind.num_fields else (kind, None):  # pyarrow infers broken strings of tuples
        found, wanted = (_tried(make, rows, asked) for make in (_without_pandas, pa.array))
        assert _shown(found) == _shown(wanted)


@pytest.mark.parametrize(
    ("values", "kinds"),
    [
        (np.arange(5), (pa.int8(), pa.int64())), (np.arange(5.0), (pa.float64(), pa.float32())),
        (np.arange(3) > 1, (pa.bool_(),)), (np.array(["a", "b"]), (pa.string(),)), (np.zeros(0), (pa.float64(),)),
        (np.arange(3, dtype=np.int8), (pa.int64(),)), (np.arange(3, dtype=">i8"), ()), (np.array([np.nan, 1]), ()),
    ],
)  # fmt: skip
def test_an_array_of_numpy_is_that_of_pyarrow(values: np.ndarray, kinds: tuple[pa.DataType, ...]) -> None:
    for kind, mask in product((None, *kinds), (None, np.arange(len(values)) % 2 == 1, np.ones(9, bool))):
        found, wanted = (_tried(make, values, kind, mask) for make in (_without_pandas, pa.array))
        assert _shown(found) == _shown(wanted)


def _without_pandas(values: Any, kind: pa.DataType | None, mask: Any = None) -> pa.Array:
    with patch("mica.arrays.imports_nothing", lambda: False):
        return arrow_array(values, kind, mask=mask)


def _tried(make: Callable[..., pa.Array], values: Any, kind: pa.DataType | None, mask: Any = None) -> Any:
    try:
        return make(values, kind, mask=mask)
    except (pa.ArrowException, OverflowError, TypeError, ValueError, UnicodeEncodeError) as error:
        return type(error)


def _shown(made: Any) -> str:
    if isinstance(made, pa.Array):
        made.validate(full=True)
        return f"{made.type} {made.to_pylist()}"
    return str(made)
