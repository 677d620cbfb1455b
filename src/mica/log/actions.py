"""The actions of the log as values, and their JSON lines.

The rule: only the few actions per table (protocol, metaData, domains, transactions) become Python objects; files stay
in Arrow. Unknown keys of an action are kept and written back (PROTOCOL.md "Actions").
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import Any

import orjson

from mica.errors import CorruptDataError
from mica.records import dataclass

#: The versions from which on features are listed by name (PROTOCOL.md "Table Features").
BY_NAME_READER, BY_NAME_WRITER = 3, 7

EMPTY_SCHEMA = '{"type":"struct","fields":[]}'


@dataclass(frozen=True)
class Protocol:
    """Versions and table features; the feature sets are empty unless the versions carry them. `unlisted`
    names the sets that the versions carry and the action lacks."""

    reader: int
    writer: int
    reader_features: frozenset[str] = frozenset()
    writer_features: frozenset[str] = frozenset()
    unlisted: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def parse(cls, action: Mapping[str, Any]) -> Protocol:
        """Parses the content of a `protocol` action."""
        reader, writer = action.get("minReaderVersion"), action.get("minWriterVersion")
        if not isinstance(reader, int) or not isinstance(writer, int):
            raise _corrupt("protocol", f"it names the versions {reader!r} and {writer!r}")
        of_reader = _names(action.get("readerFeatures"), "protocol.readerFeatures")
        of_writer = _names(action.get("writerFeatures"), "protocol.writerFeatures")
        carried = (("readerFeatures", reader >= BY_NAME_READER), ("writerFeatures", writer >= BY_NAME_WRITER))
        unlisted = tuple(name for name, wanted in carried if wanted and action.get(name) is None)
        return cls(reader, writer, frozenset(of_reader), frozenset(of_writer), unlisted)

    def action(self) -> dict[str, Any]:
        """Returns the content of its `protocol` action."""
        out: dict[str, Any] = {"minReaderVersion": self.reader, "minWriterVersion": self.writer}
        if self.reader >= BY_NAME_READER:
            out["readerFeatures"] = sorted(self.reader_features)
        if self.writer >= BY_NAME_WRITER:
            out["writerFeatures"] = sorted(self.writer_features)
        return out


@dataclass(frozen=True)
class Metadata:
    """The `metaData` action. `rest` holds unknown keys."""

    id: str
    schema_string: str
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    description: str | None = None
    created_time: int | None = None
    format: Mapping[str, Any] = field(default_factory=lambda: {"provider": "parquet", "options": {}})
    rest: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def new(
        cls,
        schema_string: str,
        partition_columns: Iterable[str] = (),
        configuration: Mapping[str, str] | None = None,
        *,
        created_time: int,
    ) -> Metadata:
        """Makes the metadata of a new table."""
        columns = tuple(partition_columns)
        return cls(str(uuid.uuid4()), schema_string, columns, dict(configuration or {}), created_time=created_time)

    @classmethod
    def parse(cls, action: Mapping[str, Any]) -> Metadata:
        """Parses the content of a `metaData` action."""
        known = dict(action)
        identity = known.pop("id", None)
        schema = known.pop("schemaString", None)
        columns = _names(known.pop("partitionColumns", None), "metaData.partitionColumns")
        configuration = known.pop("configuration", None) or {}
        form = known.pop("format", None) or {"provider": "parquet", "options": {}}
        if not isinstance(configuration, Mapping) or not isinstance(form, Mapping):
            raise _corrupt("metaData", "its configuration or format is not an object")
        if schema is not None and not isinstance(schema, str):
            raise _corrupt("metaData", "its schemaString is not a string")
        return cls(
            id=str(identity or ""),
            schema_string=schema or EMPTY_SCHEMA,
            partition_columns=tuple(columns),
            configuration={str(key): as_text(value) for key, value in configuration.items() if value is not None},
            name=known.pop("name", None),
            description=known.pop("description", None),
            created_time=known.pop("createdTime", None),
            format=form,
            rest=known,
        )

    def action(self) -> dict[str, Any]:
        """Returns the content of its `metaData` action."""
        out: dict[str, Any] = {"id": self.id}
        out |= {k: v for k, v in (("name", self.name), ("description", self.description)) if v is not None}
        out["format"] = dict(self.format)
        out["schemaString"] = self.schema_string
        out["partitionColumns"] = list(self.partition_columns)
        out["configuration"] = dict(self.configuration)
        if self.created_time is not None:
            out["createdTime"] = self.created_time
        return {**out, **self.rest}

    def with_configuration(self, changes: Mapping[str, str | None]) -> Metadata:
        """Returns a copy with other properties; None removes one."""
        merged: dict[str, str | None] = {**self.configuration, **changes}
        return replace(self, configuration={key: value for key, value in merged.items() if value is not None})


def parse_line(line: bytes | memoryview | str) -> dict[str, Any]:
    """Parses one log line to a dictionary with one action."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise CorruptDataError(
            "CORRUPT_LOG", f"a line of the log is not JSON: {error}", hint="Restore the file, or an older version."
        ) from None
    if not isinstance(value, dict):
        raise CorruptDataError("CORRUPT_LOG", "a line of the log is not a JSON object", hint="Restore the file.")
    return value


def whole(value: Any) -> int | None:
    """Returns a whole number of 64 bits; None for any other value."""
    return value if isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63 else None


def format_line(kind: str, action: Mapping[str, Any]) -> str:
    """Formats an action as its line, without a line break."""
    return orjson.dumps({kind: action}).decode()


def _names(value: Any, what: str) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise _corrupt(what, "it is not a list of names")
    return value


def as_text(value: Any) -> str:
    """Returns a string as it is, any other value as JSON: delta-spark keeps operation parameters so."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _corrupt(what: str, why: str) -> CorruptDataError:
    return CorruptDataError("CORRUPT_LOG", f"{what} in the log cannot be used: {why}", hint="Restore the log.")
