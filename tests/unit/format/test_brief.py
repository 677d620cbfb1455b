"""Errors of the data source are short where Spark shows their traceback."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest
from pyspark.sql.types import IntegerType, StructType

import mica
from mica.errors import UserError
from mica.format.source import MicaSource


def test_an_error_shows_the_frames_of_the_call_alone(tmp_path: Path) -> None:
    mica.Table.create(tmp_path, "a INT")
    source = MicaSource({"path": str(tmp_path)})
    for call in (source.reader, source.streamReader):
        with pytest.raises(UserError, match="UNKNOWN_COLUMN") as found:
            call(StructType().add("gone", IntegerType()))  # as a frame that was made before the column was dropped
        assert found.value.__suppress_context__
        assert len(traceback.extract_tb(found.value.__traceback__)) == 2  # this test and the wrapper


def test_the_places_of_a_stream_are_errors_of_few_lines(tmp_path: Path) -> None:
    mica.Table.create(tmp_path, "a INT")
    reader = MicaSource({"path": str(tmp_path)}).streamReader(StructType().add("a", IntegerType()))
    with pytest.raises(UserError, match="INVALID_ARGUMENT") as found:
        reader.partitions({"of": "another"}, {"of": "another"})
    assert len(traceback.extract_tb(found.value.__traceback__)) == 2
