"""Reconciliation: the last word on a file counts."""

from __future__ import annotations

import json
from typing import Any
from unittest import mock

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mica.errors import CorruptDataError
from mica.log.json_lines import _few, read_lines, split_lines
from mica.log.replay import State, _json_schema, apply, parse_commits


def add(path: str, **more: object) -> bytes:
    return orjson.dumps(
        {"add": {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 2, "dataChange": True, **more}}
    )


def remove(path: str, **more: object) -> bytes:
    return orjson.dumps({"remove": {"path": path, "deletionTimestamp": 3, "dataChange": True, **more}})


def replay(*commits: list[bytes], columns: tuple[str, ...] = ()) -> State:
    """Commit by commit; the same as all at once."""
    state = State()
    for commit in commits:
        state = apply(state, parse_commits([b"\n".join(commit) + b"\n"], columns, "c"))
    at_once = apply(State(), parse_commits([b"\n".join(commit) for commit in commits], columns, "c"))
    assert names(at_once) == names(state)
    assert sorted(at_once.removes["path"].to_pylist()) == sorted(state.removes["path"].to_pylist())
    assert (at_once.protocol, at_once.metadata, at_once.domains) == (state.protocol, state.metadata, state.domains)
    return state


def names(state: State) -> list[str]:
    return sorted(state.files["path"].to_pylist())


VECTOR = {"storageType": "u", "pathOrInlineDv": "ab", "offset": 1, "sizeInBytes": 3, "cardinality": 1}


@pytest.mark.parametrize(
    ("commits", "left"),
    [
        ([[add("a"), add("b")]], ["a", "b"]),
        ([[add("a")], [remove("a")]], []),
        ([[add("a")], [remove("a")], [add("a")]], ["a"]),
        ([[add("a")], [remove("a"), add("b")]], ["b"]),
        ([[add("a")], [remove("b")]], ["a"]),
        ([[remove("a")], [add("a")]], ["a"]),
        ([[add("/x/y")], [remove("file:///x/y")]], []),
        ([[add("a%20b")], [remove("a b")]], []),
        ([[]], []),
    ],
)
def test_the_last_word_on_a_file_counts(commits: list[list[bytes]], left: list[str]) -> None:
    assert names(replay(*commits)) == left


def test_a_file_added_again_has_its_new_statistics() -> None:
    state = replay([add("a", stats="old", size=1)], [add("a", stats="new", size=7)])
    assert state.files["size"].to_pylist() == [7]
    source, row = state.files["source"][0].as_py(), state.files["row"][0].as_py()
    assert state.sources[source].stats[row].as_py() == "new"


def test_a_new_deletion_vector_takes_the_place_of_the_file_without() -> None:
    state = replay([add("a"), add("b")], [add("a", deletionVector=VECTOR), remove("a")])
    assert names(state) == ["a", "b"]
    assert [v and v["cardinality"] for v in state.files.sort_by("path")["deletion_vector"].to_pylist()] == [1, None]
    after = replay(
        [add("a")],
        [add("a", deletionVector=VECTOR), remove("a")],
        [add("a", deletionVector={**VECTOR, "offset": 9}), remove("a", deletionVector=VECTOR)],
    )
    assert [v["offset"] for v in after.files["deletion_vector"].to_pylist()] == [9]


def test_tombstones_are_kept_until_the_file_is_back() -> None:
    state = replay([add("a"), add("b")], [remove("a"), remove("b")], [add("b")])
    assert state.removes["path"].to_pylist() == ["a"]


def test_partition_values_are_maps_with_nulls_and_any_names() -> None:
    metadata = orjson.dumps({"metaData": {"id": "1", "partitionColumns": ["p q", "ä"], "schemaString": "{}"}})
    state = replay(
        [metadata, add("a", partitionValues={"p q": "1", "ä": None}), add("b", partitionValues={"ä": "x/ü", "p q": ""})]
    )
    values = state.files.sort_by("path")["partition_values"].to_pylist(maps_as_pydicts="strict")
    assert values == [{"p q": "1", "ä": None}, {"p q": "", "ä": "x/ü"}]


