"""Functions made without `pyarrow.compute` are its functions."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as plain
import pytest

import mica
from mica import compute

_TEXTS, _NUMBERS, _FLAGS = pa.array(["a", None, "Bc"]), pa.array([3, None, -1]), pa.array([True, False, None])


@pytest.mark.parametrize(
    ("name", "given", "named"),
    [
        ("and_", (_FLAGS, True), {}), ("or_", (_FLAGS, _FLAGS), {}), ("add", (_NUMBERS, 1), {}), ("any", (_FLAGS,), {}),
        ("cast", (_NUMBERS, pa.float32()), {}), ("cast", (pa.array([1.5]), pa.int8(), False), {}),
        ("take", (_TEXTS, pa.array([2, 0])), {}), ("take", (pa.table({"a": _TEXTS}), pa.array([2])), {}),
        ("filter", (pa.table({"a": _TEXTS}), _FLAGS), {}), ("fill_null", (_NUMBERS, 7), {}),
        ("fill_null", (_NUMBERS, pa.scalar(7, pa.int8())), {}), ("fill_null", (_NUMBERS, _NUMBERS), {}),
        ("match_substring", (_TEXTS, "b"), {"ignore_case": True}), ("is_in", (_TEXTS,), {"value_set": pa.array(["a"])}),
        ("binary_join_element_wise", (_TEXTS, _TEXTS, "-"), {}), ("coalesce", (_TEXTS, _TEXTS, "x"), {}),
        ("round", (pa.array([2.5]), 0, "half_to_even"), {}), ("sum", (_NUMBERS,), {"skip_nulls": False}),
        ("struct_field", (pa.array([{"a": 1}]), "a"), {}), ("index", (_NUMBERS, -1), {}), ("is_null", (_TEXTS,), {}),
        ("sort_indices", (_NUMBERS,), {"sort_keys": [("", "descending")]}), ("if_else", (_FLAGS, 1, 2), {}),
        ("less", (_NUMBERS, 2.5), {}), ("min_element_wise", (_TEXTS, _TEXTS), {"skip_nulls": False}),
        ("max_element_wise", (_NUMBERS, pa.scalar(1)), {}),
    ],
)  # fmt: skip
def test_a_function_is_that_of_pyarrow(name: str, given: tuple[Any, ...], named: dict[str, Any]) -> None:
    assert getattr(compute, name)(*given, **named).equals(getattr(plain, name)(*given, **named))


def test_what_is_wrong_fails_alike() -> None:
    for name, given in (
        ("add", (_NUMBERS,)),
        ("cast", (pa.array(["x"]), pa.int8())),
        ("take", (_TEXTS, pa.array([9]))),
    ):
        with pytest.raises((pa.ArrowInvalid, TypeError, IndexError)):
            getattr(compute, name)(*given)
    with pytest.raises(AttributeError, match="no_such"):
        compute.no_such  # noqa: B018


def test_rows_are_cast() -> None:
    rows, schema = pa.table({"a": [1], "b": ["x"]}), pa.schema([("a", pa.int8()), ("b", pa.large_string())])
    assert compute.cast_rows(rows, schema).equals(rows.cast(schema))


def test_all_that_mica_asks_for_is_there() -> None:
    files = Path(mica.__file__).parent.rglob("*.py")
    names = {name for file in files for name in re.findall(r"\bpc\.(\w+)", file.read_text())}
    assert len(names) > 60
    for name in names:
        assert callable(getattr(compute, name)), name


_WORK = """
import sys
import mica, pyarrow as pa

place = sys.argv[1]
with open(place + "/rows.ndjson", "w") as out:
    out.writelines('{"id":%d}\\n' % n for n in range(9))
path = place + "/table"
for _ in range(2):
    mica.ingest_json(place + "/rows.ndjson", path)
table = mica.Table.open(path)
table.append([{"v": {"id": 11}}])
table.append(table.scan(where="v:id::bigint < 2").to_arrow())
table.delete("v:id::bigint = 3")
table.update({"v": "parse_json('{}')"}, where="v:id::bigint = 4")
table.optimize()
table.vacuum()
plain = mica.Table.create(place + "/plain", pa.schema([("id", pa.int64())]))
plain.append([{"id": 1}, {"id": 2}])
merge = plain.merge(plain.scan().to_arrow(), "target.id = source.id")
merge.when_matched_update_all().when_not_matched_insert_all().execute()
print(plain.scan().count(), "pyarrow.compute" in sys.modules)
"""


def test_the_first_write_of_a_process_does_without_pyarrow_compute(tmp_path: Path) -> None:
    """Methods of tables and arrays such as `filter`, `take` and `cast` import it: an eighth of a small first ingest."""
    done = subprocess.run([sys.executable, "-c", _WORK, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2", "False"]
