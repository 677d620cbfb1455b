"""z85, strictly written and leniently read; the RFC's two examples."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mica.stats import z85
from mica.stats.paths import Value, read_all
from mica.variant import kernel

RFC_MIN = "0S&u501fk+ze0(tB98CpzF6vU0rJl95HpNdvjbtatpi(cu0wW^cTu"
RFC_MAX = "0S&u500&]LC42A9vqZe}wb#-i1}-a+cT!xdbWhT9cTx}7v<+K"


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        (RFC_MIN, {"$['a']": Value("string", "min-string"), "$['b']['c']": Value("exact", 1)}),
        (RFC_MAX, {"$['a']": Value("string", "variant"), "$['b']['c']": Value("exact", 100)}),
    ],
)
def test_the_examples_of_the_rfc(text: str, bounds: dict[str, Value]) -> None:
    assert read_all(text) == bounds


def test_the_specifications_example() -> None:
    assert z85.encode(bytes.fromhex("864FD26FB559F75B")) == "HelloWorld"
    assert z85.decode("HelloWorld") == bytes.fromhex("864FD26FB559F75B")


def test_an_empty_object() -> None:
    assert z85.decode("0rr9300000") == b"\x01\0\0\x02\0\0\0\0"
    assert read_all("0rr9300000") == {}


@pytest.mark.parametrize("text", ["0", "abc~", "#####", "a b c", "ÄÄÄÄÄ", "%nSc1", "0000000000\n"])
def test_what_is_no_z85(text: str) -> None:
    assert z85.decode(text) is None
    assert kernel.decode_z85(pa.array([text, "HelloWorld", None])).to_pylist() == [None, z85.decode("HelloWorld"), None]


@given(st.binary(max_size=100))
def test_there_and_back(data: bytes) -> None:
    text = z85.encode(data)
    assert len(text) % 5 == 0
    assert z85.decode(text) == data + b"\0" * (-len(data) % 4)
