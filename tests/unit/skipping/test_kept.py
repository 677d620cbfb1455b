"""Why files stay: nothing is known, what is known is of another type, or the bounds do not exclude the condition."""

from __future__ import annotations

import pytest

from mica.expressions.bind import bind
from mica.skipping.kept import kept_files, nearest_path
from mica.skipping.plan import plan_files
from mica.stats.variant import encode_bounds
from mica.variant.path import VariantPath
from tests.unit.skipping.test_plan import SCHEMA, A, Snapshot, i64, text, variant


def reasons(where: str, *documents: object) -> list[tuple[str, list[int]]]:
    plan = plan_files(bind(where, SCHEMA), Snapshot(*documents))
    return [(group.reason, group.files.tolist()) for group in kept_files(plan)]


def test_each_kept_file_has_one_reason() -> None:
    met, texts = variant({A: i64(1)}, {A: i64(9)}), variant({A: text("x")}, {A: text("y")})
    found = reasons("v:a::bigint = 5", met, None, texts, met, variant({A: i64(6)}, {A: i64(9)}))
    assert found == [
        ("their bounds do not exclude the condition", [0, 3]),
        ("v:a has values of another type in them", [2]),
        ("they have no bounds of v:a", [1]),
    ]
    assert reasons("v:a IS NULL AND id = 1", None) == [("they have no bounds of id", [0])]
    assert reasons("v:a IS NOT NULL", None) == [("their bounds do not exclude the condition", [0])]


def test_without_a_condition_there_is_no_reason() -> None:
    assert kept_files(plan_files(None, Snapshot(None))) == []


def test_the_nearest_path() -> None:
    bounds = encode_bounds({
        "$['commit']['collection']": text("x"), "$['kind']": text("y"), "$['user']['e.mail']": text("z")
    })  # fmt: skip
    near = {
        "commit.colection": "commit.collection", "kind": "None", "zzz": "None", "KIND": "kind", "id": "None",
        "usr.idd": "None", "user.email": "user['e.mail']",
    }  # fmt: skip
    leaves = [bind(f"v:{path}::string = 'x'", SCHEMA).leaves[0] for path in near]
    assert [str(nearest_path(leaf, bounds)) for leaf in leaves] == [*near.values()]
    assert nearest_path(leaves[0], None) is None
    assert nearest_path(leaves[0], "?") is None


def test_a_path_that_another_writer_spelled_otherwise_is_near_to_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mica.skipping.kept.read_all", lambda _: {"$.status": None, "$['state']": None})
    leaf = bind("v:stat::string = 'x'", SCHEMA).leaves[0]
    assert str(nearest_path(leaf, "any")) == str(VariantPath.parse_normalized("$['state']"))
