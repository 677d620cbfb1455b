"""Writes the pages of docs/ that are printed from tables of the code: `python scripts/docs.py` (`make docs`).

tests/unit/test_docs.py holds the pages against the tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mica.codes import CODES

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
`ConflictError` another writer's that was faster, `StorageError` the disk's or the store's. The command line prints
`error [CODE]: …` and ends with exit status 1.

{MADE} The table is `mica.codes.CODES`.

{table(("code", "class", "cause", "way out"), rows)}"""


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Rows as a table of Markdown."""
    lines = [head, tuple("---" for _ in head), *(tuple(cell.replace("|", "\\|") for cell in row) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def pages() -> Mapping[str, str]:
    """The text of each page by its name."""
    return {"errors.md": errors()}


if __name__ == "__main__":
    for name, text in pages().items():
        (DOCS / name).write_text(text, encoding="utf-8")
