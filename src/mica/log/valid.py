"""Whether a table's protocol and metadata are such as the Delta protocol allows to be written to.

The rule: rows that can be read without doubt are read, but nothing is added to a table whose log breaks the protocol:
other engines refuse such tables, and each version more is harder to restore.

Source: Delta protocol, "Protocol Evolution", "Change Metadata", "Column Mapping". delta-spark 4.4.0 refuses to read
what lacks a list of features or has a version below 1.
"""

from __future__ import annotations

from collections.abc import Iterator

from mica.errors import CorruptDataError
from mica.log.actions import BY_NAME_READER, BY_NAME_WRITER, Metadata, Protocol
from mica.log.column_mapping import id_twice, mode_of
from mica.properties import feature_of


def check(protocol: Protocol, metadata: Metadata, table: str) -> None:
    """Raises `CorruptDataError`, CORRUPT_LOG, with the first rule that the log breaks."""
    for why, hint in (*_of_protocol(protocol), *_of_metadata(protocol, metadata)):
        raise CorruptDataError("CORRUPT_LOG", f"{table} can be read but not written: {why}", hint=hint)


def _of_protocol(protocol: Protocol) -> Iterator[tuple[str, str]]:
    hint = "Restore the table's protocol action with the engine that wrote it, or copy the rows into a new table."
    for side, version in (("Reader", protocol.reader), ("Writer", protocol.writer)):
        if version < 1:
            yield f"its protocol has min{side}Version {version}, and the first version is 1", hint
    if protocol.reader >= BY_NAME_READER and protocol.writer < BY_NAME_WRITER:
        yield f"its protocol has minReaderVersion {protocol.reader} with minWriterVersion {protocol.writer}", hint
    for name in protocol.unlisted:
        yield f"its protocol lists features by name, and has no {name}", hint
    if protocol.reader >= BY_NAME_READER:
        lacking = sorted(_final(protocol.reader_features) - _final(protocol.writer_features))
        if lacking:
            yield f"its protocol has {', '.join(lacking)} in readerFeatures but not in writerFeatures", hint


def _of_metadata(protocol: Protocol, metadata: Metadata) -> Iterator[tuple[str, str]]:
    hint = "Restore the table's metadata, or copy the rows into a new table."
    provider = metadata.format.get("provider")
    if provider is not None and str(provider).lower() != "parquet":
        yield f"its format.provider is {provider!r}, and Delta tables are of 'parquet'", hint
    columns = [name.lower() for name in metadata.partition_columns]
    if len(set(columns)) < len(columns):
        yield f"it is partitioned by a column twice, {list(metadata.partition_columns)}", hint
    if (twice := id_twice(metadata.schema_string, mode_of(protocol, metadata))) is not None:
        yield f"the columns {twice[0]!r} and {twice[1]!r} have one delta.columnMapping.id", hint


def _final(names: frozenset[str]) -> frozenset[str]:
    return frozenset(name if (known := feature_of(name)) is None else known.name for name in names)
