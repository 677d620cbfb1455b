"""Two commits conflict exactly when the loser would have done something else after the winner: a table of each rule,
and the law itself over every small pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, combinations
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from mica.errors import ConflictError
from mica.log.actions import Metadata, Protocol
from mica.log.conflicts import FilePredicate, Intent, check, every_file
from mica.log.paths import file_keys
from mica.log.replay import Commits, parse_commits
from tests.unit.log.tables import in_partition

VECTOR = {"storageType": "u", "pathOrInlineDv": "ab", "offset": 1, "sizeInBytes": 4, "cardinality": 1}


def add(path: str, **more: Any) -> dict[str, Any]:
    values = {"p": path[0]}
    return {
        "add": {"path": path, "partitionValues": values, "size": 1, "modificationTime": 1, "dataChange": True} | more
    }


def remove(path: str, **more: Any) -> dict[str, Any]:
    return {"remove": {"path": path, "dataChange": True} | more}


def commit(actions: Iterable[dict[str, Any]]) -> Commits:
    lines = [{"commitInfo": {"operation": "WRITE"}}, *actions]
    return parse_commits([b"\n".join(map(orjson.dumps, lines))], ["p"], "the commit")


BASE = commit([add("x0"), add("x1"), add("y0")]).adds


def intent(
    *reads: FilePredicate, removes: Iterable[str] = (), apps: Iterable[str] = (), domains: Iterable[str] = ()
) -> Intent:
    chosen = BASE.filter(pc.is_in(BASE["path"], value_set=pa.array(list(removes), pa.string())))
    keys = file_keys(chosen["path"].combine_chunks(), chosen["deletion_vector"].combine_chunks())
    return Intent(reads, BASE, keys, frozenset(apps), frozenset(domains))


def outcome(mine: Intent, *theirs: dict[str, Any]) -> str | None:
    try:
        check(mine, commit(theirs), 7, "the table")
    except ConflictError as e:
        return e.code
    return None


APPEND = intent()
REPLACE_X = intent(in_partition("x"), removes=["x0", "x1"])
DELETE_X0 = intent(removes=["x0"])
PROTOCOL = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
METADATA = {"metaData": {"id": "i", "format": {"provider": "parquet"}, "schemaString": "{}", "partitionColumns": ["p"]}}


def _metadata(mark: int, comment: str | None = None, **more: Any) -> dict[str, Any]:
    """That of a table whose identity column gave the numbers up to `mark`."""
    numbers = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.highWaterMark": mark}
    metadata = numbers | ({} if comment is None else {"comment": comment})
    fields = [{"name": "n", "type": "long", "nullable": True, "metadata": metadata}]
    schema = orjson.dumps({"type": "struct", "fields": fields}).decode()
    return {"metaData": METADATA["metaData"] | {"schemaString": schema} | more}


PLANNED = replace(
    APPEND, protocol=Protocol.parse(PROTOCOL["protocol"]), metadata=Metadata.parse(_metadata(1)["metaData"])
)


@pytest.mark.parametrize("blind", [True, False, None, "true"])
@pytest.mark.parametrize("lets_append", [True, False])
def test_only_blind_appends_are_let_in(blind: bool | str | None, lets_append: bool) -> None:
    mine = replace(REPLACE_X, lets_append=lets_append)
    theirs = [{"commitInfo": None if blind is None else {"isBlindAppend": blind}}, add("x2")]
    assert outcome(mine, *theirs) == (None if lets_append and blind is True else "CONCURRENT_APPEND")
    assert outcome(mine, *theirs, remove("x0")) == (
        "CONCURRENT_DELETE" if lets_append and blind is True else "CONCURRENT_APPEND"
    )


BLIND = {"commitInfo": {"isBlindAppend": True}}
CHANGES_X = replace(REPLACE_X, changes_rows=True)


@pytest.mark.parametrize(
    ("mine", "appended", "later", "code"),
    [
        (CHANGES_X, "x2", [add("y2")], "CONCURRENT_APPEND"),
        (CHANGES_X, "x2", [remove("y0")], "CONCURRENT_APPEND"),
        (CHANGES_X, "x2", [remove("x0")], "CONCURRENT_DELETE"),
        (CHANGES_X, "x2", [BLIND, add("y2")], None),
        (CHANGES_X, "x2", [add("y2", dataChange=False), remove("y0", dataChange=False)], None),
        (CHANGES_X, "y2", [add("y3")], None),
        (replace(intent(in_partition("x")), changes_rows=True), "x2", [add("y2")], "CONCURRENT_APPEND"),
        (REPLACE_X, "x2", [add("y2")], None),
    ],
)
def test_nothing_that_may_have_read_both_comes_after_an_append_that_is_let_in(
    mine: Intent, appended: str, later: list[dict[str, Any]], code: str | None
) -> None:
    mine = replace(mine, lets_append=True)
    mine = check(mine, commit([BLIND, add(appended)]), 6, "the table")
    mine = check(mine, commit([{"commitInfo": {}}]), 7, "the table")
    assert outcome(mine, *later) == code


@pytest.mark.parametrize(
    ("mine", "theirs", "code"),
    [
        (APPEND, [PROTOCOL], "PROTOCOL_CHANGED"),
        (APPEND, [METADATA], "METADATA_CHANGED"),
        (PLANNED, [PROTOCOL], None),
        (PLANNED, [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 3}}], "PROTOCOL_CHANGED"),
        (PLANNED, [_metadata(1)], None),
        (PLANNED, [_metadata(7)], None),
        (PLANNED, [_metadata(1, name="m")], "METADATA_CHANGED"),
        (PLANNED, [_metadata(1, configuration={"delta.appendOnly": "true"})], "METADATA_CHANGED"),
        (PLANNED, [_metadata(1, comment="c")], "METADATA_CHANGED"),
        (APPEND, [add("x2"), remove("x0")], None),
        (REPLACE_X, [add("x2")], "CONCURRENT_APPEND"),
        (REPLACE_X, [add("x2", dataChange=False)], None),
        (REPLACE_X, [add("y2"), remove("y0")], None),
        (intent(every_file), [add("y2")], "CONCURRENT_APPEND"),
        (intent(every_file), [{"cdc": {"path": "c", "partitionValues": {}, "size": 1, "dataChange": False}}], None),
        (DELETE_X0, [remove("x0")], "CONCURRENT_DELETE"),
        (DELETE_X0, [remove("x1")], None),
        (DELETE_X0, [remove("x0", deletionVector=VECTOR)], None),
        (intent(in_partition("x")), [remove("x1")], "CONCURRENT_DELETE"),
        (intent(in_partition("x")), [remove("y0")], None),
        (intent(in_partition("z"), in_partition("y")), [remove("y0")], "CONCURRENT_DELETE"),
        (intent(apps=["a"]), [{"txn": {"appId": "a", "version": 1}}], "CONCURRENT_TRANSACTION"),
        (intent(apps=["a"]), [{"txn": {"appId": "b", "version": 1}}], None),
        (APPEND, [{"txn": {"appId": "a", "version": 1}}], None),
        (intent(domains=["d"]), [{"domainMetadata": {"domain": "d", "configuration": "", "removed": True}}],
         "CONCURRENT_DOMAIN"),
        (intent(domains=["d"]), [{"domainMetadata": {"domain": "e", "configuration": "", "removed": False}}], None),
        (intent(every_file, apps=["a"], domains=["d"]), [], None),
    ],
)  # fmt: skip
def test_each_rule(mine: Intent, theirs: list[dict[str, Any]], code: str | None) -> None:
    assert outcome(mine, *theirs) == code


def test_a_conflict_names_the_winner_and_says_that_nothing_was_written() -> None:
    with pytest.raises(ConflictError, match="committed version 7 of the table concurrently") as caught:
        check(APPEND, commit([METADATA]), 7, "the table")
    assert caught.value.context["version"] == 7
    assert "Nothing was written" in str(caught.value)


def _subsets(actions: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], ...]]:
    return chain.from_iterable(combinations(actions, n) for n in range(len(actions) + 1))


@pytest.mark.parametrize("value", ["x", "y", "z"])
def test_replacing_a_partition_conflicts_exactly_where_its_files_are_others(value: str) -> None:
    """Replacing reads the files of the partition: done after the winner, it would have removed those that are there."""
    before = {path for path in BASE["path"].to_pylist() if path.startswith(value)}
    mine = intent(in_partition(value), removes=before)
    for theirs in _subsets([add("x2"), add("y2"), remove("x0"), remove("x1"), remove("y0")]):
        added = {a["add"]["path"] for a in theirs if "add" in a}
        removed = {a["remove"]["path"] for a in theirs if "remove" in a}
        after = {path for path in (set(BASE["path"].to_pylist()) | added) - removed if path.startswith(value)}
        assert (outcome(mine, *theirs) is None) is (after == before), theirs
