"""The doors of the package: one to the kernel, one to storage, two to Spark; `import mica` stays light.

import-linter holds the arrows between the rooms (`pyproject.toml`); it sees no extension module and no door.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.support import ROOT

PACKAGE = ROOT / "src" / "mica"
DOORS = {
    "mica._native": ("variant/kernel/door.py",),
    "obstore": ("storage/", "storage.py"),
    "pyspark": ("engines/spark/", "format/"),
    "py4j": ("engines/spark/",),
    "typer": ("cli/",),
    # What is printed shows itself where a rich console asks for it.
    "rich": ("cli/", "scan/explanation.py", "checking/drift.py"),
}
# `import mica` names the same door in two ways.
ALSO = {"mica": {"_native": "mica._native"}}


@cache
def _modules() -> dict[str, ast.Module]:
    """Every module of the package by its path in it, parsed once for all tests."""
    paths = sorted(PACKAGE.rglob("*.py"))
    return {path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


@cache
def _imported() -> dict[str, set[str]]:
    """What each module imports."""
    return {name: _imports(tree) for name, tree in _modules().items()}


def _is_type_checking(node: ast.If) -> bool:
    return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _imports(tree: ast.AST) -> set[str]:
    """Every module named by an import that runs, at the top or inside a function."""
    found: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {ALSO[node.module][a.name] for a in node.names if a.name in ALSO.get(node.module, {})}
        elif isinstance(node, ast.If) and _is_type_checking(node):
            continue
        else:
            found |= _imports(node)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("module", DOORS)
def test_only_its_doors_import(module: str) -> None:
    elsewhere = [
        name
        for name, names in _imported().items()
        if any(n == module or n.startswith(module + ".") for n in names) and not name.startswith(DOORS[module])
    ]
    assert elsewhere == []


def test_every_door_is_used() -> None:
    """A door that nobody walks through is a dead rule."""
    used = {n.split(".")[0] for names in _imported().values() for n in names if n != "mica._native"}
    assert {"obstore", "pyspark", "typer", "rich"} <= used


def test_each_class_has_a_name_of_its_own() -> None:
    """Two things of one name are taken for one another."""
    names = Counter(
        node.name
        for tree in _modules().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_every_lock_is_in_the_list_of_locks() -> None:
    """Who takes one while another is held must know of both."""
    kinds = {"Lock", "RLock", "Condition", "Semaphore"}
    holders = [
        name
        for name, tree in _modules().items()
        if "threading" in _imported()[name]
        and not kinds.isdisjoint(getattr(node, "attr", getattr(node, "id", None)) for node in ast.walk(tree))
    ]
    listed = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert [name for name in holders if f"`{name}`" not in listed] == []
    assert "query/lent.py" in holders


def test_import_mica_loads_neither_spark_nor_parquet() -> None:
    program = "import mica, sys; print([m for m in ('pyspark', 'pyarrow.parquet') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_no_file_names_a_registry() -> None:
    """Mirrors are the machine's own business. `Cargo.lock` names the default registry by its identity."""
    words = ["--index" + "-url", "pypi" + ".org", "index" + ".crates", "repo1" + ".maven"]
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    for name in listed.splitlines():
        path = Path(ROOT, name)
        if path.suffix in {".py", ".toml", ".lock", ".sh", ".md", ".in", ".rs"} and name != "native/Cargo.lock":
            text = path.read_text(encoding="utf-8")
            assert not [word for word in words if word in text], name
