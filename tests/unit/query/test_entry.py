"""What is said beside Spark's own errors."""

from __future__ import annotations

import pytest

from mica.query.entry import _hinted


def test_a_session_without_delta_spark_is_told_what_makes_a_table() -> None:
    def fail() -> None:
        raise RuntimeError("[DATA_SOURCE_NOT_FOUND] Failed to find the data source: delta. Make sure the provider …")

    with pytest.raises(RuntimeError) as caught:
        _hinted("CREATE TABLE t USING delta", fail)  # type: ignore[arg-type]
    assert "CREATE TABLE … USING mica" in caught.value.__notes__[0]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("CREATE OR REPLACE TABLE t SHALLOW CLONE u VERSION AS OF 3", "AS SELECT"),
        ("/* all */ create table t clone u", "LIKE"),
        ("GENERATE symlink_format_manifest FOR TABLE t", "file_uris"),
        ("SELECT 1 CLONE", None),
    ],
)
def test_a_statement_of_delta_sparks_is_told_what_mica_has(text: str, hint: str | None) -> None:
    def fail() -> None:
        raise RuntimeError("[PARSE_SYNTAX_ERROR] Syntax error at or near 'SHALLOW'.")

    with pytest.raises(RuntimeError) as caught:
        _hinted(text, fail)  # type: ignore[arg-type]
    notes = getattr(caught.value, "__notes__", [])
    assert (hint is None and not notes) or (hint is not None and hint in notes[0])


@pytest.mark.parametrize(
    "said",
    [
        "[INTERNAL_ERROR] Unexpected table relation: Relation [id#1L] parquet",
        "[UNSUPPORTED_FEATURE.TABLE_OPERATION] … Table `unknown` does not support UPDATE TABLE.",
        "[UNSUPPORTED_INSERT.RDD_BASED] Can't insert into the target.",
    ],
)
def test_who_changes_rows_through_a_view_is_told_of_the_table(said: str) -> None:
    def fail() -> None:
        raise RuntimeError(said)

    with pytest.raises(RuntimeError) as caught:
        _hinted("UPDATE v SET a = 1", fail)  # type: ignore[arg-type]
    assert "not through a view" in caught.value.__notes__[0]
