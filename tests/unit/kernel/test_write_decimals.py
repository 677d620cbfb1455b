"""Decimals of more digits than their column says are refused by a write, which would keep the lowest bytes of them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from mica.errors import UserError
from mica.variant import kernel

NUMBER = 10**12
DECIMAL = pa.decimal128(4, 2)


def beyond(nulls: bool = False) -> pa.Array:
    """0.01 and a number of thirteen digits, in a column of four."""
    data = b"".join(n.to_bytes(16, "little", signed=True) for n in (1, NUMBER))
    return pa.Array.from_buffers(DECIMAL, 2, [pa.py_buffer(b"\1") if nulls else None, pa.py_buffer(data)])


@pytest.mark.parametrize(
    ("make", "path"),
    [
        (lambda a: a, "d"),
        (lambda a: pa.StructArray.from_arrays([a], ["x"]), "d.x"),
        (lambda a: pa.ListArray.from_arrays([0, 1, 2], a), "d.element"),
        (lambda a: pa.LargeListArray.from_arrays([0, 1, 2], a), "d.element"),
        (lambda a: pa.MapArray.from_arrays([0, 1, 2], pa.array(["k", "l"]), a), "d.value"),
    ],
)
def test_a_decimal_of_too_many_digits_is_refused(make, path: str) -> None:  # type: ignore[no-untyped-def]
    batch = pa.record_batch({"d": make(beyond())})
    writer = kernel.FileWriter(batch.schema)
    writer.write(batch.slice(0, 1))
    with pytest.raises(UserError, match="has more digits") as caught:
        writer.write(batch)
    assert caught.value.code == "INVALID_VALUE"
    assert str(caught.value).startswith(f"[INVALID_VALUE] {path} is DECIMAL(4,2) and holds 10000000000.00")


def test_what_is_beneath_a_null_is_no_value() -> None:
    batch = pa.record_batch({"d": beyond(nulls=True)})
    writer = kernel.FileWriter(batch.schema)
    writer.write(batch)
    assert writer.close()["rows"] == 2
