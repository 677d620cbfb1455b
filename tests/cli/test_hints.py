"""Hints on the command line: in its words, and naming only what it has."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest
import typer.main

import mica
from mica.cli.app import app
from mica.cli.hints import SAYS, spoken
from mica.errors.codes import CODES
from mica.storage import answers

PACKAGE = Path(mica.__file__).parent

#: Hints of calls that no verb makes, by what is in them.
PYTHON_ALONE = (
    "to_df(unsupported=", "Call update_", "mica.variant.from_", "scan(columns=",
    "spark=mica.session()", "to_arrow() or to_duckdb()", "untyped=",
    ".schema(…)", ".load(path)", 'option("checkpointLocation"', 'option("timeZone"',
)  # fmt: skip

PYTHON = re.compile(
    r"""\b[a-z_]+=['"{\[TF]|\bmica\.[A-Zr]|\bmica\.[a-z]+_|\.\w+\(|\bto_\w+\(|Table\.|set_properties\(|`\w+=`|storage_options"""
)


def _text(node: ast.AST) -> str:
    match node:
        case ast.Constant(value):
            return str(value)
        case ast.JoinedStr(values):
            return "".join(map(_text, values))
        case ast.FormattedValue(value):
            return f"'{type(value).__name__}'" if node.conversion == ord("r") else type(value).__name__
        case ast.BinOp(left, _, right):
            return _text(left) + _text(right)
        case ast.IfExp(_, body, orelse):
            return f"{_text(body)} {_text(orelse)}"
    return ""


@functools.cache
def hints() -> list[str]:
    """All texts that the library gives as hints."""
    found = [code.way_out for code in CODES.values()] + [hint for _, hint in answers.CODES.values() if hint]
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                found += [_text(keyword.value) for keyword in node.keywords if keyword.arg == "hint"]
    return [hint for hint in found if not any(part in hint for part in PYTHON_ALONE)]


def options() -> set[str]:
    command = typer.main.get_command(app)
    verbs = [command, *command.commands.values()]  # type: ignore[attr-defined]
    return {name for verb in verbs for one in verb.params for name in (*one.opts, *one.secondary_opts)}


@pytest.mark.slow
def test_no_hint_speaks_python_on_the_command_line() -> None:
    assert len(hints()) > 80
    assert [hint for hint in map(spoken, hints()) if PYTHON.search(hint)] == []


def test_each_option_that_is_named_exists() -> None:
    named = {name for hint in map(spoken, hints()) for name in re.findall(r"--[a-z][a-z0-9-]*", hint)}
    named |= {
        name for _, instead in SAYS if isinstance(instead, str) for name in re.findall(r"--[a-z][a-z0-9-]*", instead)
    }
    assert named <= options()
    assert "--on-error" in named


def test_options_of_a_store_are_an_option_of_the_command_line() -> None:
    said = {
        "leave allow_external_paths out of storage_options.": "leave --storage-option allow_external_paths out.",
        "needs storage_options={'allow_http': 'true'}.": "needs --storage-option allow_http=true.",
        "The storage_options deny it, or": "--storage-option denies it, or",
        "may name with these storage_options": "may name with these values of --storage-option",
    }
    assert {text: spoken(text) for text in said} == said


def test_a_path_is_a_word_of_the_shell() -> None:
    said = {
        "first: mica.ingest_json('/a b', TABLE).": "first: mica ingest '/a b' TABLE.",
        """first: mica.ingest_json("/o'c", TABLE).""": """first: mica ingest '/o'"'"'c' TABLE.""",
        """Read the table: mica.Table.open("/o'c").scan().""": "Name the table itself: /o'c.",
        "no table: mica.read_parquet('/a.parquet') reads": "no table: mica scan /a.parquet reads",
        "version must be an integer": "--version must be an integer",
    }
    assert {text: spoken(text) for text in said} == said


def test_python_is_told_of_arguments() -> None:
    assert any("on_error='quarantine'" in hint for hint in hints())
