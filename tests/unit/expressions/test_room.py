"""Texts that have no room in an array are an error, never other texts."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from mica.errors import UserError
from mica.expressions.bind import bind_value
from mica.expressions.evaluate import evaluate
from mica.expressions.room import NoRoomError, is_of_room, repeated
from mica.schema.ddl import parse_ddl

LARGE = "x" * (1 << 20)


@pytest.mark.parametrize(
    "value", [pa.scalar(LARGE), pa.scalar(LARGE.encode()), pa.scalar({"s": LARGE}), pa.scalar([LARGE, ""])], ids=type
)
@pytest.mark.parametrize("count", [1 << 11, 1 << 12, (1 << 12) + 1])
def test_offsets_never_wrap_around(value: pa.Scalar, count: int) -> None:
    with pytest.raises(NoRoomError, match="repetitions of a constant") as caught:
        repeated(value, count)
    assert caught.value.code == "TOO_LARGE"
    assert is_of_room(pickle.loads(pickle.dumps(caught.value)))


def test_what_has_room_is_repeated() -> None:
    assert repeated(pa.scalar("ab"), 3).to_pylist() == ["ab"] * 3
    for value in (pa.scalar(7), pa.scalar([], pa.list_(pa.int32())), pa.scalar([], pa.map_(pa.string(), pa.int8()))):
        assert repeated(value, 0).to_pylist() == []
        assert repeated(value, 0).type == value.type


@pytest.mark.parametrize("text", ["'{}'", "concat('{}', s)", "trim('{}')", "CASE WHEN s = '' THEN s ELSE '{}' END"])
def test_expressions_say_that_there_is_no_room(text: str) -> None:
    schema = parse_ddl("s STRING")
    bound = bind_value(text.format(LARGE), schema)
    with pytest.raises(UserError) as caught:
        evaluate(bound, [pa.array(["y"] * 2_100)] * len(bound.leaves), num_rows=2_100)
    assert caught.value.code == "TOO_LARGE"


def test_errors_of_arrow_are_known() -> None:
    texts = pa.array([LARGE] * 64)
    with pytest.raises(pa.ArrowInvalid) as caught:
        pa.concat_arrays([texts] * 33)
    assert is_of_room(caught.value)
    assert not is_of_room(pa.ArrowInvalid("overflow"))
    assert not is_of_room(UserError("TOO_LARGE", "a Variant"))
