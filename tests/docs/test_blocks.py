"""Every block of code in the guides runs, in the order of its page, in a folder with some events."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from typer.testing import CliRunner

import mica
from mica.cli import events
from mica.cli.app import app
from tests.support import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", DOCS / "tutorial.md", DOCS / "format.md", *sorted((DOCS / "guides").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def names_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a page registers is gone after it."""
    monkeypatch.setattr("mica.query.registry._NAMES", {})


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: Any) -> None:
    text = page.read_text(encoding="utf-8")
    if page.stem == "README":  # the rest needs streams without an end and other engines; its first block is make's
        text = text[text.index("## Ten lines") : text.index("## Streams")].replace("demo/events", "events")
    blocks = BLOCK.findall(text)
    assert blocks
    if any("mica.session()" in text for _, text in blocks):
        spark: SparkSession = request.getfixturevalue("spark")
        assert spark
    monkeypatch.chdir(tmp_path)
    events.write_files(Path("events"), 400, files=2)
    names: dict[str, Any] = {}
    for kind, text in blocks:
        assert kind in ("python", "sh"), f"{page.name} has a block of {kind!r}: nobody runs it"
        if kind == "python":
            # The session of all tests began in another folder.
            text = re.sub(r'"(lake|events|checkpoints)/', rf'"{tmp_path}/\1/', text)  # noqa: PLW2901
            exec(compile(text, page.name, "exec"), names)
            continue
        for line in text.splitlines():
            run(line)


def run(line: str) -> None:
    """A command as a shell would run it; its exit status must be 0."""
    program, *words = shlex.split(line)
    arguments = [found for word in words for found in (sorted(map(str, Path().glob(word))) if "*" in word else [word])]
    if program == "python":
        assert arguments[:2] == ["-m", "mica.cli.events"]
        events.write(Path(arguments[2]), int(arguments[4]) // 10, seed=int(arguments[6]), processes=1)
        return
    assert program == "mica", line
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, f"{line}: {done.output} {done.exception}"


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = orjson.loads((DOCS / "story.ipynb").read_bytes())["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert len(texts) == 10
    monkeypatch.chdir(tmp_path)
    began = time.monotonic()
    names: dict[str, Any] = {}
    for text in texts:
        *body, last = ast.parse(text).body
        exec(compile(ast.Module(body, []), "story", "exec"), names)
        if isinstance(last, ast.Expr):
            shown = eval(compile(ast.Expression(last.value), "story", "eval"), names)
            assert shown is None or (getattr(shown, "_repr_html_", None) or shown.__repr__)()
        else:
            exec(compile(ast.Module([last], []), "story", "exec"), names)
    assert names["EVENTS"] == 100_000
    assert time.monotonic() - began < 60, "the notebook promises less than a minute"
    assert len(names["scan"].plan.kept) < names["scan"].plan.total / 2


def test_links_lead_somewhere() -> None:
    for page in [*DOCS.rglob("*.md"), ROOT / "README.md"]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_reference_has_what_mica_has() -> None:
    text = (DOCS / "reference.md").read_text(encoding="utf-8")
    told = re.findall(r"^::: (mica\b.*)\.(\w+)$", text, re.MULTILINE)
    assert {name for _, name in told} >= set(mica.__all__)
    assert [f"{module}.{name}" for module, name in told if not hasattr(_resolved(module), name)] == []


def _resolved(path: str) -> Any:
    """A module, or a class in one."""
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError:
        module, _, name = path.rpartition(".")
        return getattr(importlib.import_module(module), name)
