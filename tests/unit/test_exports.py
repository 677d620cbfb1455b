"""Whatever a public call takes or gives can be named: its type is exported, where a type checker sees it too."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mica
import mica.variant

PACKAGE = Path(mica.__file__).parent

#: What the engines ask of a scan, and the log of a snapshot: not for people, and not promised.
INTERNAL = {
    "Source",
    "BoundExpr",
    "FilePlan",
    "FilePart",
    "ReadSpec",
    "Storage",
    "Segment",
    "State",
    "Fingerprint",
    "Narrowed",
}

CLASSES = {
    node.name
    for path in PACKAGE.rglob("*.py")
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
}


def _given_back() -> Iterator[tuple[str, str]]:
    """(what gives it, its annotation as text) of every public function, method, property and field."""
    for name in mica.__all__:
        value: Any = getattr(mica, name)
        if inspect.isfunction(value):
            yield name, str(value.__annotations__.get("return"))
        if inspect.isclass(value):
            for kind, annotation in getattr(value, "__annotations__", {}).items():
                yield f"{name}.{kind}", str(annotation)
            own = [base for base in inspect.getmro(value) if base.__module__.startswith("mica")]
            for member, found in ((member, found) for base in own for member, found in vars(base).items()):
                function = getattr(found, "fget", None) or getattr(found, "func", None) or found
                function = getattr(function, "__func__", function)
                if not member.startswith("_") and inspect.isfunction(function):
                    yield f"{name}.{member}", str(function.__annotations__.get("return"))


def test_every_type_that_is_given_back_is_exported() -> None:
    exported = {*mica.__all__, *mica.variant.__all__}
    found = list(_given_back())
    assert {"Scan.explain", "write_parquet", "Table.append", "Table.protocol", "Report.with_more"} <= {
        n for n, _ in found
    }
    missing = {
        (place, word)
        for place, annotation in found
        for word in re.findall(r"\b[A-Z]\w+", annotation)
        if word in CLASSES and word not in exported | INTERNAL
    }
    assert missing == set()


def test_every_public_call_is_annotated() -> None:
    assert [place for place, annotation in _given_back() if annotation in ("None", "Any") and "." not in place] == []
    for name in mica.variant.__all__:
        value = getattr(mica.variant, name)
        if inspect.isfunction(value):
            assert value.__annotations__["return"] not in ("Any", None)


def test_dir_lists_the_public_names_alone() -> None:
    assert {name for name in dir(mica) if not name.startswith("__")} == set(mica.__all__)


def test_type_checkers_see_what_programs_see() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.asname: f"{node.module}.{alias.name}"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert set(seen) == set(mica.__all__)
    for name, place in seen.items():
        module = inspect.getmodule(getattr(mica, name))
        assert module is not None
        assert place in (f"{module.__name__}.{name}", "mica.variant", f"mica.table.{name}")
