"""Options of an ingest: what cannot be meant is refused by name before anything is opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import mica
from mica.errors import UserError
from mica.write.ingest_options import IngestOptions, largest_of, size_of, sort_key


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("mode", "replace"), ("format", "csv"), ("on_error", "skip"), ("duplicate_keys", "first"),
        ("invalid_utf8", "ignore"), ("timezone", "Mars/Olympus"), ("max_size", "1GB"), ("max_size", "much"),
        ("target_file_size", 0), ("target_file_size", "-1MB"),
    ],
)  # fmt: skip
def test_an_option_that_cannot_be_meant_is_refused_before_anything_is_opened(
    tmp_path: Path, option: str, value: Any
) -> None:
    with pytest.raises(UserError) as refused:
        mica.ingest_json(tmp_path / "none.ndjson", tmp_path / "t", **{option: value})
    assert refused.value.code == ("UNKNOWN_TIME_ZONE" if option == "timezone" else "INVALID_ARGUMENT")
    assert refused.value.message.startswith(option) or option == "timezone"
    assert str(value) in refused.value.message
    assert not (tmp_path / "t").exists()


def test_an_overwrite_cannot_count_files_once() -> None:
    with pytest.raises(UserError, match="idempotent"):
        IngestOptions(mode="overwrite", idempotent=True)


@pytest.mark.parametrize(("given", "hint"), [("sortby", "The nearest one is sort_by."), ("x", "There are spark, ")])
def test_an_option_that_is_not_there_is_named_with_the_nearest(tmp_path: Path, given: str, hint: str) -> None:
    with pytest.raises(UserError, match=f"ingest_json has no option '{given}'") as refused:
        mica.ingest_json(tmp_path / "none.ndjson", tmp_path / "t", **{given: ["v:a::int"]})  # type: ignore[arg-type]
    assert refused.value.code == "INVALID_ARGUMENT"
    assert refused.value.hint is not None
    assert refused.value.hint.startswith(hint)
    with pytest.raises(TypeError, match="missing"):
        mica.ingest_json(tmp_path)  # type: ignore[call-arg]


def test_sizes_are_numbers_or_texts() -> None:
    assert (size_of(None), size_of(5), size_of("128MB"), largest_of("16MB")) == (None, 5, 128 << 20, 16 << 20)


def test_what_the_tasks_are_told() -> None:
    options = IngestOptions(sort_by=["a DESC ", "b", "c asc"], invalid_utf8="replace", mode="ignore")
    assert options.descending == [True, False, False]
    assert [sort_key(text) for text in ("a  desc", "`a b`\tDESC ", "desc", "v:a::int asc")] == [
        ("a", True), ("`a b`", True), ("desc", False), ("v:a::int", False)
    ]  # fmt: skip
    assert options.reader == {"duplicate_keys": "error", "max_size": 16 << 20, "replace_invalid_utf8": True}
    assert (options.on_table, IngestOptions(mode="overwrite").on_table) == ("error", "overwrite")


def test_a_place_for_bad_lines_that_are_errors_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text("{}")
    with pytest.raises(mica.UserError, match="ends the ingest") as caught:
        mica.ingest_json(tmp_path / "in.json", tmp_path / "t", quarantine=tmp_path / "q")
    assert caught.value.code == "INVALID_ARGUMENT"
