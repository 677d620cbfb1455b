"""Finds a query that is a list of expressions over one table, all of which its scan can evaluate.

The rule: between the query's root and the table are only lists of columns, and conditions that the scan evaluates. The
scan gives the rows of the query then, and Spark has nothing to compute.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mica.engines.spark.catalyst import Plan, Relation
from mica.engines.spark.folds import Texts, below, known
from mica.engines.spark.making import Maker
from mica.engines.spark.needs import Needs
from mica.engines.spark.nodes import node
from mica.records import dataclass


@dataclass(frozen=True)
class Computed:
    """A query whose rows a scan gives."""

    relation: Relation
    #: The query's root, and what is between it and the relation.
    plans: list[Plan]
    #: The columns of the scan: name → expression over the table.
    columns: Mapping[str, str]

    def replaced(self, make: Maker, scan: Any, *, gathered: bool) -> tuple[Any, Any]:  # noqa: ARG002 - of a fold
        """The root, and the scan with its columns."""
        root = self.plans[0].java
        return root, make.renumbered(scan, root.output(), first=True)


def find(needs: Needs, texts: Texts) -> Computed | None:
    """The query as what a scan computes; None if Spark has something to compute."""
    root = needs.query.root
    found = below(needs, root) if root.name == "Project" else None
    if found is None:
        return None
    relation, plans = found
    of = known(relation, plans)
    columns: dict[str, str] = {}
    for tree in root.expressions:
        text = texts(relation, node(tree, of), tree.type)
        if text is None:
            return None
        columns[f"c{len(columns)}"] = text
    return Computed(relation, plans, columns)
