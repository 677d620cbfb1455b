"""Whatever rules say what is shredded: values stay the same, predicates find the same rows, and bounds hold.

One set of documents whose paths drift; a table without rules beside one with random rules, through ingest, append,
update, optimize and reshred.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

import mica
from tests.support import CAMPAIGN

PLACES = [
    "a",
    "b",
    "a.x",
    "a.y",
    "a.*",
    "b.*",
    "*",
    "*.x",
    "l",
    "l[*]",
    "l[*].x",
    "**.x",
    "*b",
    "$",
    "ghost.deep",
    "['c d']",
]
WISHES = ["infer", "skip", "later", "bigint", "string", "decimal(9,2)", "double", "variant", "struct<x: int>",
          "array<bigint>", "array<struct<x: string>>", "max 0", "max 1", "max 3"]  # fmt: skip
PREDICATES = [
    "try_variant_get(v, '$.a.x', 'string') > '3'", "try_variant_get(v, '$.a.y', 'bigint') = 2", "v:b IS NOT NULL",
    "try_variant_get(v, '$.l[0].x', 'int') < 5", "v:['c d']::string = 'q'", "v:ghost.deep IS NULL",
]  # fmt: skip
ROUNDS = 400 if CAMPAIGN else 6


def document(rng: random.Random, row: int) -> dict[str, object]:
    """Paths of one type for most of a stretch of rows, now and then of another, or not there."""

    def leaf() -> object:
        wild = rng.random() < (0.0, 0.3)[row // 60 % 2]
        return rng.choice([None, "s", 1.5, True, {"x": 2}, [3]]) if wild else rng.randint(0, 9)

    found: dict[str, object] = {"i": row}
    for name in rng.sample(["a", "b", "l", "c d", f"k{row}"], 4):
        if name == "a":
            found[name] = {"x": leaf(), "y": leaf()} if rng.random() < 0.95 else leaf()
        elif name == "l":
            found[name] = [{"x": leaf()} for _ in range(rng.randint(0, 2))]
        else:
            found[name] = leaf() if name != "c d" else rng.choice(["q", "r"])
    return found


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_rules_change_no_value_no_answer_and_no_bound(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    rules = ", ".join(f"{rng.choice(PLACES)}: {rng.choice(WISHES)}" for _ in range(rng.randint(1, 5)))
    rows = [document(rng, row) for row in range(180)]
    for number in range(2):
        lines = "\n".join(map(json.dumps, rows[number * 90 : number * 90 + 90]))
        (tmp_path / f"{number}.json").write_text(lines)
    ways = {"plain": {}, "steered": {"mica.shredding": rules}}
    tables, source = {}, None
    for name, properties in ways.items():
        mica.ingest_json(str(tmp_path / "0.json"), str(tmp_path / name), properties=properties)
        table = mica.Table.open(str(tmp_path / name))
        source = table.to_arrow() if source is None else source
        table.append(source)
        mica.ingest_json(str(tmp_path / "1.json"), str(tmp_path / name))
        tables[name] = mica.Table.open(str(tmp_path / name))

    def same() -> None:
        for where in (None, *PREDICATES):
            found = [
                sorted(t.scan(where, columns={"j": "to_json(v)"}).to_arrow().column("j").to_pylist())
                for t in tables.values()
            ]
            assert found[0] == found[1], (rules, where)
        assert mica.check(tables["steered"].path).ok, rules

    same()
    for table in tables.values():
        table.update({"v": 'parse_json(\'{"a": {"x": 1, "y": 2}}\')'}, "v:i::int = 7")
    same()
    step = rng.choice(["optimize", "reshred"])
    for table in tables.values():
        getattr(table, step)()
    same()
