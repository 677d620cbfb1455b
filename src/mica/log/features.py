"""Which table features a protocol has, and whether mica reads and writes the table; `mica.properties` lists them.

The rule: a table is read only if all its reader features are known, and written only if all its writer features
are known and none that mica cannot honour is in use (PROTOCOL.md "Table Features"). Preview names are understood; the
final names are written. A legacy protocol (versions below 3 and 7) is the set of features that its versions imply.
"""

from __future__ import annotations

from collections.abc import Iterable

from mica.errors import UnsupportedTableError
from mica.log import valid
from mica.log.actions import Metadata, Protocol
from mica.properties import FEATURES, IN_COMMIT_TIMESTAMPS, Feature, feature_of, refused_of

_NEWEST_READER, _NEWEST_WRITER = 3, 7


def names(protocol: Protocol) -> frozenset[str]:
    """Returns the final names of all features that a protocol supports; unknown names as they are."""
    found = {
        feature.name
        for feature in FEATURES.values()
        if (feature.writer and protocol.writer < _NEWEST_WRITER and protocol.writer >= feature.writer)
        or (feature.reader and protocol.reader < _NEWEST_READER and protocol.reader >= feature.reader)
    }
    for name in protocol.reader_features | protocol.writer_features:
        known = feature_of(name)
        found.add(name if known is None else known.name)
    return frozenset(found)


def supports(protocol: Protocol, name: str) -> bool:
    """Whether a protocol has a feature, by name or by version."""
    return name in names(protocol)


def in_commit_timestamps(metadata: Metadata) -> bool:
    """Whether commits carry their own timestamps (PROTOCOL.md "In-Commit Timestamps")."""
    return IN_COMMIT_TIMESTAMPS.of(metadata.configuration)


def check_read(protocol: Protocol, table: str) -> None:
    """Raises `UnsupportedTableError` with the reader features or version that mica does not support."""
    if protocol.reader > _NEWEST_READER:
        raise _too_new(table, "reader", protocol.reader, _NEWEST_READER)
    listed = protocol.reader_features if protocol.reader >= _NEWEST_READER else frozenset[str]()
    unknown = sorted(name for name in listed if feature_of(name) is None)
    if unknown:
        raise _unknown(table, "read", unknown)


def check_write(protocol: Protocol, metadata: Metadata, table: str) -> None:
    """Raises `UnsupportedTableError` with the writer features, property or version that mica does not support,
    `CorruptDataError` as `valid.check`."""
    check_read(protocol, table)
    if protocol.writer > _NEWEST_WRITER:
        raise _too_new(table, "writer", protocol.writer, _NEWEST_WRITER)
    valid.check(protocol, metadata, table)
    # A protocol with table features lists all it needs; a legacy version may imply features that the table never uses.
    supported = names(protocol)
    unknown = sorted(name for name in supported if feature_of(name) is None)
    if unknown:
        raise _unknown(table, "write", unknown)
    for name in sorted(supported):
        feature = FEATURES[name]
        if feature.blocks_writes(metadata.configuration):
            raise UnsupportedTableError(
                "UNSUPPORTED_WRITER_FEATURE",
                f"{table} uses the table feature {name} ({feature.why}), which mica cannot write",
                hint="Write to it with an engine that supports the feature.",
                feature=name,
            )
    if (asked := refused_of(metadata.configuration)) is not None:
        raise UnsupportedTableError(
            "UNSUPPORTED_WRITER_FEATURE",
            f"{table} has {asked.name}={metadata.configuration[asked.name]}: {asked.refused}",
            hint="Write to it with an engine that does, or unset the property there.",
        )


def _too_new(table: str, side: str, found: int, known: int) -> UnsupportedTableError:
    return UnsupportedTableError(
        "UNSUPPORTED_READER_VERSION" if side == "reader" else "UNSUPPORTED_WRITER_VERSION",
        f"{table} needs {side} version {found} of the Delta protocol, mica supports versions up to {known}",
        hint="Use a newer version of mica, or another engine.",
    )


def _unknown(table: str, verb: str, found: list[str]) -> UnsupportedTableError:
    listed = ", ".join(found)
    noun = "features" if len(found) > 1 else "feature"
    return UnsupportedTableError(
        "UNSUPPORTED_READER_FEATURE" if verb == "read" else "UNSUPPORTED_WRITER_FEATURE",
        f"mica cannot {verb} {table}: it does not support the table {noun} {listed}",
        hint="Use a newer version of mica, or another engine.",
        feature=listed,
    )


def minimal_protocol(wanted: Iterable[str]) -> Protocol:
    """Returns the smallest protocol with the features and their dependencies: legacy versions if these imply only
    harmless features more (`appendOnly` and `invariants` come with writer 2, our minimum), else 3 and 7 by name."""
    needed: dict[str, Feature] = {}
    todo = list(wanted)
    while todo:
        name = todo.pop()
        feature = feature_of(name)
        if feature is None:
            raise _unknown("the new table", "write", [name])
        if feature.name not in needed:
            needed[feature.name] = feature
            todo += feature.needs
    legacy = {"appendOnly", "invariants"}
    if set(needed) <= legacy:
        return Protocol(1, 2)
    for_readers = frozenset(name for name, feature in needed.items() if feature.for_readers)
    return Protocol(3 if for_readers else 1, 7, for_readers, frozenset(needed))


def upgraded(protocol: Protocol, wanted: Iterable[str]) -> Protocol:
    """Returns the protocol with more features: the same object if it has them all, under final or preview names.
    A legacy protocol that must grow lists what its versions implied (PROTOCOL.md "Table Features for new and
    Existing Tables")."""
    missing = minimal_protocol(wanted)
    have = names(protocol)
    new_names = names(missing) if missing.writer >= _NEWEST_WRITER else frozenset(wanted)
    if new_names <= have:
        return protocol
    if missing.writer < _NEWEST_WRITER and protocol.writer < _NEWEST_WRITER:
        return Protocol(max(protocol.reader, missing.reader), max(protocol.writer, missing.writer))
    more = {name for name in new_names if name not in have}
    writer = (protocol.writer_features if protocol.writer >= _NEWEST_WRITER else have) | more
    readers = {name for name in more if FEATURES[name].for_readers}
    if protocol.reader >= _NEWEST_READER:
        return Protocol(protocol.reader, _NEWEST_WRITER, protocol.reader_features | readers, frozenset(writer))
    implied = {name for name in have if (known := feature_of(name)) is not None and known.for_readers and known.reader}
    if not readers:
        return Protocol(protocol.reader, _NEWEST_WRITER, frozenset(), frozenset(writer))
    return Protocol(_NEWEST_READER, _NEWEST_WRITER, frozenset(readers | implied), frozenset(writer))
