"""Paths that did not become typed columns of a file, and why, as facts.

The rule: a file reports few of them: for each rule how many paths it left out, and of the others those in the most rows
of the sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mica.schema.spelling import quote_if_needed
from mica.variant.kernel import Left
from mica.variant.shredding import Limits
from mica.variant.steering import PathRule
from mica.variant.tree_path import spelled

#: Paths that a file reports beside those of rules.
MOST = 20

RARE = "in few rows"

_WHY = {
    "types": "several types",
    "keys": "keys differ from row to row",
    "rare": RARE,
    "case": "another path differs only in upper and lower case, which DuckDB takes for one",
    "arrays": "arrays that are rare, or of several types",
    "depth": "nests too deep",
}


def facts_of(column: Sequence[str], left: Sequence[Left], limits: Limits) -> Iterator[dict[str, Any]]:
    """Facts of the kind `left`: the path, or the rule's, in `path`; why in `stats`; the number of paths in `rows`."""
    name = ".".join(map(quote_if_needed, column))
    by_rule: dict[PathRule, int] = {}
    others = list[Left]()
    for one in left:
        if one.rule is not None:
            rule = limits.rules[one.rule]
            by_rule[rule] = by_rule.get(rule, 0) + 1
        else:
            others.append(one)
    for rule, paths in by_rule.items():
        yield {"kind": "left", "path": name, "stats": f"rule {rule.text}", "rows": paths}
    for one in others[:MOST]:
        why = f"more than {limits.max_fields} columns" if one.why == "most" else _WHY.get(one.why)
        if why is not None:
            yield {"kind": "left", "path": f"{name}:{spelled(one.path)}", "stats": why, "rows": 1}
