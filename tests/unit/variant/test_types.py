"""Every type of Variants through Arrow and Parquet, shredded and not, and back; JSON where it has the type."""

from __future__ import annotations

import datetime as dt
import json
import struct
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import mica
from mica.schema.arrow import variant_field
from mica.variant import kernel
from tests.parquet_schema import LOGICAL, STRUCT, UUID, Element
from tests.variant_files import column, container, file, metadata, read


def primitive(type_id: int, payload: bytes = b"") -> bytes:
    return bytes([type_id << 2]) + payload


#: Name, value bytes, Python value, the Arrow type that shreds it, JSON text.
TYPES: list[tuple[str, bytes, Any, pa.DataType | None, str]] = [
    ("null", primitive(0), None, None, "null"),
    ("true", primitive(1), True, pa.bool_(), "true"),
    ("false", primitive(2), False, pa.bool_(), "false"),
    ("int8", primitive(3, b"\x80"), -128, pa.int8(), "-128"),
    ("int16", primitive(4, struct.pack("<h", -300)), -300, pa.int16(), "-300"),
    ("int32", primitive(5, struct.pack("<i", 1 << 30)), 1 << 30, pa.int32(), "1073741824"),
    ("int64", primitive(6, struct.pack("<q", -(1 << 62))), -(1 << 62), pa.int64(), "-4611686018427387904"),
    ("double", primitive(7, struct.pack("<d", 0.1)), 0.1, pa.float64(), "0.1"),
    ("float", primitive(14, struct.pack("<f", 0.5)), 0.5, pa.float32(), "0.5"),
    ("decimal4", primitive(8, b"\x02" + struct.pack("<i", -123)), Decimal("-1.23"), pa.decimal128(9, 2), "-1.23"),
    (
        "decimal8",
        primitive(9, b"\x03" + struct.pack("<q", 10**15)),
        Decimal(10**12),
        pa.decimal128(18, 3),
        "1000000000000",
    ),
    (
        *("decimal16", primitive(10, b"\x0a" + (10**37 + 1).to_bytes(16, "little"))),
        *(
            Decimal("1000000000000000000000000000.0000000001"),
            pa.decimal128(38, 10),
            "1000000000000000000000000000.0000000001",
        ),
    ),
    ("date", primitive(11, struct.pack("<i", -1)), dt.date(1969, 12, 31), pa.date32(), '"1969-12-31"'),
    (
        *("timestamp", primitive(12, struct.pack("<q", 1)), dt.datetime(1970, 1, 1, 0, 0, 0, 1, dt.UTC)),
        *(pa.timestamp("us", "UTC"), '"1970-01-01 00:00:00.000001+00:00"'),
    ),
    (
        *(
            "timestamp_ntz",
            primitive(13, struct.pack("<q", -1)),
            dt.datetime.fromisoformat("1969-12-31T23:59:59.999999"),
        ),
        *(pa.timestamp("us"), '"1969-12-31 23:59:59.999999"'),
    ),
    (
        *("timestamp_nanos", primitive(18, struct.pack("<q", 1001)), pa.scalar(1001, pa.timestamp("ns", "UTC"))),
        *(pa.timestamp("ns", "UTC"), '"1970-01-01 00:00:00.000001001+00:00"'),
    ),
    (
        *("timestamp_ntz_nanos", primitive(19, struct.pack("<q", 1)), pa.scalar(1, pa.timestamp("ns"))),
        *(pa.timestamp("ns"), '"1970-01-01 00:00:00.000000001"'),
    ),
    (
        "time",
        primitive(17, struct.pack("<q", 3_600_000_001)),
        dt.time(1, 0, 0, 1),
        pa.time64("us"),
        '"01:00:00.000001"',
    ),
    (
        *("uuid", primitive(20, bytes(range(16))), uuid.UUID(bytes=bytes(range(16)))),
        *(pa.binary(16), '"00010203-0405-0607-0809-0a0b0c0d0e0f"'),
    ),
    ("binary", primitive(15, b"\x02\0\0\0\xff\x00"), b"\xff\x00", pa.binary(), '"/wA="'),
    ("short string", b"\x09hi", "hi", pa.string(), '"hi"'),
    ("string", primitive(16, b"\x64\0\0\0" + b"x" * 100), "x" * 100, pa.string(), json.dumps("x" * 100)),
    ("object", container([primitive(1)], [0]), {"k": True}, None, '{"k":true}'),
    ("array", container([primitive(0), primitive(2)]), [None, False], None, "[null,false]"),
]
EACH = pytest.mark.parametrize(
    ("value", "expected", "type_", "text"), [c[1:] for c in TYPES], ids=[c[0] for c in TYPES]
)
NAMES = metadata("k")


