"""What may be set: mistakes are refused by name, and features come with the properties that ask for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mica import properties
from mica.errors import UnsupportedTableError, UserError
from mica.log import features
from mica.log.configuration import checked, needed_features
from mica.table import Table


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("delta.appendOnly", "yes"),
        ("delta.checkpointInterval", "0"),
        ("delta.checkpointInterval", "1.5"),
        ("delta.enableVariantShredding", "TRUE"),
        ("delta.targetFileSize", "0"),
        ("delta.targetFileSize", "big"),
        ("mica.variantStats.maxPaths", "-1"),
        ("mica.unknown", "1"),
        ("delta.logRetentionDuration", "5 fortnights"),
        # The end of each is an interval, and another one.
        ("delta.logRetentionDuration", "interval -7 days"),
        ("delta.deletedFileRetentionDuration", "interval 1.5 days"),
        ("delta.deletedFileRetentionDuration", "interval 1 month 2 days"),
    ],
)
def test_a_mistake_is_refused_by_name(name: str, text: str) -> None:
    with pytest.raises(UserError, match=name.replace(".", r"\.")) as caught:
        checked({name: text})
    assert caught.value.code == ("UNKNOWN_TABLE_PROPERTY" if name == "mica.unknown" else "INVALID_PROPERTY")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("delta.appendonyl", "Is delta.appendOnly meant?"), ("mica.appendOnly", "Is delta.appendOnly meant?"),
        ("delta.enableChangeData", "Is delta.enableChangeDataFeed meant?"), ("mica.shred", "Is mica.shredding meant?"),
        ("delta.feature.deletionVector", "Is delta.feature.deletionVectors meant?"),
        # Alike by what all have in common alone.
        ("delta.name", "There are: delta.appendOnly, "), ("mica.stats", "There are: mica.bloomFilter.paths, "),
        ("delta.feature.nope", "There are: delta.feature.allowColumnDefaults, "),
    ],
)  # fmt: skip
def test_only_a_name_that_is_alike_is_suggested(name: str, hint: str) -> None:
    with pytest.raises(UserError) as caught:
        checked({name: "supported"})
    assert str(caught.value.hint).startswith(hint)


def test_properties_of_nobody_are_taken_as_they_are() -> None:
    given = {"owner": "me", "delta.unheardOf": None, "com.example.x": ""}
    assert checked(given) == given


def test_values_are_spelled_as_every_engine_reads_them() -> None:
    given = {
        "delta.checkpointInterval": " 3 ", "delta.checkpointPolicy": "V2", "delta.isolationLevel": " serializable",
        "delta.columnMapping.mode": "NAME", "delta.appendOnly": "TRUE ", "mica.shredding": "a: skip, *: infer",
        "delta.dataSkippingStatsColumns": "id, `b c`",
    }  # fmt: skip
    assert list(checked(given).values()) == [
        "3", "v2", "Serializable", "name", "TRUE", "a: skip, *: infer", "id, `b c`",
    ]  # fmt: skip


def test_names_match_without_regard_to_case() -> None:
    assert checked({"DELTA.appendonly": "true"}) == {"delta.appendOnly": "true"}
    assert checked({"DELTA.FEATURE.typewidening": "supported"}) == {"delta.feature.typeWidening": "supported"}


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("delta.appendOny", "delta.appendOnly"),
        ("delta.enableRowTrackings", "delta.enableRowTracking"),
        ("delta.logRetention", "delta.logRetentionDuration"),
        ("mica.bloomFilter.path", "mica.bloomFilter.paths"),
        ("delta.feature.varianttyp", "delta.feature.variantType"),
        ("delta.fromTheFuture", "There are: delta.appendOnly"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(UserError) as caught:
        checked({name: "true"})
    assert caught.value.code == "UNKNOWN_TABLE_PROPERTY"
    assert nearest in str(caught.value.hint)


def asking() -> list[tuple[str, str]]:
    """Each property that asks for something, with a text that does."""
    texts = {True: "true", None: "5"}
    rows = [row for row in properties.PROPERTIES.values() if row.feature is not None or row.refused is not None]
    values = [row.asks[0] if row.asks else None for row in rows]
    found = [value[0] if isinstance(value, tuple) else texts.get(value, value) for value in values]
    return [(row.name, str(text)) for row, text in zip(rows, found, strict=True)]


@pytest.mark.parametrize(("known", "text"), asking())
def test_a_property_that_asks_for_a_feature_brings_it_or_is_refused(tmp_path: Path, known: str, text: str) -> None:
    row = properties.PROPERTIES[known]
    Table.create(tmp_path / "t", "n INT")
    for call in (
        lambda: Table.create(tmp_path / "new", "n INT", properties={known: text}),
        lambda: Table.open(tmp_path / "t").set_properties({known: text}),
    ):
        if row.refused is not None:
            with pytest.raises(UnsupportedTableError) as caught:
                call()
            assert caught.value.code == "UNSUPPORTED_WRITER_FEATURE"
            continue
        table = call()
        assert features.supports(table.snapshot.protocol, str(row.feature))
        assert table.properties[known] == text
    assert (tmp_path / "new").exists() == (row.refused is None)
    assert Table.open(tmp_path / "t").version == (row.refused is None)


def test_properties_bring_the_features_they_need() -> None:
    needed = needed_features(
        {
            "delta.appendOnly": "true",
            "delta.enableInCommitTimestamps": "true",
            "delta.enableDeletionVectors": "false",
            "delta.feature.timestampNtz": "supported",
            "delta.checkpointPolicy": "v2",
        }
    )
    assert needed == {"appendOnly", "inCommitTimestamp", "timestampNtz", "v2Checkpoint"}


def test_versions_of_the_protocol_may_stand_beside_what_needs_them(tmp_path: Path) -> None:
    # Delta's documentation sets them so; readers refuse metadata that has them.
    given = {
        "delta.minReaderVersion": "2", "delta.minWriterVersion": "5", "delta.columnMapping.mode": "name",
    }  # fmt: skip
    table = Table.create(tmp_path / "t", "a INT").set_properties(given)
    assert features.supports(table.snapshot.protocol, "columnMapping")
    assert not [name for name in table.snapshot.properties if name.startswith("delta.min")]
    assert not [name for name in Table.create(tmp_path / "u", "a INT", properties=given).snapshot.properties
                if name.startswith("delta.min")]  # fmt: skip
    with pytest.raises(UserError, match="minReaderVersion"):
        checked({"delta.minReaderVersion": "4"})
