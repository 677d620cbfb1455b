"""What `--json` prints has the keys that docs/json.md names, and no others."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

import mica
from mica.cli.app import app
from mica.cli.json_keys import KEYS

#: In this order, in a folder with in.json, drifted.json, one/a.json, parts/, broken/ (a table with a fault) and bare/.
LINES = [
    "ingest in.json t --property delta.enableChangeDataFeed=true --target-file-size 1KB --json",
    "ingest drifted.json t --json",
    "stream one s --json",
    "scan t --count --json",
    "changes t --from-version 1 --count --json",
    "explain t --where v:n::int=3 --analyze --json",
    "explain t --where v:n::int=3 --footers --json",
    "explain bare/a.parquet --where id=3 --json",
    "files t --json",
    "files parts --json",
    "stats t --json",
    "stats parts --json",
    "drift t --json",
    "suggest t --json",
    "inspect bare/a.parquet --json",
    "log t --json",
    "check t --json",
    "check broken --json",
    "repair broken --json",
    "alter t --set a.b=c --json",
    "fsck holed --json",
    "erase t v:mix --json",
    "check t --erased v:mix --json",
    "optimize t --json",
    "reshred t --json",
    "restats t --json",
    "vacuum t --json",
    "restore t --version 0 --json",
    "convert t u --json",
    "convert-to-delta bare --json",
    "doctor --json",
    "demo shown --no-spark --events 300 --json",
]
#: Documented keys that these lines do not print: those of Spark, and of other answers.
ELSEWHERE = {
    "explain": {key for key in KEYS["explain"] if key.startswith("tables[]")},  # tests/cli/test_sql.py
    "demo": {"rows_on_spark", "collections.*"},
}


def keys(value: Any, at: str = "") -> Iterator[str]:
    """The keys of the leaves; an empty list or dict is a leaf."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from keys(inner, f"{at}.{name}" if at else name)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for inner in value:
            yield from keys(inner, f"{at}[]")
    else:
        yield at


def fits(key: str, documented: str) -> bool:
    """Whether a key is meant; one that holds an empty list or dict here may have more below it."""
    pattern = re.escape(documented).replace(r"\*", ".+")
    return re.fullmatch(pattern, key) is not None or re.match(rf"{re.escape(key)}(\.|\[)", documented) is not None


@pytest.mark.slow
def test_printed_keys_are_those_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"n": i, "s": f"x{i}", "mix": i if i % 2 else "z"} for i in range(200)]
    Path("in.json").write_text("\n".join(map(json.dumps, rows)))
    Path("drifted.json").write_text("\n".join(json.dumps({"n": str(i), "q": 1}) for i in range(50)))
    Path("one").mkdir()
    Path("one/a.json").write_text('{"n": 1}\n')
    Path("bare").mkdir()
    mica.write_parquet([{"id": 1, "v": {"a": 1}}], "bare/a.parquet", shredding={"v": "struct<a: int>"})
    parts = mica.Table.create("parts", "p INT, s STRING COLLATE UTF8_LCASE", partition_by=["p"])
    parts.append([{"p": 1, "s": "a"}])
    mica.Table.create("broken", "id INT").append([{"id": 1}])
    log = Path("broken/_delta_log/00000000000000000001.json")
    log.write_text(log.read_text().replace('\\"numRecords\\":1', '\\"numRecords\\":2'))
    mica.Table.create("holed", "id INT").append([{"id": 1}])
    next(Path("holed").glob("*.parquet")).unlink()
    found: dict[str, set[str]] = {}
    for line in LINES:
        done = CliRunner().invoke(app, shlex.split(line))
        assert done.exit_code in (0, 1), (line, done.output)
        assert done.stdout, (line, done.output)
        found.setdefault(line.split()[0], set()).update(keys(json.loads(done.stdout)))
    assert found.keys() == KEYS.keys()
    for verb, printed in found.items():
        unknown = {key for key in printed if not any(fits(key, one) for one in KEYS[verb])}
        assert not unknown, f"{verb}: name {sorted(unknown)} in mica.cli.json_keys"
        unseen = {one for one in KEYS[verb] if one != "*" and not any(fits(key, one) for key in printed)}
        assert unseen == ELSEWHERE.get(verb, set()), f"{verb}: documented, and not printed"


def test_every_command_with_json_is_on_the_page() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    have = {name for name, command in commands.items() if any("--json" in one.opts for one in command.params)}
    assert have - {"sql"} == KEYS.keys()
