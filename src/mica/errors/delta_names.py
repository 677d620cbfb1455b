"""delta-spark's names of calls that mica names otherwise: asked for, they are an error with mica's name.

The rule: no call has two names. The error is an AttributeError too, so `hasattr` and completion say that the name is
not there, and no `__getattr__` hides it from type checkers, or hides other errors.

Source: delta-spark's `delta.tables`; docs/guides/rows.md has the same for readers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NoReturn, TypeVar

from mica.errors import OtherNameError

Made = TypeVar("Made")

#: Of `DeltaTable`.
TABLE: Mapping[str, str] = {
    "forPath": "mica.Table.open(path)",
    "forName": "mica.Table.open(path), or mica.sql for a table by its name",
    "isDeltaTable": "mica.Table.exists(path)",
    "createIfNotExists": "mica.Table.create(path, schema, mode='ignore')",
    "createOrReplace": "mica.Table.create(path, schema, mode='overwrite')",
    "replace": "mica.Table.create(path, schema, mode='overwrite')",
    "convertToDelta": "mica.Table.convert_to_delta(path)",
    "toDF": "to_df(spark)",
    "alias": "merge(source, on, target_alias=…, source_alias=…)",
    "detail": "schema, properties, protocol, metadata, files() and partitions()",
    "generate": "file_uris()",
    "restoreToVersion": "restore(version=…)",
    "restoreToTimestamp": "restore(timestamp=…)",
    "cloneAtVersion": "clone(target, version=…)",
    "cloneAtTimestamp": "clone(target, timestamp=…)",
    "executeCompaction": "optimize()",
    "executeZOrderBy": "optimize(zorder_by=[…])",
    "addFeatureSupport": "add_feature(name)",
    "dropFeatureSupport": "drop_feature(name)",
    "upgradeTableProtocol": "add_feature(name)",
}

#: Of `DeltaMergeBuilder`.
MERGE: Mapping[str, str] = {
    "whenMatchedUpdate": "when_matched_update(set, condition)",
    "whenMatchedUpdateAll": "when_matched_update_all(condition)",
    "whenMatchedDelete": "when_matched_delete(condition)",
    "whenNotMatchedInsert": "when_not_matched_insert(values, condition)",
    "whenNotMatchedInsertAll": "when_not_matched_insert_all(condition)",
    "whenNotMatchedBySourceUpdate": "when_not_matched_by_source_update(set, condition)",
    "whenNotMatchedBySourceDelete": "when_not_matched_by_source_delete(condition)",
    "withSchemaEvolution": "merge(source, on, schema_evolution=True)",
}


class _OtherName:
    """What stands for a name that a class does not have."""

    def __init__(self, name: str, own: str) -> None:
        self._name, self._own = name, own

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise OtherNameError(
            "OTHER_NAME",
            f"mica.{owner.__name__} has no {self._name}, which is delta-spark's name",
            hint=f"mica's is {self._own}.",
        )


def with_names_of(others: Mapping[str, str]) -> Callable[[type[Made]], type[Made]]:
    """Gives a class the errors for these names, which `dir` leaves out."""

    def made(own: type[Made]) -> type[Made]:
        def listed(self: Made) -> Iterable[str]:
            return [name for name in object.__dir__(self) if name not in others]

        for name, call in others.items():
            setattr(own, name, _OtherName(name, call))
        setattr(own, "__dir__", listed)  # noqa: B010 - a type checker takes an assignment for a mistake
        return own

    return made
