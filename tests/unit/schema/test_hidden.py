"""Hidden columns: found by name, never listed, and hidden by a column of the table."""

from __future__ import annotations

from mica.schema import ddl
from mica.schema.hidden import METADATA, ROW_ID, Readable, field_named, is_hidden
from mica.schema.types import STRING, StructField, StructType


def test_a_hidden_column_is_found_and_not_listed() -> None:
    schema = StructType((StructField("a", STRING),))
    readable = Readable(schema.fields)
    assert readable.names == ["a"]
    assert readable.find("A") == schema.fields[0]
    assert ddl.type_to_ddl(readable.field("_Metadata").type).endswith("row_id: BIGINT, row_commit_version: BIGINT>")
    assert schema.find(METADATA) is None
    assert is_hidden(schema, ROW_ID)
    assert field_named(readable, "_metadata.ROW_ID") == ROW_ID
    assert [field_named(readable, text) for text in ("a", "_metadata", "_metadata.x", "x.row_id")] == [None] * 4
    assert field_named(schema, "_metadata.row_id") is None


def test_a_column_of_that_name_hides_it() -> None:
    for name in ("_metadata", "_METADATA"):
        own = StructField(name, STRING)
        readable = Readable((own,))
        assert readable.find("_metadata") is own
        assert not is_hidden(readable, ROW_ID)
        assert field_named(readable, "_metadata.row_id") is None
