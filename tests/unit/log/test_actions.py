"""Actions: what is parsed is what is written, and what we do not know is kept."""

from __future__ import annotations

import orjson
import pytest

from mica.errors import CorruptDataError
from mica.log.actions import EMPTY_SCHEMA, Metadata, Protocol, format_line, parse_line


def test_a_protocol_names_features_only_where_its_versions_carry_them() -> None:
    assert Protocol(1, 2).action() == {"minReaderVersion": 1, "minWriterVersion": 2}
    assert Protocol(1, 7, frozenset(), frozenset({"b", "a"})).action() == {
        "minReaderVersion": 1,
        "minWriterVersion": 7,
        "writerFeatures": ["a", "b"],
    }
    full = Protocol(3, 7, frozenset({"a"}), frozenset({"a"}))
    assert Protocol.parse(full.action()) == full


@pytest.mark.parametrize(
    "action",
    [
        {},
        {"minReaderVersion": "1", "minWriterVersion": 2},
        {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": "x"},
    ],
)
def test_a_broken_protocol_is_corrupt(action: dict[str, object]) -> None:
    with pytest.raises(CorruptDataError):
        Protocol.parse(action)


def test_metadata_keeps_what_we_do_not_know() -> None:
    action = {
        "id": "1",
        "name": "n",
        "format": {"provider": "parquet", "options": {"x": "y"}},
        "schemaString": EMPTY_SCHEMA,
        "partitionColumns": ["p"],
        "configuration": {"unknown.key": "v"},
        "createdTime": 5,
        "fromTheFuture": {"a": [1]},
    }
    assert Metadata.parse(action).action() == action


def test_metadata_without_optional_keys_has_defaults() -> None:
    parsed = Metadata.parse({"id": "1"})
    assert parsed.schema_string == EMPTY_SCHEMA
    assert parsed.partition_columns == ()


@pytest.mark.parametrize(
    "action", [{"schemaString": 5}, {"partitionColumns": "p"}, {"configuration": "x"}, {"format": []}]
)
def test_broken_metadata_is_corrupt(action: dict[str, object]) -> None:
    if action == {"format": []}:
        assert Metadata.parse({"id": "1", **action}).format["provider"] == "parquet"
        return
    with pytest.raises(CorruptDataError):
        Metadata.parse({"id": "1", **action})


def test_properties_are_set_and_removed() -> None:
    metadata = Metadata("1", EMPTY_SCHEMA, configuration={"a": "1", "b": "2"})
    assert metadata.with_configuration({"a": None, "c": "3"}).configuration == {"b": "2", "c": "3"}


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"1", b'{"a":1} x', b'{"a":"\xff"}'])
def test_a_line_that_is_no_object_is_corrupt(line: bytes) -> None:
    with pytest.raises(CorruptDataError) as caught:
        parse_line(line)
    assert caught.value.code == "CORRUPT_LOG"


def test_a_line_has_no_line_break() -> None:
    text = format_line("add", {"path": "a\nb\u2028"})
    assert "\n" not in text
    assert orjson.loads(text) == {"add": {"path": "a\nb\u2028"}}