def test_a_partition_column_is_a_key_even_where_all_values_are_null() -> None:
    metadata = orjson.dumps({"metaData": {"id": "1", "partitionColumns": ["p", "q"], "schemaString": "{}"}})
    state = replay([metadata, add("a", partitionValues={"p": None, "q": None}), add("b", partitionValues={})])
    assert state.files["partition_values"].to_pylist() == [[("p", None), ("q", None)]] * 2


def test_partition_values_of_an_earlier_partitioning_are_kept() -> None:
    def metadata(*columns: str) -> bytes:
        return orjson.dumps({"metaData": {"id": "1", "partitionColumns": columns, "schemaString": "{}"}})

    state = replay(
        [metadata("p"), add("a", partitionValues={"p": "1"})], [metadata("q"), add("b", partitionValues={"q": "2"})]
    )
    values = state.files.sort_by("path")["partition_values"].to_pylist(maps_as_pydicts="strict")
    assert [{k: v for k, v in row.items() if v is not None} for row in values] == [{"p": "1"}, {"q": "2"}]
    assert "q" in values[1]


def test_a_file_has_no_key_of_an_earlier_partitioning_without_a_value() -> None:
    lines = []
    for column in ("p", "q"):
        lines += [orjson.dumps({"metaData": {"id": "1", "partitionColumns": [column], "schemaString": "{}"}})]
        lines += [add(f"{column}{value}", partitionValues={column: value}) for value in ("1", None, "2")]
    values = replay(lines).files.sort_by("path")["partition_values"].to_pylist()
    assert values[3:] == [[("q", "1")], [("q", "2")], [("q", None)]]
    assert sorted(values[:3], key=len) == [[("q", None)], [("q", None), ("p", "1")], [("q", None), ("p", "2")]]


@pytest.mark.parametrize(("mode", "key"), [("name", "col-1"), ("id", "col-1"), ("none", "p")])
def test_partition_values_are_keyed_by_physical_names_where_columns_are_mapped(mode: str, key: str) -> None:
    schema = {
        "type": "struct",
        "fields": [
            {"name": "p", "type": "string", "nullable": True, "metadata": {"delta.columnMapping.physicalName": "col-1"}}
        ],
    }
    metadata = {
        "id": "1",
        "partitionColumns": ["p"],
        "schemaString": orjson.dumps(schema).decode(),
        "configuration": {"delta.columnMapping.mode": mode},
    }
    state = replay([orjson.dumps({"metaData": metadata}), add("a", partitionValues={key: "x"})])
    assert state.files["partition_values"].to_pylist() == [[(key, "x")]]


def test_other_actions_have_a_last_word_too() -> None:
    def domain(name: str, configuration: str, removed: bool = False) -> bytes:
        return orjson.dumps({"domainMetadata": {"domain": name, "configuration": configuration, "removed": removed}})

    def txn(app: str, version: int) -> bytes:
        return orjson.dumps({"txn": {"appId": app, "version": version, "lastUpdated": 5}})

    state = replay(
        [domain("a", "1"), domain("b", "1"), txn("x", 1)],
        [domain("a", "2"), domain("b", "", True), txn("x", 2), txn("y", 1)],
        [b'{"fromTheFuture":{"a":1}}', b'{"cdc":{"path":"x"}}'],
    )
    assert dict(state.domains) == {"a": "2"}
    assert dict(state.transactions) == {"x": (2, 5), "y": (1, 5)}


def test_blank_lines_and_carriage_returns_are_nothing() -> None:
    data = b"\n\n" + add("a") + b"\r\n  \n" + add("b") + b"\n\n"
    assert names(apply(State(), parse_commits([data, b"", b"\n"], [], "c"))) == ["a", "b"]


