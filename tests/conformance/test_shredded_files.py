"""The public conformance files of shredded variants: valid ones equal, invalid ones refused with rule and path."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mica
from mica.variant import kernel
from mica.variant.kernel import Request
from mica.variant.values import decode
from tests.support import SHARED, shared_files
from tests.variant_files import column, file

FOLDER = SHARED / "conformance" / "parquet-shredded-variant"
BAD = SHARED / "conformance" / "bad-parquet"
LEGAL = "ARROW-GH-43605"
"""Crashed Arrow C++ once, and is sound: one dictionary entry needs indices of no bits."""

#: Case number → the rule of the checklist that it breaks (docs/check.md).
REFUSED = {40: 25, 43: 35, 125: 37, 127: 21, 128: 36, 137: 21}


def cases() -> Iterator[Any]:
    if not FOLDER.is_dir():
        return
    for case in json.loads((FOLDER / "cases.json").read_text()):
        yield pytest.param(case, id=f"{case['case_number']:03}-{case['test']}")


def read(path: Path, column: str = "var") -> list[tuple[bytes, bytes] | None]:
    found = mica.read_parquet(path, columns=[column]).to_arrow()
    assert found.schema.field(column).metadata[b"ARROW:extension:name"] == b"arrow.parquet.variant"
    return [v and (v["metadata"], v["value"]) for v in found.column(column).to_pylist()]


@pytest.mark.shared
@pytest.mark.parametrize("case", [c for c in cases() if c.values[0]["case_number"] not in REFUSED])
def test_valid_file_reads_as_the_expected_variants(case: dict[str, Any]) -> None:
    names = case.get("variant_files", [case.get("variant_file")])
    rows = read(FOLDER / case["parquet_file"])
    assert len(rows) == len(names)
    texts = mica.read_parquet(FOLDER / case["parquet_file"], columns={"t": "to_json(var)"}).to_arrow()["t"]
    variants = mica.read_parquet(FOLDER / case["parquet_file"], columns=["var"]).to_arrow()["var"]
    assert texts.to_pylist() == mica.variant.to_json(variants).to_pylist(), "the text that was written from the columns"
    for row, name in zip(rows, names, strict=True):
        if name is None:
            assert row is None
            continue
        assert row is not None
        expected = (FOLDER / name).read_bytes()
        metadata, value = split(expected)
        assert decode(*row) == decode(metadata, value)
        assert row[1][:1] == value[:1], "the physical type differs"


@pytest.mark.shared
@pytest.mark.parametrize("case", [c for c in cases() if c.values[0]["case_number"] in REFUSED])
def test_invalid_file_is_refused_with_rule_and_path(case: dict[str, Any]) -> None:
    with pytest.raises(mica.CorruptDataError) as caught:
        read(FOLDER / case["parquet_file"])
    error = caught.value
    with pytest.raises(mica.CorruptDataError) as same:
        mica.read_parquet(FOLDER / case["parquet_file"], columns={"t": "to_json(var)"}).to_arrow()
    assert same.value.context["rule"] == error.context["rule"]
    assert (error.code, error.context["rule"]) == ("MALFORMED_SHREDDING", REFUSED[case["case_number"]])
    assert error.context["path"].startswith("var")
    # A type that may not be there is refused before any row is read.
    assert error.context["rule"] == 21 or error.context["row"] == 0


@pytest.mark.shared
@pytest.mark.parametrize(
    "path", [p for p in shared_files("conformance/bad-parquet/*.parquet") if p.stem != LEGAL], ids=lambda p: p.stem
)
def test_bad_parquet_is_a_clear_error(path: Path) -> None:
    with pytest.raises(mica.CorruptDataError) as caught:
        read_all(path)
    assert caught.value.code == "CORRUPT_FILE"
    assert path.name in str(caught.value)


@pytest.mark.shared
def test_dictionary_indices_of_no_bits_are_read() -> None:
    found = mica.read_parquet(BAD / f"{LEGAL}.parquet").to_arrow()
    assert found.num_columns == 1
    assert found.column(0).to_pylist() == [0] * 21_186


@pytest.mark.shared
@pytest.mark.parametrize("path", shared_files("conformance/variant-encoding/*.metadata"), ids=lambda p: p.stem)
def test_every_public_value_reads_from_an_unshredded_file(path: Path, tmp_path: Path) -> None:
    """The kernel takes the bytes themselves in tests/unit/variant/test_arrays.py; here a file carries them."""
    metadata, value = path.read_bytes(), path.with_suffix(".value").read_bytes()
    rows = [{"metadata": metadata, "value": value}, None]
    whole = mica.read_parquet(file(tmp_path / "v.parquet", column(rows))).to_arrow().column("v").to_pylist()
    assert whole == rows
    # The dictionary is JSON but for a comma at its end.
    dictionary = re.sub(r",(\s*})", r"\1", (path.parent / "data_dictionary.json").read_text())
    expected = json.loads(dictionary).get(path.stem, DATED)
    (text, nothing) = mica.variant.to_json(pa.chunked_array([pa.array(rows, column(rows).type)])).to_pylist()
    assert nothing is None
    if expected is not DATED and not path.stem.startswith(SPELLED_OTHERWISE):
        assert json.loads(text) == expected


DATED = object()
#: Times are spelled with another zone, or as the writer liked; floats have the digits of a float here.
SPELLED_OTHERWISE = ("primitive_timestamp", "primitive_time", "primitive_float")


def read_all(path: Path) -> list[pa.RecordBatch]:
    reader = kernel.FileReader(path=str(path), name=path.name)
    return list(reader.scan([Request((name,)) for name in reader.schema.names]))


def split(joined: bytes) -> tuple[bytes, bytes]:
    """Metadata and value: the metadata's length stands in its last offset."""
    width = (joined[0] >> 6) + 1
    count = int.from_bytes(joined[1 : 1 + width], "little")
    last = 1 + width + count * width
    end = last + width + int.from_bytes(joined[last : last + width], "little")
    return joined[:end], joined[end:]


def test_a_file_of_several_columns_keeps_the_others(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2, None], "s": [{"x": 1}, None, {"x": 3}]})
    pq.write_table(table, tmp_path / "t.parquet")
    found = mica.read_parquet(tmp_path / "t.parquet", columns={"a": "a", "x": "s.x"}).to_arrow()
    assert found.to_pydict() == {"a": [1, 2, None], "x": [1, None, 3]}
