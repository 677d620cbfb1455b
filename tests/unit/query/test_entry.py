"""What is said beside Spark's own errors."""

from __future__ import annotations

import pytest

from mica.query.entry import _hinted


def test_a_session_without_delta_spark_is_told_what_makes_a_table() -> None:
    def fail() -> None:
        raise RuntimeError("[DATA_SOURCE_NOT_FOUND] Failed to find the data source: delta. Make sure the provider …")

    with pytest.raises(RuntimeError) as caught:
        _hinted(fail)  # type: ignore[arg-type]
    assert "CREATE TABLE … USING mica" in caught.value.__notes__[0]
