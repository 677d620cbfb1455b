"""Features: read or refused by name, the smallest protocol, upgrades that lose nothing."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from mica import properties
from mica.errors import UnsupportedTableError
from mica.log import features
from mica.log.actions import EMPTY_SCHEMA, Metadata, Protocol

PLAIN = Metadata("1", EMPTY_SCHEMA)


def with_features(*names: str, reader: bool = True) -> Protocol:
    return Protocol(3, 7, frozenset(names) if reader else frozenset(), frozenset(names))


@pytest.mark.parametrize("name", ["fromTheFuture", "catalogManaged", "catalogOwned-preview"])
def test_an_unknown_reader_feature_refuses_reading_by_name(name: str) -> None:
    with pytest.raises(UnsupportedTableError, match=name) as caught:
        features.check_read(with_features("deletionVectors", name), "t")
    assert caught.value.code == "UNSUPPORTED_READER_FEATURE"
    assert "deletionVectors" not in str(caught.value)


@pytest.mark.parametrize("name", ["fromTheFuture", "icebergCompatV3"])
def test_a_writer_feature_that_we_lack_refuses_writing_by_name_and_lets_read(name: str) -> None:
    protocol = with_features(name, reader=False)
    features.check_read(protocol, "t")
    with pytest.raises(UnsupportedTableError) as caught:
        features.check_write(protocol, PLAIN, "t")
    assert caught.value.code == "UNSUPPORTED_WRITER_FEATURE"
    assert name.removesuffix("-preview") in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "refused"),
    [
        ("delta.compatibility.symlinkFormatManifest.enabled", "true", True),
        ("delta.compatibility.symlinkFormatManifest.enabled", "false", False),
        ("delta.universalFormat.enabledFormats", "hudi", True),
        ("delta.coordinatedCommits.commitCoordinator-preview", "dynamodb", True),
        ("delta.enableIcebergCompatV2", "true", False),  # without its feature
    ],
)
def test_a_property_that_asks_what_we_lack_refuses_writing_by_name(name: str, text: str, refused: bool) -> None:
    protocol, metadata = Protocol(1, 2), replace(PLAIN, configuration={name: text})
    features.check_read(protocol, "t")
    if not refused:
        features.check_write(protocol, metadata, "t")
        return
    with pytest.raises(UnsupportedTableError, match=name) as caught:
        features.check_write(protocol, metadata, "t")
    assert caught.value.code == "UNSUPPORTED_WRITER_FEATURE"


@pytest.mark.parametrize(
    "protocol", [Protocol(4, 7), Protocol(99, 2), Protocol(1, 8)], ids=lambda p: f"{p.reader}-{p.writer}"
)
def test_newer_versions_are_refused(protocol: Protocol) -> None:
    with pytest.raises(UnsupportedTableError, match="version"):
        features.check_write(protocol, PLAIN, "t")


@pytest.mark.parametrize("name", ["variantType", "variantShredding", "collations"])
def test_a_preview_name_is_the_feature(name: str) -> None:
    protocol = with_features(name + "-preview")
    features.check_write(protocol, PLAIN, "t")
    assert features.names(protocol) == {name}
    assert features.supports(protocol, name)


def test_legacy_versions_imply_their_features() -> None:
    assert features.names(Protocol(1, 1)) == set()
    assert features.names(Protocol(1, 2)) == {"appendOnly", "invariants"}
    assert features.names(Protocol(2, 5)) == {
        "appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "columnMapping",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "protocol"),
    [
        ([], Protocol(1, 2)),
        (["appendOnly"], Protocol(1, 2)),
        (["invariants", "appendOnly"], Protocol(1, 2)),
        (["timestampNtz"], with_features("timestampNtz")),
        (["inCommitTimestamp"], Protocol(1, 7, frozenset(), frozenset({"inCommitTimestamp"}))),
        (["variantShredding-preview"], with_features("variantShredding", "variantType")),
        (
            ["variantType", "appendOnly"],
            Protocol(3, 7, frozenset({"variantType"}), frozenset({"variantType", "appendOnly"})),
        ),
    ],
    ids=lambda p: "protocol" if isinstance(p, Protocol) else str(p),
)
def test_the_smallest_protocol(wanted: list[str], protocol: Protocol) -> None:
    assert features.minimal_protocol(wanted) == protocol


def test_an_unknown_feature_cannot_be_asked_for() -> None:
    with pytest.raises(UnsupportedTableError, match="nonsense"):
        features.minimal_protocol(["nonsense"])


LEGACY = [Protocol(1, 1), Protocol(1, 2), Protocol(1, 4), Protocol(2, 5), Protocol(2, 6)]
NAMED = [with_features("variantType-preview"), with_features("deletionVectors"), with_features("x", reader=False)]
WANTED = [[], ["appendOnly"], ["variantShredding"], ["timestampNtz"], ["inCommitTimestamp"], ["variantType"]]


@pytest.mark.parametrize(("before", "wanted"), list(itertools.product(LEGACY + NAMED, WANTED)), ids=str)
def test_an_upgrade_adds_what_is_wanted_and_loses_nothing(before: Protocol, wanted: list[str]) -> None:
    after = features.upgraded(before, wanted)
    assert features.names(after) >= features.names(before) | set(wanted)
    assert after.reader >= before.reader
    assert after.writer >= before.writer
    assert after.reader_features >= before.reader_features
    assert after.writer_features >= before.writer_features
    assert after.reader_features <= after.writer_features | before.reader_features
    if set(wanted) <= features.names(before):
        assert after is before
    if after.reader == 3:
        # "minReaderVersion 3 needs minWriterVersion 7", and readers must find all of theirs listed.
        assert after.writer == 7
        assert {
            n for n in features.names(after) if n in properties.FEATURES and properties.FEATURES[n].for_readers
        } == {
            properties.feature_of(n).name
            for n in after.reader_features
            if properties.feature_of(n)  # type: ignore[union-attr]
        }
    assert features.upgraded(after, wanted) is after


def test_a_preview_in_the_protocol_is_not_listed_twice() -> None:
    before = with_features("variantType-preview", "variantShredding-preview")
    assert features.upgraded(before, ["variantShredding"]) is before


def test_shredding_brings_variant_type_to_both_lists() -> None:
    after = features.upgraded(Protocol(1, 2), ["variantShredding"])
    assert (after.reader, after.writer) == (3, 7)
    assert after.reader_features == {"variantShredding", "variantType"}
    assert after.writer_features == {"variantShredding", "variantType", "appendOnly", "invariants"}
