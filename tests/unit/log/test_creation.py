"""What protocol and properties a table gets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from mica.errors import MicaError, UnsupportedTableError, UserError
from mica.log.actions import Metadata, Protocol
from mica.log.column_mapping import effective
from mica.log.creation import altered, new_table, shreds
from mica.schema.ddl import parse_ddl
from mica.schema.json import dumps, loads
from mica.schema.types import STRING, ArrayType, DataType, MapType, StructField, StructType

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


@pytest.mark.parametrize("wrap", [lambda s: s, ArrayType, lambda s: MapType(STRING, s)])
def test_two_fields_of_one_name_are_refused_at_any_depth(wrap: Callable[[DataType], DataType]) -> None:
    twice = StructType((StructField("a", STRING), StructField("A", STRING)))
    schema = StructType((StructField("s", wrap(twice)),))
    with pytest.raises(UserError, match="DUPLICATE_COLUMN"):
        new_table(schema, [], {}, created_time=1)


@pytest.mark.parametrize("ddl", ["a INT, b STRUCT<>", "b ARRAY<STRUCT<>>", "b STRUCT<c: MAP<STRING, STRUCT<>>>"])
def test_a_struct_without_fields_is_refused_since_no_file_can_hold_it(ddl: str) -> None:
    with pytest.raises(UserError, match=r"UNSUPPORTED_TYPE.*STRUCT without fields"):
        make(ddl)


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
    ids=lambda p: p if isinstance(p, str) else "-".join(p) if isinstance(p, dict) else "protocol",
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


def test_a_path_is_no_partition_column_and_the_hint_says_what_is() -> None:
    with pytest.raises(UserError, match="no column 'v:kind::string'") as refused:
        make("v VARIANT", "v:kind::string")
    assert refused.value.code == "UNKNOWN_COLUMN"
    assert refused.value.hint is not None
    assert "computed from it" in refused.value.hint


def test_partition_columns_take_the_tables_spelling() -> None:
    assert make("Day STRING, id INT", "day")[1].partition_columns == ("Day",)


@pytest.mark.parametrize(
    "properties",
    [{"delta__enableIcebergCompatV1": "true"}, {"delta.enableIcebergCompatV2": "true"}],
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


STATS_COLUMNS = "delta.dataSkippingStatsColumns"
COLUMNS = "a INT, s STRUCT<x: INT, y: STRING>, m MAP<STRING, INT>, l ARRAY<INT>, v VARIANT, p INT, b BOOLEAN, c BINARY"


# The answers are delta-spark 4.4.0's, except for `l.element`, which it takes and then ignores.
@pytest.mark.parametrize("named", ["A", "s.x", "s", "v", "", "`a`", "a, s.y"])
def test_columns_with_statistics_may_be_named(named: str) -> None:
    assert make(COLUMNS, "p", delta__dataSkippingStatsColumns=named)[1].configuration[STATS_COLUMNS] == named


@pytest.mark.parametrize(
    ("named", "code"),
    [
        ("nope", "UNKNOWN_COLUMN"), ("a,nope", "UNKNOWN_COLUMN"), ("s.nope", "UNKNOWN_COLUMN"),
        ("v.x", "UNKNOWN_COLUMN"), ("l.element", "UNKNOWN_COLUMN"), ("m", "INVALID_PROPERTY"),
        ("l", "INVALID_PROPERTY"), ("p", "INVALID_PROPERTY"), ("b", "INVALID_PROPERTY"), ("c", "INVALID_PROPERTY"),
        ("a, A", "INVALID_PROPERTY"), ("s.x,s", "INVALID_PROPERTY"),
    ],
)  # fmt: skip
def test_columns_that_cannot_have_statistics_are_refused(named: str, code: str) -> None:
    protocol, metadata = make(COLUMNS, "p")
    for change in (
        lambda: make(COLUMNS, "p", delta__dataSkippingStatsColumns=named),
        lambda: altered(protocol, metadata, changes={STATS_COLUMNS: named}),
    ):
        with pytest.raises(UserError) as caught:
            change()
        assert caught.value.code == code


@pytest.mark.parametrize("name", ["mica.variantStats.paths", "mica.bloomFilter.paths"])
def test_paths_are_of_variant_columns_that_are_there(name: str) -> None:
    protocol, metadata = make("v VARIANT, s STRUCT<w: VARIANT>, a INT")
    altered(protocol, metadata, changes={name: "v:x.y, S.w:['a b'], v:$"})
    for text in ("a:x", "w:x", "v", "v:"):
        with pytest.raises(UserError):
            altered(protocol, metadata, changes={name: text})


def test_a_new_schema_must_have_what_the_properties_name() -> None:
    protocol, metadata = make("a INT", delta__dataSkippingStatsColumns="a")
    altered(protocol, metadata, changes={"delta.appendOnly": "true"})
    with pytest.raises(UserError, match="'a'"):
        altered(protocol, metadata, schema=parse_ddl("b INT"))
    altered(protocol, metadata, schema=parse_ddl("b INT"), changes={STATS_COLUMNS: None})


@pytest.mark.parametrize("before", ["v VARIANT, id INT", "v VARIANT, id INT NOT NULL"])
def test_a_column_that_becomes_not_null_brings_its_feature(before: str) -> None:
    # Otherwise delta-spark refuses to write the table: DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH.
    protocol, metadata = make(before)
    after, _ = altered(protocol, metadata, schema=parse_ddl("v VARIANT, id INT NOT NULL"))
    assert after.writer_features == BOTH | {"invariants"}


MODE, IN_FILES, NUMBER = "delta.columnMapping.mode", "delta.columnMapping.physicalName", "delta.columnMapping.id"
#: As delta-spark makes it of SELECT null n, 1 a.
WITH_VOID = (
    '{"type": "struct", "fields": [{"name": "n", "type": "void", "nullable": true, "metadata": {}},'
    ' {"name": "a", "type": "integer", "nullable": true, "metadata": {}}]}'
)


def test_a_void_column_stays_in_the_schema_until_the_table_is_replaced() -> None:
    before = Metadata.new(WITH_VOID, [], {}, created_time=1)
    protocol, mapped = altered(Protocol(1, 2), before, changes={MODE: "name"})
    names = {f.name: f.metadata[IN_FILES] for f in loads(mapped.schema_string).fields}
    assert names == {"n": "n", "a": "a"}, "the files have the names of the columns"
    _, added = altered(protocol, mapped, schema=parse_ddl("a INT, b STRUCT<n: INT>"))
    assert loads(added.schema_string).names == ["n", "a", "b"]
    _, typed = altered(protocol, mapped, schema=parse_ddl("a INT, N INT"))
    assert loads(typed.schema_string).names == ["a", "N"]
    kept = effective(loads(added.schema_string), "name")
    renamed = replace(kept, fields=(replace(kept.field("a"), name="z"), kept.field("b")))
    _, moved = altered(protocol, added, schema=renamed)
    assert loads(moved.schema_string).names == ["n", "z", "b"]
    _, other = altered(protocol, mapped, schema=parse_ddl("b INT"), partition_columns=[])
    assert loads(other.schema_string).names == ["b"]


@pytest.mark.parametrize("changes", [{MODE: "name"}, {"delta.feature.columnMapping": "supported"}])
def test_a_mode_without_its_feature_is_none(changes: dict[str, str]) -> None:
    stale = dumps(parse_ddl("a INT")).replace('"metadata":{}', f'"metadata":{{"{IN_FILES}":"old","{NUMBER}":7}}')
    before = Metadata.new(stale, [], {MODE: "name"}, created_time=1)
    protocol, after = altered(Protocol(1, 2), before, changes=changes)
    assert loads(after.schema_string).field("a").metadata == {IN_FILES: "a", NUMBER: 1}
    assert altered(protocol, after, changes=changes) == (protocol, after)


@pytest.mark.parametrize("text", [None, "0"])
def test_what_writers_set_is_theirs(text: str | None) -> None:
    highest = "delta.columnMapping.maxColumnId"
    protocol, metadata = make("a INT", delta__columnMapping__mode="id", delta__columnMapping__maxColumnId="9")
    assert metadata.configuration[highest] == "1", "each table has its own"
    with pytest.raises(UserError, match=r"INVALID_PROPERTY.*set by writers"):
        altered(protocol, metadata, changes={highest: text})
    assert altered(protocol, metadata, changes={highest: "1"}) == (protocol, metadata)
