"""`mica suggest`: what would make a table easier and faster to read, and the commands that do it."""

from __future__ import annotations

from mica.checking.suggestions import suggest
from mica.cli import options
from mica.cli.console import out, print_json, print_rows, storage_options
from mica.table import Table


def run(
    table: options.TablePath,
    version: options.Version = None,
    timestamp: options.Timestamp = None,
    storage_option: options.StorageOption = None,
    json: options.Json = False,
) -> None:
    """Suggest what would make a table easier and faster to read. Nothing is changed."""
    opened = Table.open(table, version, timestamp, storage_options(storage_option))
    found = suggest(opened)
    if json:
        print_json([one.to_dict() for one in found])
        return
    for number, one in enumerate(found):
        if number:
            out().print()
        names = list(one.details[0])
        rows = [[f"{v:.1%}" if isinstance(v, float) else v for v in detail.values()] for detail in one.details]
        print_rows(one.kind, names, rows, right=[n for n in names if isinstance(one.details[0][n], float)])
        for text in ("", one.reason, "", one.value, "", one.command):
            out().print(text, markup=False, highlight=False, soft_wrap=True)
    if not found:
        out().print("nothing to suggest", markup=False, highlight=False)
