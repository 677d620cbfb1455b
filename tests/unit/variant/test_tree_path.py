"""Paths of shredding trees, as rules and reports of files spell them."""

from __future__ import annotations

import pytest

from mica.variant.tree_path import TreePath, normalized, spelled


@pytest.mark.parametrize(
    ("path", "rule", "report"),
    [
        ((), "$", "$"),
        (("a", "b c"), "a['b c']", "$['a']['b c']"),
        (("a", None, "b c", None), "a[*]['b c'][*]", "$['a'][*]['b c'][*]"),
        ((None, "x"), "[*].x", "$[*]['x']"),
        (("[*]", "e'\"[", "\n"), "['[*]']['e\\'\"['][\"\\n\"]", "$['[*]']['e\\'\"[']['\\n']"),
        ((None, None, "it's"), "[*][*]['it\\'s']", "$[*][*]['it\\'s']"),
    ],
)
def test_a_path_has_a_spelling_for_rules_and_one_for_reports(path: TreePath, rule: str, report: str) -> None:
    assert (spelled(path), normalized(path)) == (rule, report)
