"""Pages that are printed from tables say what the tables say, and files that texts name are there."""

from __future__ import annotations

import re
import runpy
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.support import ROOT

PAGES = runpy.run_path(str(ROOT / "scripts" / "docs.py"))["pages"]()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_what_its_table_prints(page: str) -> None:
    written = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert written == PAGES[page], "run `make docs`"


LISTED = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
ROOMS = {path.name for path in (ROOT / "src" / "mica").iterdir() if path.is_dir()}
TEXTS = [path for path in LISTED if (path.endswith(".md") and path != "CHANGELOG.md") or path.startswith("src/mica/")]
FILE = re.compile(r"`((?:[\w.-]+/)*[\w-]+\.(?:py|rs|txt|sh|toml))`")
MODULE = re.compile(r"`(\w+)\.(\w+)(?:\.\w+)?`")


def test_tests_that_promises_name_are_there() -> None:
    written = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", written)
    assert len(named) > 20
    assert all(f"def {name or 'test_'}" in (ROOT / path).read_text(encoding="utf-8") for path, name in named)


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    names = {re.split(r"[^\w-]", one)[0] for one in asked}
    for part in ("brotli", "kernel", "memory", "py"):
        crate = tomllib.loads((ROOT / "native" / part / "Cargo.toml").read_text(encoding="utf-8"))
        for listed in (crate, *crate.get("target", {}).values()):
            names |= {name for name in listed.get("dependencies", {}) if not name.startswith("mica-")}
    reasons = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8").partition("\n## Where")[0]
    # Crates of one family are listed by their endings: `arrow-array, -buffer`.
    assert {n for n in names if not re.search(rf"\b{n}\b|, -{n.rpartition('-')[2]}\b", reasons)} == set()
    assert {"pyspark", "duckdb", "mimalloc", "twox-hash"} <= names


@pytest.mark.parametrize("text", [path for path in TEXTS if path.endswith((".md", ".py"))])
def test_files_and_modules_that_a_text_names_are_there(text: str) -> None:
    written = (ROOT / text).read_text(encoding="utf-8")
    gone = {name for name in FILE.findall(written) if not any(f"/{path}".endswith(f"/{name}") for path in LISTED)}
    for room, module in MODULE.findall(written) if text.endswith(".py") else ():
        inside = Path("src/mica", room, module)
        if room in ROOMS and not {f"{inside}.py", f"{inside}/__init__.py"} & set(LISTED):
            gone.add(f"{room}.{module}")
    assert gone == set()
