"""Collated bounds in checkpoints: as columns and as JSON again."""

import orjson
import pyarrow as pa

from mica.log.collated_struct import collated_field
from mica.log.stats_struct import format_stats, parse_stats, stats_type
from mica.schema.ddl import parse_ddl

SCHEMA = parse_ddl("a STRUCT<b: STRUCT<c: BIGINT>>, d STRUCT<e: STRING COLLATE en_USA>")

#: The example of the RFC, "Per-file Statistics".
RFC = {
    "numRecords": 2,
    "tightBounds": True,
    "minValues": {"a": {"b": {"c": 1}}},
    "maxValues": {"a": {"b": {"c": 9}}},
    "statsWithCollation": {
        "ICU.en_US.72": {"minValues": {"d": {"e": "a"}}, "maxValues": {"d": {"e": "B"}}},
    },
}
OTHER = {"numRecords": 1, "statsWithCollation": {"icu.en_USA.78.3": {"minValues": {"d": {"e": "ß"}}}}}


def test_every_version_comes_back_as_it_was() -> None:
    texts = pa.array([orjson.dumps(RFC).decode(), None, orjson.dumps(OTHER).decode(), '{"numRecords":3}'])
    kind = stats_type(SCHEMA, (), {}, collated_field([texts]))
    collated = kind.field("statsWithCollation").type
    assert [f.name for f in collated] == ["ICU.en_US.72", "icu.en_USA.78.3"]
    found = [None if t is None else orjson.loads(t) for t in format_stats(parse_stats(texts, kind)).to_pylist()]
    assert found == [RFC, None, OTHER, {"numRecords": 3}]


def test_what_is_no_bound_has_no_column() -> None:
    odd = ['{"statsWithCollation":5}', '{"statsWithCollation":{"k":{"minValues":{"d":7},"x":{"y":"z"}}}}', "no json"]
    assert collated_field([pa.array([*odd, None, '"statsWithCollation"'])]) is None
    assert collated_field([pa.array([], pa.string())]) is None
