"""Writes the pages of docs/ that are printed from tables of the code: `python scripts/docs.py` (`make docs`).

tests/unit/test_docs.py holds the pages against the tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer.main

from mica.cli.app import app
from mica.cli.json_keys import KEYS
from mica.errors.codes import CODES
from mica.properties import FEATURES, OF_OTHERS, PROPERTIES, REFUSED, Property

DOCS = Path(__file__).resolve().parent.parent / "docs"
MADE = "Made by `make docs`; do not edit."


def errors() -> str:
    """The codes of errors."""
    rows = [
        (f"`{row.name}`", ", ".join(f"`{kind.__name__}`" for kind in row.kinds), row.cause, row.way_out)
        for row in sorted(CODES.values(), key=lambda row: row.name)
    ]
    return f"""\
# Errors

Every error of mica is a `mica.errors.MicaError` with a `code`, which is stable, a `message` and a `hint`, which may
change, and a `context` (`path`, `version`, `row`, `column`, …). The class says whose mistake it is: `UserError` (also a
`ValueError`) the caller's, `UnsupportedTableError` nobody's, `CorruptDataError` that of whoever wrote the bytes,
`ConflictError` another writer's that was faster, `StorageError` the disk's or the store's. In Python its text begins
with `[CODE]`; the command line prints `error [CODE]: …` and ends with exit status 1.

{MADE} The table is `mica.errors.codes.CODES`.

{table(("code", "class", "cause", "way out"), rows)}"""


def json_keys() -> str:
    """The keys of what commands print with `--json`."""
    parts = [
        f"## mica {verb}\n\n{table(('key', 'meaning'), [(f'`{key}`', text) for key, text in keys.items()])}"
        for verb, keys in KEYS.items()
        if verb != "demo"
    ]
    return f"""\
# What --json prints

{MADE} The table is `mica.cli.json_keys.KEYS`.

With `--json` a command prints one JSON document on standard output, and nothing else. `scan`, `changes` and `sql` print
one line for each row, with the columns as keys; `stream` one line for each batch. Keys may be added, and those that are
here stay. `[]` stands for the elements of a list, `*` for any name. `mica demo` prints what `ingest` and `explain`
print, and the rows of its queries. Errors go to standard error, with exit status 1 (2 for wrong usage).

{chr(10).join(parts)}"""


def commands() -> str:
    """The commands with their arguments and options, as `--help` has them."""
    group: Any = typer.main.get_command(app)
    parts = []
    for name, command in group.commands.items():
        context = command.make_context(name, [], resilient_parsing=True)
        records = filter(None, (one.get_help_record(context) for one in command.params))
        rows = [(f"`{words.replace('<list[str]>', '').strip().replace('|', '/')}`", said) for words, said in records]
        text = " ".join((command.help or "").split())
        parts.append(f"## mica {name}\n\n{text}\n\n{table(('option', 'meaning'), rows)}")
    return f"""\
# Commands

{MADE} The tables are those of `mica COMMAND --help`.

`mica --install-completion` completes commands and options in the shell. `--debug` shows the traceback of an error, and
what Spark logs. The exit status is 0 for success, 1 for bad input or a refused table (an [error](errors.md) with its
code), 2 for wrong usage, 130 after Ctrl-C. What `--json` prints is under [json](json.md).

{chr(10).join(parts)}"""


def properties() -> str:
    """Table properties and table features."""
    apart = {row.name for row in (*OF_OTHERS, *REFUSED)}
    obeyed = [row for name, row in PROPERTIES.items() if name not in apart]
    head = ("property", "values", "default", "meaning")
    return f"""\
# Table properties and features

{MADE} The tables are `mica.properties.PROPERTIES` and `mica.properties.FEATURES`.

Names are matched in any case. An unknown `delta.` or `mica.` property is refused when it is set, as is a text that
cannot be read; any other name is kept as it is. In a table of another engine an unknown property stays, and a text that
cannot be read counts as not set. `delta.feature.NAME = supported` adds a table feature.

## Properties that mica obeys

{table(head, [(f"`{r.name}`", r.values.expected, _default(r.default), _meaning(r)) for r in obeyed])}
## Properties that mica keeps and does not obey

They may be set, for other engines. mica does nothing for them.

{table(head, [(f"`{r.name}`", r.values.expected, _default(r.default), r.meaning) for r in OF_OTHERS])}
## Properties that mica refuses

They ask of a writer what mica does not do (UNSUPPORTED_WRITER_FEATURE). A table that has them already is read if its
protocol can be.

{table(("property", "meaning", "refused because"), [(f"`{r.name}`", r.meaning, str(r.refused)) for r in REFUSED])}
## Table features

A table whose protocol has a feature that mica does not know is not read, if it is one of readers, and not written.

{table(("feature", "of", "read", "written"), [_feature(name) for name in FEATURES])}"""


def _default(text: str | None) -> str:
    return "not set" if text is None else f"`{text}`"


def _meaning(row: Property[Any]) -> str:
    feature = "" if row.feature is None else f" Brings the feature `{row.feature}`."
    refused = "" if row.refused is None else f" Refused when it is set: {row.refused}."
    return row.meaning + (refused or feature)


def _feature(name: str) -> tuple[str, ...]:
    feature = FEATURES[name]
    names = ", ".join(f"`{one}`" for one in (name, *feature.previews))
    written = f"yes, unless {feature.why}" if feature.why else "yes"
    return names, "readers and writers" if feature.for_readers else "writers", "yes", written


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Rows as a table of Markdown."""
    lines = [head, *(tuple(cell.replace("|", "\\|") for cell in row) for row in rows)]
    texts = [f"| {' | '.join(line)} |\n" for line in lines]
    return "".join([texts[0], f"|{'---|' * len(head)}\n", *texts[1:]])


def pages() -> Mapping[str, str]:
    """The text of each page by its name."""
    return {"cli.md": commands(), "errors.md": errors(), "json.md": json_keys(), "properties.md": properties()}


if __name__ == "__main__":
    for name, text in pages().items():
        (DOCS / name).write_text(text, encoding="utf-8")
