"""A file says which paths did not become typed columns: of rules how many, of the others the most frequent."""

from __future__ import annotations

import pyarrow as pa

from mica.tasks.left import MOST, facts_of
from mica.variant import kernel
from mica.variant.kernel import Left
from mica.variant.shredding import Limits
from mica.variant.steering import Steering


def test_paths_of_a_rule_are_counted_and_others_are_named() -> None:
    limits = Steering.parse("f.*: skip, *: max 2").limits(Limits(), "new")
    texts = ['{"f": {"a": 1, "b": 2}, "m": 1, "n": 2, "x": 1}', '{"f": {"a": 1, "b": 2}, "m": "s", "n": 2, "x": 1}']
    rows = kernel.json_to_variant(pa.record_batch([pa.array(texts * 50)], ["t"]))
    tree, left = kernel.infer(rows, ["v"], limits)
    assert tree == pa.struct({"f": pa.null(), "m": pa.null()})
    assert [(fact["path"], fact["stats"], fact["rows"]) for fact in facts_of(["v"], left, limits)] == [
        ("v", "rule f.*: skip", 2),
        ("v:n", "more than 2 columns", 1),
        ("v:x", "more than 2 columns", 1),
        ("v:m", "several types", 1),
    ]
    assert len(list(facts_of(["v"], [Left((str(i),), "types", None) for i in range(99)], limits))) == MOST
