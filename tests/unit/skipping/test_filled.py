"""Unknown answers replaced by the safe one."""

import pyarrow as pa

from mica.skipping.filled import filled


def test_nulls_are_the_safe_answer() -> None:
    assert filled(pa.array([True, None, False]), True).to_pylist() == [True, True, False]
    assert filled(pa.chunked_array([[True, None], [None]]), False).to_pylist() == [True, False, False]
    assert filled(pa.scalar(None, pa.bool_()), True).as_py() is True
    assert filled(pa.scalar(False), True).as_py() is False


def test_answers_without_nulls_are_those_given() -> None:
    answers = pa.array([True, False])
    assert filled(answers, True) is answers
