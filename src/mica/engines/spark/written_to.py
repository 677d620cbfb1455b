"""What a `DataFrameWriterV2` was told: `df.writeTo(name).using(…).partitionedBy(…)`.

The rule: it is read when the writer runs, from Spark's fields, which are private: whatever calls led there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from mica.engines.spark.nodes import items
from mica.records import dataclass
from mica.schema.spelling import quote_if_needed

_FIELDS = ("tableName", "provider", "options", "properties", "partitioning", "clustering")


@dataclass(frozen=True)
class WrittenTo:
    """The parts of the table's name, the format if it was told, options, table properties,
    the partition columns (None: something else than a column) with the text of all, and the clustering columns."""

    table: tuple[str, ...]
    provider: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] | None = ()
    partition_text: str = ""
    cluster_by: tuple[str, ...] = ()


def written_to(writer: Any) -> WrittenTo:
    """What a writer of a classic session was told."""
    java = writer._jwriter  # noqa: SLF001
    found = {}
    for name in _FIELDS:
        one = java.getClass().getDeclaredField(name)
        one.setAccessible(True)
        found[name] = one.get(java)
    provider, parts, clusters = found["provider"], found["partitioning"], found["clustering"]
    transforms = [] if parts.isEmpty() else list(items(parts.get()))
    columns = None if any(str(one.name()) != "identity" for one in transforms) else [
        ".".join(names) for one in transforms for names in _names(one.references())
    ]  # fmt: skip
    clustered = [] if clusters.isEmpty() else _names(items(clusters.get().columnNames()))
    return WrittenTo(
        table=tuple(map(str, items(found["tableName"]))),
        provider=None if provider.isEmpty() else str(provider.get()),
        options=_pairs(found["options"]),
        properties=_pairs(found["properties"]),
        partition_by=None if columns is None else tuple(columns),
        partition_text=", ".join(map(str, transforms)),
        cluster_by=tuple(".".join(map(quote_if_needed, names)) for names in clustered),
    )


def resolved(schema: Any, condition: Any, session: Any) -> str:
    """The text of a condition, a column of Spark's or its name, over these columns. Errors: Spark's own."""
    plan: Any = session.createDataFrame([], schema).where(condition)._jdf.queryExecution().analyzed()  # noqa: SLF001
    return str(plan.condition().sql())


def _names(references: Any) -> list[list[str]]:
    return [[str(name) for name in one.fieldNames()] for one in references]


def _pairs(given: Any) -> dict[str, str]:
    return {str(pair._1()): str(pair._2()) for pair in items(given.toSeq())}  # noqa: SLF001