def test_a_line_longer_than_a_block_is_read() -> None:
    big = "x" * (3 << 20)
    state = apply(State(), parse_commits([add("a") + b"\n" + add("b", stats=big) + b"\n" + add("c")], [], "c"))
    assert names(state) == ["a", "b", "c"]
    assert state.sources[0].stats[1].as_py() == big


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        add("a") + b"\n" + add("b")[:-5],
        b'{"add":{"size":1}}',
        b'{"add":{"path":5}}',
        b'{"add":"x"}',
        b'{"add":{"path":"a","size":"big"}}',
        add("a") + add("b"),
        add("a") + b" trailing",
        b"[1]",
        b'{"add":{"path":"\xff\xfe"}}',
        b"null",
        b"\x00\x01\x02",
        b'{"protocol":{"minReaderVersion":"x"}}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
    ],
    ids=range(15),
)
def test_a_broken_line_is_corrupt_data_and_nothing_else(data: bytes) -> None:
    with pytest.raises(CorruptDataError) as caught:
        apply(State(), parse_commits([data], [], "the file"))
    assert caught.value.code == "CORRUPT_LOG"


@pytest.mark.parametrize("size", ["", ',"size":null'])
def test_an_add_without_a_size_is_corrupt(size: str) -> None:
    """Found by `make fuzz`: a plan added up sizes that were not there."""
    line = f'{{"add":{{"path":"a","partitionValues":{{}},"modificationTime":0,"dataChange":true{size}}}}}'
    with pytest.raises(CorruptDataError, match="an add without a size"):
        parse_commits([line.encode()], [], "the file")


def _compact(value: Any) -> bytes:
    """JSON as orjson writes it, of integers of any size."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


_TEXTS = st.text(st.characters(codec="utf-8"), max_size=5)
_ANY: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**64), 2**64)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_TEXTS | st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)
_VECTOR = st.fixed_dictionaries({}, optional={"offset": st.integers(-5, 2**31 + 5), "storageType": _TEXTS})
_ODD = [b"", b'{"add":{"path":"a","path":"b"}}', b'{"add": {"path": "a"}}', b'{"add":{"size":1.0}}', b"{", b"null"]
_ADD = st.fixed_dictionaries(
    {},
    optional={
        "path": _TEXTS | _ANY,
        "size": st.integers(-(2**63), 2**63 - 1) | _ANY,
        "dataChange": st.booleans() | _ANY,
        "deletionVector": st.fixed_dictionaries(
            {}, optional={"offset": st.integers(-5, 2**31 + 5), "storageType": _TEXTS}
        )
        | _ANY,
        "partitionValues": st.dictionaries(st.sampled_from("pq"), _TEXTS | st.none()) | _ANY,
        "unknown": _ANY,
    },
)
_LINES = st.lists(
    st.fixed_dictionaries({}, optional={"add": _ADD | _ANY, "remove": _ADD, "commitInfo": _ANY}).map(_compact)
    | _ANY.map(json.dumps).map(str.encode)
    | st.sampled_from(
        [b"", b'{"add":{"path":"a","path":"b"}}', b'{"add": {"path": "a"}}', b'{"add":{"size":1.0}}', b"{", b"null"]
    ),
    max_size=3,
)


@given(_LINES)
def test_few_lines_are_read_as_many(lines: list[bytes]) -> None:
    data = b"\n".join(lines)
    schema = _json_schema(["p"])
    found = _few(data, schema)
    if found is None:
        return
    kept, longest = split_lines(data)
    with mock.patch("mica.log.json_lines._FEW_BYTES", -1):
        assert read_lines(data, kept, longest, schema).equals(found.combine_chunks())


def test_lines_of_mica_are_read_without_a_thread() -> None:
    data = b"\n".join([add("a", stats="{}", deletionVector=VECTOR, partitionValues={"p": "é"}), remove("b"), b""])
    found = _few(data, _json_schema(["p"]))
    assert found is not None
    assert found.num_rows == 2


@pytest.mark.parametrize("action", [add, remove])
def test_what_names_a_file_must_be_there(action: Any) -> None:
    with pytest.raises(CorruptDataError, match="c holds an add or remove without a path"):
        parse_commits([action(None)], (), "c")
    for part in ("storageType", "pathOrInlineDv"):
        with pytest.raises(CorruptDataError, match="c holds a deletion vector without a path"):
            parse_commits([action("a", deletionVector={**VECTOR, part: None})], (), "c")
