"""What protocol and properties a table gets."""

from __future__ import annotations

import pytest

from mica.errors import MicaError, UnsupportedTableError, UserError
from mica.log.actions import Metadata, Protocol
from mica.log.creation import altered, new_table, shreds
from mica.schema.ddl import parse_ddl
from mica.schema.json import dumps

SHREDDING = "delta.enableVariantShredding"
BOTH = frozenset({"variantType", "variantShredding"})


def make(ddl: str, *partition_by: str, **properties: str) -> tuple[Protocol, Metadata]:
    return new_table(
        parse_ddl(ddl), partition_by, {k.replace("__", "."): v for k, v in properties.items()}, created_time=1
    )


@pytest.mark.parametrize("ddl", ["v VARIANT", "s STRUCT<v: VARIANT>", "a ARRAY<VARIANT>", "m MAP<STRING, VARIANT>"])
def test_a_variant_column_brings_shredding(ddl: str) -> None:
    protocol, metadata = make(ddl)
    assert protocol == Protocol(3, 7, BOTH, BOTH)
    assert metadata.configuration == {SHREDDING: "true"}
    assert shreds(protocol, metadata)


def test_told_otherwise_a_table_only_has_the_type() -> None:
    protocol, metadata = make("v VARIANT", delta__enableVariantShredding="false")
    assert protocol.writer_features == {"variantType"}
    assert metadata.configuration == {SHREDDING: "false"}
    assert not shreds(protocol, metadata)


@pytest.mark.parametrize(
    ("ddl", "properties", "protocol"),
    [
        ("id BIGINT, s STRING", {}, Protocol(1, 2)),
        ("id BIGINT", {"delta__appendOnly": "true"}, Protocol(1, 2)),
        ("id BIGINT NOT NULL", {}, Protocol(1, 2)),
        ("t TIMESTAMP_NTZ", {}, Protocol(3, 7, frozenset({"timestampNtz"}), frozenset({"timestampNtz"}))),
        ("id BIGINT", {"delta__enableVariantShredding": "true"}, Protocol(3, 7, BOTH, BOTH)),
        (
            "id BIGINT",
            {"delta__enableInCommitTimestamps": "true"},
            Protocol(1, 7, frozenset(), frozenset({"inCommitTimestamp"})),
        ),
    ],
    ids=str,
)
def test_another_table_has_the_smallest_protocol(ddl: str, properties: dict[str, str], protocol: Protocol) -> None:
    assert make(ddl, **properties)[0] == protocol


def test_a_feature_asked_for_by_name_is_supported_and_no_property() -> None:
    protocol, metadata = make("id BIGINT", **{"delta.feature.variantType-preview": "supported"})
    assert protocol.reader_features == {"variantType"}
    assert metadata.configuration == {}


@pytest.mark.parametrize(
    ("ddl", "partition_by", "code"),
    [
        ("v VARIANT, id INT", ("v",), "INVALID_PARTITION_COLUMN"),
        ("s STRUCT<a: INT>, id INT", ("s",), "INVALID_PARTITION_COLUMN"),
        ("id INT", ("id",), "INVALID_PARTITION_COLUMN"),
        ("id INT, x INT", ("nope",), "UNKNOWN_COLUMN"),
    ],
)
def test_a_partition_column_that_cannot_be_is_refused(ddl: str, partition_by: tuple[str, ...], code: str) -> None:
    with pytest.raises(UserError) as caught:
        make(ddl, *partition_by)
    assert caught.value.code == code


def test_partition_columns_take_the_tables_spelling() -> None:
    assert make("Day STRING, id INT", "day")[1].partition_columns == ("Day",)


@pytest.mark.parametrize(
    "properties",
    [{"delta__columnMapping__mode": "name"}, {"delta.feature.rowTracking": "supported"}],
    ids=lambda p: next(iter(p)),
)
def test_what_we_cannot_write_is_not_made(properties: dict[str, str]) -> None:
    with pytest.raises(UnsupportedTableError):
        make("id INT", **properties)


def test_turning_shredding_on_upgrades_the_protocol_with_it() -> None:
    protocol, metadata = make("id INT")
    after, changed = altered(protocol, metadata, changes={SHREDDING: "true"})
    assert (after.reader, after.writer) == (3, 7)
    assert after.reader_features == BOTH
    assert after.writer_features == BOTH | {"appendOnly", "invariants"}
    assert changed.configuration[SHREDDING] == "true"


def test_a_new_variant_column_does_not_turn_shredding_on() -> None:
    protocol, metadata = make("id INT")
    after, changed = altered(protocol, metadata, schema=parse_ddl("id INT, v VARIANT"))
    assert after.reader_features == {"variantType"}
    assert SHREDDING not in changed.configuration
    assert not shreds(after, changed)
    assert changed.schema_string == dumps(parse_ddl("id INT, v VARIANT"))


@pytest.mark.parametrize("text", ["false", "True", "yes", None])
def test_any_other_value_does_not_shred(text: str | None) -> None:
    protocol, metadata = make("v VARIANT")
    assert not shreds(protocol, metadata.with_configuration({SHREDDING: text}))


def test_without_the_feature_the_property_alone_does_not_shred() -> None:
    metadata = Metadata("1", dumps(parse_ddl("v VARIANT")), configuration={SHREDDING: "true"})
    assert not shreds(Protocol(3, 7, frozenset({"variantType"}), frozenset({"variantType"})), metadata)
    assert shreds(Protocol(3, 7, BOTH, frozenset({"variantType-preview", "variantShredding-preview"})), metadata)


def test_nothing_asked_nothing_changed() -> None:
    protocol, metadata = make("v VARIANT, id INT NOT NULL")
    assert altered(protocol, metadata) == (protocol, metadata)


def test_a_bad_property_is_refused() -> None:
    with pytest.raises(MicaError):
        make("id INT", delta__checkpointInterval="x")


def test_constraints_that_nobody_would_check_are_refused() -> None:
    with pytest.raises(UnsupportedTableError):
        make("a INT", delta__constraints__c="a > 1")
    with pytest.raises(UnsupportedTableError):
        altered(*make("a INT"), changes={"delta.constraints.c": "a > 1"})
    altered(*make("a INT"), changes={"delta.constraints.c": None})
