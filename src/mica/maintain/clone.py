"""Shallow clones: a table at another place, with the files of a version of this one.

The rule: no data file is read or copied. The clone names the files and deletion vectors of its source by absolute
paths, those of a clone by the paths of the first source. It has the source's schema, features, properties, clustering
and collations; an id, ids of rows and a history of its own; applications (`txn`) start anew. An untrusted log stays
one: what the source may not name, its clone does not name either. Neither folder is inside the other, since the vacuum
of the outer one would delete files of the inner.

Source: PROTOCOL.md, "Add File and Remove File", "Deletion Vectors"; operation, metrics and what is kept as in
delta-spark's SHALLOW CLONE (4.4.0).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica import properties
from mica.arrays import arrow_array, one_array, to_numpy
from mica.errors import StorageError, UserError
from mica.log import added, creation, features
from mica.log.actions import Metadata
from mica.log.deletion_vectors import file_of
from mica.log.domains import OF_CONTENT
from mica.log.paths import ABSOLUTE, as_uri, decode_path, encode_path
from mica.log.replay import DELETION_VECTOR
from mica.log.snapshot import Snapshot
from mica.log.transaction import Transaction
from mica.properties import NAMES_OF_WRITERS
from mica.storage import Storage, split_scheme
from mica.write.target import load_if_any

#: Properties of the log itself: a table that becomes a clone keeps its own.
_OF_LOG = (
    properties.ICT_VERSION.name, properties.ICT_TIMESTAMP.name, properties.IN_COMMIT_TIMESTAMPS.name,
    properties.CHECKPOINT_PROTECTION.name,
)  # fmt: skip
#: Names for which a log needs more than its table's folder before them.
_ODD = rf"{ABSOLUTE}|(^|/)\.\.(/|$)"


def clone(
    source: Snapshot, target: Storage, given: Mapping[str, str] | None = None, *, replaces: bool = False
) -> Snapshot:
    """Commits a shallow clone of the source at `target`; see `Table.clone`."""
    features.check_write(source.protocol, source.metadata, str(source.storage))
    _refuse_nested(source.storage, target)
    found = load_if_any(target)
    if found is not None and not replaces:
        hint = "Choose another place; a table without rows is replaced with replace=True, in SQL by CREATE OR REPLACE."
        raise UserError("TABLE_EXISTS", f"a table already exists at {target}", hint=hint)
    if found is not None and found.files.num_rows:
        raise UserError(
            "TABLE_EXISTS",
            f"the table at {target} has rows, and a clone replaces a table without rows only (as in delta-spark)",
            hint="Delete its rows first (TRUNCATE TABLE): its older versions stay readable.",
        )
    base = _metadata(source, found)
    protocol, metadata = creation.altered(source.protocol, base, changes=given)
    if found is not None:
        protocol = features.upgraded(found.protocol, features.names(protocol))
    files = _Named(source, target).files()
    size = int(pc.sum(source.files.column("size")).as_py() or 0)
    transaction = Transaction(
        target if found is None else found, "CLONE",
        {"source": f"delta.`{_shown(source.storage)}`", "sourceVersion": source.version},
        metrics={
            "sourceTableSize": size, "sourceNumOfFiles": files.num_rows, "numRemovedFiles": 0, "removedFilesSize": 0,
            "numCopiedFiles": 0, "copiedFilesSize": 0,
        },
    )  # fmt: skip
    transaction.read()  # rows that somebody adds meanwhile would be among those of the source
    transaction.update_protocol(protocol)
    transaction.update_metadata(metadata)
    before = {} if found is None else found.domains
    for domain in OF_CONTENT:
        transaction.watch(domain)
        if before.get(domain) != source.domains.get(domain):
            transaction.set_domain(domain, source.domains.get(domain))
    transaction.add_files(files)
    return transaction.commit().snapshot


def _metadata(source: Snapshot, found: Snapshot | None) -> Metadata:
    """The source's metadata as that of another table. Its columns of row ids are not the clone's, whose rows get other
    ids: two tables would give the same."""
    configuration = {n: v for n, v in source.properties.items() if n not in NAMES_OF_WRITERS or _is_max_id(n)}
    if found is None:
        fresh = Metadata.new("", created_time=0).id
        own = replace(source.metadata, id=fresh, name=None, description=None)
    else:
        configuration |= {n: found.properties[n] for n in _OF_LOG if n in found.properties}
        last = max(properties.MAX_COLUMN_ID.of(version.properties) for version in (source, found))
        if last:
            configuration[properties.MAX_COLUMN_ID.name] = str(last)
        theirs = found.metadata
        own = replace(source.metadata, id=theirs.id, name=theirs.name, description=theirs.description)
    return replace(own, configuration=configuration)


def _is_max_id(name: str) -> bool:
    return name == properties.MAX_COLUMN_ID.name


class _Named:
    """The files of a version by names that another table's log may have."""

    def __init__(self, source: Snapshot, target: Storage) -> None:
        self.source, self.target = source, target
        self.root = as_uri(source.storage.path("_")[:-1])

    def files(self) -> pa.Table:
        """All files of the source, as `added.ADDED`, without ids of rows. Errors: EXTERNAL_PATH, INVALID_NAME."""
        files = added.again(self.source, np.arange(self.source.files.num_rows))
        self._refuse_unreachable(decode_path(self.root) + "_")
        nothing = pa.nulls(files.num_rows, pa.int64())
        found = {name: files.column(name) for name in added.ADDED.names}
        found |= {"path": self._paths(one_array(files.column("path")))}
        found |= {"deletion_vector": self._vectors(one_array(files.column("deletion_vector")))}
        found |= {"base_row_id": nothing, "default_row_commit_version": nothing}
        return pa.table(list(found.values()), schema=added.ADDED)

    def _paths(self, paths: pa.Array) -> pa.Array:
        odd = pc.match_substring_regex(paths, _ODD)
        named = pc.binary_join_element_wise(self.root, paths, "")
        if not pc.any(odd).as_py():
            return named
        others = [self._absolute(path) for path in paths.filter(odd).to_pylist()]
        return pc.replace_with_mask(named, odd, arrow_array(others, named.type))

    def _absolute(self, uri: str) -> str:
        """A name of the source's log that needs more than its folder before it; one with a scheme stays as it is."""
        storage, rel = self.source.locate(decode_path(uri))
        place = storage.path(rel)
        self._refuse_unreachable(place)
        return uri if split_scheme(uri)[0] is not None else as_uri(place)

    def _vectors(self, vectors: pa.Array) -> pa.Array:
        if vectors.null_count == len(vectors):
            return vectors
        valid = vectors.is_valid()
        found = [self._vector(vector) for vector in vectors.filter(valid).to_pylist()]
        places = arrow_array(np.cumsum(to_numpy(valid)) - 1, pa.int64())
        return arrow_array(found, DELETION_VECTOR).take(pc.if_else(valid, places, None))

    def _vector(self, vector: Mapping[str, Any]) -> dict[str, Any]:
        if vector["storageType"] == "u":
            name = file_of(self.source.storage, vector)
            assert name is not None
            return {**vector, "storageType": "p", "pathOrInlineDv": self.root + encode_path(name)}
        if vector["storageType"] == "p":
            return {**vector, "pathOrInlineDv": self._absolute(str(vector["pathOrInlineDv"]))}
        return dict(vector)  # inline

    def _refuse_unreachable(self, place: str) -> None:
        """Refuses a clone that nobody could read with the options that it is made with."""
        try:
            self.target.at_of_log(place)
        except StorageError as e:
            if e.code != "EXTERNAL_PATH":
                raise
            raise StorageError(
                e.code,
                f"a shallow clone at {self.target} names files of its source, and {place} is outside of what its log "
                "may name with these storage_options",
                hint="If that is intended, allow it to who makes and who reads the clone: "
                "storage_options={'allow_external_paths': 'true'}.",
                path=place,
            ) from None


def _shown(storage: Storage) -> str:
    """The place as Hadoop spells it, without escapes."""
    return str(storage) if storage.local_path is None else f"file:{storage.local_path}"


def _refuse_nested(source: Storage, target: Storage) -> None:
    one, other = (_real(storage) for storage in (source, target))
    if one.startswith(other) or other.startswith(one):
        what = "the same folder" if one == other else "folders of which one is inside the other"
        raise UserError(
            "INVALID_ARGUMENT",
            f"a clone and its source cannot be in {what}: {source}, {target}",
            hint="Choose another folder: a vacuum of one table would delete files of the other. "
            "An older version of a table itself comes back by a restore.",
        )


def _real(storage: Storage) -> str:
    path = storage.uri.rstrip("/") if storage.local_path is None else os.path.realpath(storage.local_path).rstrip("/")
    return path.replace("s3a://", "s3://", 1).replace("s3n://", "s3://", 1) + "/"
