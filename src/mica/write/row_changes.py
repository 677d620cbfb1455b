"""DELETE and UPDATE, as `Table` calls them.

The rule: mica evaluates what it can. What only Spark evaluates, Spark does, if the change runs there
(`change_by_spark`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mica import engines
from mica.errors import UserError
from mica.log.snapshot import Snapshot
from mica.write.by_spark import or_by_spark
from mica.write.change import Change
from mica.write.commit import Commit
from mica.write.once import Txn, once
from mica.write.target import target_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from mica.write.change_by_spark import ChangeBySpark


def delete(snapshot: Snapshot, where: str | None, spark: SparkSession | None, txn: Txn | None = None) -> Commit:
    """Deletes the rows for which `where` is true; see `Table.delete`."""
    return _change(snapshot, where, None, spark, txn)


def update(
    snapshot: Snapshot,
    values: Mapping[str, Any],
    where: str | None,
    spark: SparkSession | None,
    txn: Txn | None = None,
) -> Commit:
    """Updates columns of the rows for which `where` is true; see `Table.update`."""
    if not values:
        raise UserError.bad_value("set", dict(values), "a dict of at least one column to its expression")
    return _change(snapshot, where, values, spark, txn)


def _change(
    snapshot: Snapshot, where: str | None, values: Mapping[str, Any] | None, spark: SparkSession | None, txn: Txn | None
) -> Commit:
    def by_spark(refused: UserError) -> ChangeBySpark:
        from mica.write.change_by_spark import ChangeBySpark

        assert spark is not None
        return ChangeBySpark(snapshot, txn, spark, where, values, refused)

    def change() -> Commit:
        def mine() -> Change | ChangeBySpark:
            return Change(target_of(snapshot, txn), engines.of(spark), where, values)

        return or_by_spark(mine, by_spark, on_spark=spark is not None).commit()

    return once(snapshot.storage, snapshot, txn, change)
