"""Clustered tables: their columns, and who clustered a file.

The rule: mica orders only files that nobody has clustered, or mica itself, unless it is told to order all. A file keeps
the name of its implementation whenever it is added again. The domain names columns as files do, so renamed columns
stay.

Source: PROTOCOL.md, "Clustered Table", "Add File and Remove File" (`clusteringProvider`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import orjson
import pyarrow as pa

from mica import compute as pc
from mica.arrays import scalar, to_numpy
from mica.errors import CorruptDataError
from mica.log import features
from mica.log.domains import CLUSTERING_DOMAIN
from mica.properties import parse_names
from mica.schema.spelling import as_spark, quote_if_needed
from mica.schema.types import StructType
from mica.stats.columns import physical_name

if TYPE_CHECKING:
    from mica.log.snapshot import Snapshot

#: The name of mica's implementation.
PROVIDER = "mica"


def cluster_by(snapshot: Snapshot) -> list[str]:
    """Returns the clustering columns as SQL (`a`, `s.b`); empty if the table is not clustered."""
    text = snapshot.domains.get(CLUSTERING_DOMAIN)
    if text is None or not features.supports(snapshot.protocol, "clustering"):
        return []
    try:
        found = orjson.loads(text)["clusteringColumns"]
        return [_named(snapshot.schema, names) for names in found]
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        raise CorruptDataError(
            "INVALID_DOMAIN",
            f"{snapshot.storage} is clustered, but the domain {CLUSTERING_DOMAIN} cannot be used: {text}",
            hint="Set the clustering columns again (ALTER TABLE … CLUSTER BY).",
        ) from None


def shown(columns: Iterable[str]) -> list[str]:
    """Clustering columns as delta-spark shows them: without backticks around keywords."""
    return [as_spark(name) for column in columns for name in parse_names(column)]


def _named(schema: StructType, names: Sequence[str]) -> str:
    """The column that files call by these names; ValueError if there is none."""
    shown, here = [], schema
    for name in names:
        field = next((f for f in here.fields if physical_name(f) == name), None)
        if field is None:
            raise ValueError(name)
        shown.append(quote_if_needed(field.name))
        here = field.type if isinstance(field.type, StructType) else StructType(())
    if not shown:
        raise ValueError
    return ".".join(shown)


def may_cluster(snapshot: Snapshot, files: np.ndarray) -> np.ndarray:
    """Which of the files (positions) nobody has clustered, or mica itself."""
    providers = snapshot.clustering_providers(files)
    return to_numpy(pc.fill_null(pc.equal(providers, PROVIDER), True))


def to_cluster(snapshot: Snapshot, most: int, *, full: bool = False) -> np.ndarray:
    """Returns the positions of the files that are to be clustered together: those that nobody has clustered, and, up to
    `most` bytes, those that mica has. Empty if there are no new ones and none with deleted rows. `full`: all files.
    """
    if full:
        return np.arange(snapshot.files.num_rows)
    providers = snapshot.clustering_providers()
    new, ours = providers.is_null(), pc.fill_null(pc.equal(providers, PROVIDER), False)
    sizes = snapshot.files.column("size")
    old = pc.sum(pc.if_else(ours, sizes, scalar(0, pa.int64()))).as_py() or 0
    deleted = pc.and_(ours, snapshot.files.column("deletion_vector").combine_chunks().is_valid())
    if not pc.any(pc.or_(new, deleted)).as_py():
        return np.zeros(0, np.int64)
    return np.flatnonzero(to_numpy(pc.or_(new, deleted) if old > most else pc.or_(new, ours)))