def variants(*values: bytes) -> pa.Array:
    return pa.array([{"metadata": NAMES, "value": value} for value in values], variant_field("v").type)


@EACH
def test_arrow_python_and_json(value: bytes, expected: Any, type_: pa.DataType | None, text: str) -> None:
    array = variants(value)
    (found,) = mica.variant.to_python(array)
    assert found == expected
    assert type(found) is type(expected)
    assert mica.variant.to_json(array).to_pylist() == [text]


@EACH
def test_an_unshredded_file(tmp_path: Path, value: bytes, expected: Any, type_: pa.DataType | None, text: str) -> None:
    rows = pa.Table.from_arrays([variants(value)], schema=pa.schema([variant_field("v")]))
    mica.write_parquet(rows, tmp_path / "v.parquet", shredding={"v": None})
    found = mica.read_parquet(tmp_path / "v.parquet").to_arrow().column("v").to_pylist()
    assert found == [{"metadata": b"\x11\x00\x00" if b"k" not in found[0]["metadata"] else NAMES, "value": value}]


@EACH
def test_a_shredded_file(tmp_path: Path, value: bytes, expected: Any, type_: pa.DataType | None, text: str) -> None:
    """The tree is inferred, and an object that holds the value is shredded around it."""
    inside = container([value], [0])
    rows = pa.Table.from_arrays([variants(inside, inside)], schema=pa.schema([variant_field("v")]))
    mica.write_parquet(rows, tmp_path / "v.parquet")
    assert mica.check(tmp_path / "v.parquet").ok
    assert read(tmp_path / "v.parquet") == [{"k": expected}] * 2


@pytest.mark.parametrize(
    ("value", "expected", "type_"), [c[1:4] for c in TYPES if c[3] is not None], ids=[c[0] for c in TYPES if c[3]]
)
def test_a_leaf_that_another_writer_shredded(tmp_path: Path, value: bytes, expected: Any, type_: pa.DataType) -> None:
    plain = expected.as_py() if isinstance(expected, pa.Scalar) else expected
    cell = expected.value if isinstance(expected, pa.Scalar) else getattr(plain, "bytes", plain)

    def annotate(elements: dict[str, Element]) -> None:
        if isinstance(expected, uuid.UUID):
            elements["v.typed_value"].set(LOGICAL, STRUCT, [(UUID, STRUCT, [])])

    path = file(tmp_path / "v.parquet", column([{"typed_value": cell}], type_), annotate)
    (found,) = mica.read_parquet(path).to_arrow().column("v").to_pylist()
    assert found["value"] == value
    assert mica.check(path).ok


LATE = {name: (value, text) for name, value, _, _, text in TYPES if name in ("time", "uuid") or "nanos" in name}


