"""Which errors are Spark's: what PySpark says goes before the text."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, PySparkException, PySparkValueError

from mica.engines.spark.errors import is_condition, is_of_connect, is_sparks, reason_first


@pytest.mark.parametrize("kind", [PySparkException, AnalysisException, PySparkValueError])
def test_errors_of_pyspark_are_sparks(kind: type[PySparkException]) -> None:
    assert is_sparks(kind(message="no"))


def test_errors_of_others_are_not() -> None:
    assert not is_sparks(ValueError("[UNRESOLVED_COLUMN] pyspark"))


@pytest.mark.parametrize("condition", ["UNRESOLVED_COLUMN", "UNRESOLVED_COLUMN.WITH_SUGGESTION"])
def test_a_condition_is_what_pyspark_says(condition: str) -> None:
    error = PySparkException("[OTHER] no", errorClass=condition, messageParameters={})
    assert is_condition(error, "UNRESOLVED_COLUMN")
    assert not is_condition(error, "OTHER")
    assert not is_condition(error, "UNRESOLVED")


@pytest.mark.parametrize("kind", [PySparkException, RuntimeError])
@pytest.mark.parametrize("condition", ["UNRESOLVED_COLUMN", "UNRESOLVED_COLUMN.WITH_SUGGESTION"])
def test_without_one_the_text_says_it(kind: type[Exception], condition: str) -> None:
    error = kind(f"failed: [{condition}] no")
    assert is_condition(error, "UNRESOLVED_COLUMN")
    assert not is_condition(error, "UNRESOLVED")


def test_an_error_of_spark_connect_begins_with_the_reason() -> None:
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio")
    from pyspark.errors.exceptions.connect import PythonException

    error = PythonException("Traceback\nmica.errors.UserError: [INVALID_CAST] no INT\nUse try_cast.")
    assert is_of_connect(error)
    with pytest.raises(PythonException) as raised, reason_first():
        raise error
    assert str(raised.value).startswith("[INVALID_CAST] no INT\n\nTraceback\n")
