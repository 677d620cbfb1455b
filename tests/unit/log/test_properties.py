"""Properties: each text is read as its table row says, and mistakes are refused when they are set."""

from __future__ import annotations

import pytest

from mica.errors import UserError
from mica.log import properties
from mica.log.properties import Property


@pytest.mark.parametrize(
    ("known", "text", "value"),
    [
        (properties.APPEND_ONLY, "TRUE", True),
        (properties.APPEND_ONLY, "no", False),
        (properties.CHECKPOINT_INTERVAL, "3", 3),
        (properties.CHECKPOINT_INTERVAL, "0", 10),
        (properties.CHECKPOINT_INTERVAL, "many", 10),
        (properties.SKIPPING_COLUMNS, "-1", -1),
        (properties.SKIPPING_NAMES, "a, b.c, `x,y`.z", ("a", "b.c", "`x,y`.z")),
        (properties.DELETED_FILE_RETENTION, "interval 1 day", 86_400_000),
        (properties.DELETED_FILE_RETENTION, "2 weeks 3 hours", 14 * 86_400_000 + 3 * 3_600_000),
        (properties.DELETED_FILE_RETENTION, "soon", 7 * 86_400_000),
        (properties.TARGET_FILE_SIZE, "128MB", 128 << 20),
        (properties.TARGET_FILE_SIZE, "1g", 1 << 30),
        (properties.TARGET_FILE_SIZE, "1000", 1000),
        (properties.CHECKPOINT_POLICY, "V2", "v2"),
    ],
)
def test_a_text_is_read(known: Property[object], text: str, value: object) -> None:
    assert known.of({known.name: text}) == value
    assert known.of({}) == known.default


@pytest.mark.parametrize(
    ("text", "on"), [("true", True), ("false", False), ("TRUE", False), ("yes", False), ("", False)]
)
def test_only_the_very_word_true_allows_shredding(text: str, on: bool) -> None:
    assert properties.ENABLE_SHREDDING.of({"delta.enableVariantShredding": text}) is on


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
    ],
)
def test_a_mistake_is_refused_by_name(name: str, text: str) -> None:
    with pytest.raises(UserError, match=name.replace(".", r"\.")):
        properties.check({name: text})


def test_unknown_properties_of_others_are_taken() -> None:
    properties.check({"delta.fromTheFuture": "x", "owner": "me", "delta.appendOnly": None})


def test_properties_bring_the_features_they_need() -> None:
    needed = properties.needed_features(
        {
            "delta.appendOnly": "true",
            "delta.enableInCommitTimestamps": "true",
            "delta.enableDeletionVectors": "false",
            "delta.feature.timestampNtz": "supported",
            "delta.checkpointPolicy": "v2",
        }
    )
    assert needed == {"appendOnly", "inCommitTimestamp", "timestampNtz", "v2Checkpoint"}
