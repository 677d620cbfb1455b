"""Comparisons by a collation drop a file only on bounds of that collation, version and maker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson
import pyarrow as pa
import pytest

from mica.collation.lcase import InProcess
from mica.expressions.bind import bind
from mica.schema.ddl import parse_ddl
from mica.schema.types import StructType
from mica.skipping import collated
from mica.skipping.plan import FilePlan, plan_files
from mica.skipping.reasons import dropped_files, other_versions, undecided_files
from mica.stats.collated import MADE_BY, MAX_BYTES, TAG
from mica.stats.read import Share, shares_of

SCHEMA = parse_ddl("low string collate UTF8_LCASE, de string collate de, p string, part string, id int")
KEY = "spark.UTF8_LCASE.78.3"
OURS = {TAG: MADE_BY}


@dataclass
class Log:
    """Files by their statistics and tags, as a snapshot gives them."""

    entries: list[tuple[Any, dict[str, str] | None]]
    parts: list[str | None] = field(default_factory=list)
    schema: StructType = SCHEMA

    @property
    def files(self) -> pa.Table:
        parts = self.parts or [None] * len(self.entries)
        kind = pa.map_(pa.string(), pa.string())
        names = [f"f{i}" for i in range(len(parts))]
        return pa.table({"path": names, "partition_values": pa.array([[("part", p)] for p in parts], kind)})

    def path_of(self, file: int) -> str:
        return f"f{file}"

    def stats(self) -> pa.Array:
        texts = [s if isinstance(s, str) or s is None else orjson.dumps(s).decode() for s, _ in self.entries]
        return pa.array(texts, pa.string())

    def stats_shares(self) -> Iterator[Share]:
        yield from shares_of(self.stats())

    def tags(self) -> pa.Array:
        found = [None if t is None else list(t.items()) for _, t in self.entries]
        return pa.array(found, pa.map_(pa.string(), pa.string()))


def stats(low: str | None, high: str | None, key: str = KEY, *, nulls: int = 0, rows: int = 9) -> dict[str, Any]:
    sides = {"minValues": low, "maxValues": high}
    bounds = {side: {"low": value} for side, value in sides.items() if value is not None}
    # Binary bounds that would drop every file: a collated comparison must not look at them.
    binary = {"minValues": {"low": "!"}, "maxValues": {"low": "!"}}
    return {"numRecords": rows, **binary, "nullCount": {"low": nulls}, "statsWithCollation": {key: bounds}}


def plan(where: str, log: Log, ordering: InProcess | None = None) -> FilePlan:
    bound = bind(where, SCHEMA, partition_columns=["part"])
    return plan_files(bound, log, ordering=InProcess() if ordering is None else ordering)


FILES = Log([(stats("B", "d"), OURS), (stats("X", "x"), OURS), (stats(None, None, nulls=9), OURS), (None, None)])


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("low = 'C'", [0, 3]), ("low = 'x'", [1, 3]), ("low = 'b'", [0, 3]), ("low = 'D'", [0, 3]), ("low = 'A'", [3]),
        ("'E' = low", [3]), ("low < 'b'", [3]), ("low < 'c'", [0, 3]), ("low <= 'b'", [0, 3]), ("low > 'X'", [3]),
        ("low >= 'X'", [1, 3]), ("'d' <= low", [0, 1, 3]), ("low <> 'X'", [0, 3]), ("not low = 'x'", [0, 3]),
        ("low in ('a', 'C')", [0, 3]), ("low in ('a', null)", [3]), ("low not in ('x', 'y')", [0, 3]),
        ("low not in ('x', null)", []), ("low = null", []), ("low <=> null", [2, 3]), ("low <=> 'x'", [1, 3]),
        ("low is distinct from 'x'", [0, 2, 3]), ("low is distinct from null", [0, 1, 3]), ("low is null", [2, 3]),
        ("low between 'e' and 'w'", [3]), ("low = 'c' or low = 'x'", [0, 1, 3]), ("low = 'c' and low = 'x'", [3]),
        ("low = p collate UTF8_LCASE", [0, 1, 2, 3]), ("low collate UTF8_BINARY = '!'", [0, 1, 3]),
        ("low collate de = 'q'", [0, 1, 3]),
    ],
)  # fmt: skip
def test_bounds_of_the_collation_are_judged(where: str, kept: list[int]) -> None:
    found = plan(where, FILES)
    assert found.kept.tolist() == kept


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ((stats("a", "b", "spark.UTF8_LCASE.77.1"), OURS), "in version 77.1, and 78.3 is needed"),
        ((stats("a", "b", "spark.UTF8_LCASE"), OURS), "no bounds of"),
        ((stats("a", "b", "spark.UTF8_LCASE_RTRIM.78.3"), OURS), "no bounds of"),
        ((stats("a", "b"), None), "made by another writer"),
        ((stats("a", "b"), {TAG: "x/9"}), "made by another writer"),
        (({"numRecords": 9}, OURS), "no bounds of"), (("{", OURS), "no bounds of"), ((None, None), "no bounds of"),
        ((stats(None, "b"), OURS), "no lower bound"), ((stats(None, None), OURS), "no bound"),
        (({"statsWithCollation": {KEY: {"minValues": {"low": 5}}}}, OURS), "no bound"),
        (({"statsWithCollation": {KEY: {}, KEY.lower(): {}}}, OURS), "differ in case"),
    ],
)  # fmt: skip
def test_what_is_not_known_to_be_sound_keeps_the_file_and_says_why(entry: Any, why: str) -> None:
    log = Log([entry, (stats("a", "b"), OURS)])
    found = plan("low = 'a' and id = 1", log) if why == "no lower bound" else plan("low = 'z'", log)
    assert 0 in found.kept.tolist()
    (told,) = undecided_files(found, log.path_of)[:1]
    assert told["path"] == "f0"
    assert told["column"] == "low"
    assert why in told["reason"]


def test_keys_are_found_whatever_their_case() -> None:
    log = Log([(stats("a", "b", "SPARK.utf8_lcase.78.3"), OURS)])
    assert plan("low = 'z'", log).kept.tolist() == []


def test_without_a_session_a_file_is_kept_and_explain_says_so() -> None:
    log = Log([(stats("a", "b", "icu.de.78.3"), OURS)])
    found = plan("de = 'z'", log)
    assert found.kept.tolist() == [0]
    assert "no session" in undecided_files(found, log.path_of)[0]["reason"]
    assert plan_files(bind("low = 'z'", SCHEMA), FILES).kept.tolist() == [0, 1, 3]


def test_other_versions_are_told_with_their_share() -> None:
    log = Log([(stats("a", "b", "spark.UTF8_LCASE.77.1"), OURS), (stats("a", "b"), OURS)])
    told = other_versions(plan("low = 'z'", log))
    assert told is not None
    assert "1 of 2 files have bounds of spark.UTF8_LCASE in version 77.1 only" in told
    assert "restats" in told
    assert other_versions(plan("low = 'z'", FILES)) is None


def test_the_reason_of_a_dropped_file_shows_the_bounds_that_were_judged() -> None:
    (dropped, _) = dropped_files(plan("low = 'C'", FILES), FILES.path_of)
    assert dropped["bounds"] == {"low": {"min": "X", "max": "x", "no_nulls": True}}
    assert "low COLLATE UTF8_LCASE = 'C'" in dropped["reason"]


def test_partition_values_need_no_bounds() -> None:
    schema = parse_ddl("part string collate UTF8_LCASE, id int")
    log = Log([(None, None)] * 3, ["A", "b", None], schema)
    bound = bind("part = 'a'", schema, partition_columns=["part"])
    assert plan_files(bound, log, ordering=InProcess()).kept.tolist() == [0]
    assert plan_files(bound, log).kept.tolist() == [0, 1]


def test_bounds_of_texts_that_are_read_with_blanks_prove_nothing() -> None:
    schema = parse_ddl("low char(3) collate UTF8_LCASE")
    log = Log([(stats("A", "A"), OURS), (stats(None, None, nulls=9), OURS)], schema=schema)
    for where in ("low = 'a'", "low in ('a  ', 'b')", "low > 'a'", "low <> 'a'"):
        found = plan_files(bind(where, schema), log, ordering=InProcess())
        assert found.kept.tolist() == [0], where
        assert "CHAR" in undecided_files(found, log.path_of)[0]["reason"]


def test_many_constants_are_judged_and_very_many_keep_every_file(monkeypatch: pytest.MonkeyPatch) -> None:
    many = ", ".join(f"'k{i}'" for i in range(200))
    assert plan(f"low in ({many}, 'C')", FILES).kept.tolist() == [0, 3]
    monkeypatch.setattr(collated, "MOST_COMPARISONS", 1_599)
    found = plan(f"low in ({many})", FILES)
    assert found.kept.tolist() == [0, 1, 3]
    assert "200 constants are too many" in undecided_files(found, FILES.path_of)[0]["reason"]


def test_a_cut_upper_bound_is_above_its_string() -> None:
    long = "z" * MAX_BYTES
    log = Log([(stats("a", "Z" * 64 + "\U0010ffff"), OURS)])
    assert plan(f"low = '{long}'", log).kept.tolist() == [0]
    assert plan("low > 'za'", log).kept.tolist() == [0]