@pytest.mark.parametrize("name", LATE)
def test_types_that_spark_lacks_are_refused_with_their_path_or_become_texts(name: str) -> None:
    value, text = LATE[name]
    inside = variants(primitive(1), container([container([primitive(0), value])], [0]))
    batch = pa.record_batch([inside], schema=pa.schema([variant_field("v")]))
    with pytest.raises(mica.UserError) as caught:
        kernel.without_late_types(batch, as_text=False)
    assert (caught.value.context["path"], caught.value.context["row"]) == ("$['k'][1]", 1)
    texts = kernel.without_late_types(batch, as_text=True).column(0)
    assert mica.variant.to_json(texts).to_pylist() == ["true", f'{{"k":[null,{text}]}}']
    assert kernel.without_late_types(batch.slice(0, 1), as_text=False).column(0).to_pylist() == inside[:1].to_pylist()


# --- Width -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fields", [255, 256, 65_535, 65_536, 70_000])
def test_objects_of_many_fields(tmp_path: Path, fields: int) -> None:
    document = {f"k{i}": i for i in range(fields)}
    array = mica.variant.from_json([json.dumps(document)])
    kernel.validate(pa.record_batch([array], schema=pa.schema([variant_field("v")])))
    assert mica.variant.to_python(array) == [document]
    rows = pa.Table.from_arrays([array], schema=pa.schema([variant_field("v")]))
    mica.write_parquet(rows, tmp_path / "v.parquet")
    assert mica.check(tmp_path / "v.parquet").ok
    assert mica.variant.to_python(mica.read_parquet(tmp_path / "v.parquet").to_arrow().column("v")) == [document]
    found = mica.read_parquet(tmp_path / "v.parquet", columns={"last": f"v:k{fields - 1}::bigint"}).to_arrow()
    assert found.to_pylist() == [{"last": fields - 1}]


@pytest.mark.parametrize("length", [1, 250, 65_000, 70_000, 17_000_000])
def test_offsets_of_1_to_4_bytes(tmp_path: Path, length: int) -> None:
    document = {"a": "x" * length, "b": ["y" * length, 1]}
    array = mica.variant.from_json([json.dumps(document)], max_size=64 << 20)
    assert array[0]["value"].as_py()[0] >> 2 & 3 == (0 if length == 1 else max(0, (2 * length).bit_length() - 1) // 8)
    rows = pa.Table.from_arrays([array], schema=pa.schema([variant_field("v")]))
    for shredding in ({"v": None}, {"v": "struct<a: string, b: array<string>>"}):
        mica.write_parquet(rows, tmp_path / "v.parquet", shredding=shredding)
        assert mica.variant.to_python(mica.read_parquet(tmp_path / "v.parquet").to_arrow().column("v")) == [document]


KEYS = [
    "",
    "'",
    '"',
    "\\",
    "a.b",
    "$",
    "['x']",
    "\b\f\n\r\t\x01\x1f",
    "é",
    "￰",
    "\U00010000",
    "\U0010ffff",
    " ",
    "%",
    "/",
]


def test_awkward_keys_and_dictionaries(tmp_path: Path) -> None:
    document = {key: i for i, key in enumerate(KEYS)}
    text = json.dumps(document)
    array = mica.variant.from_json([text])
    names = [key.encode() for key in KEYS]
    assert mica.variant.to_python(array) == [document]
    rows = pa.Table.from_arrays([array], schema=pa.schema([variant_field("v")]))
    mica.write_parquet(rows, tmp_path / "v.parquet")
    assert mica.check(tmp_path / "v.parquet").ok
    assert read(tmp_path / "v.parquet") == [document]
    # The same object over a dictionary that is not sorted and holds keys that nothing uses.
    unsorted = metadata("unused", *reversed(KEYS), "other")
    ids = [len(KEYS) - KEYS.index(name.decode()) for name in sorted(names)]
    values = [primitive(3, bytes([KEYS.index(name.decode())])) for name in sorted(names)]
    path = file(tmp_path / "u.parquet", column([container(values, ids)], names=unsorted))
    assert read(path) == [document]
    assert mica.check(path).ok
    mica.repair(path, tmp_path / "r.parquet")
    assert read(tmp_path / "r.parquet") == [document]
