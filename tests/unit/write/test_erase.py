"""A path is erased from every row and file; `check_erased` tells what holds it until a vacuum and the log's cleanup."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mica
from mica.errors import MicaError

DDL = "id INT, v VARIANT"
PATH = "v:user.email"
KEEP = {"delta.enableDeletionVectors": "false", "delta.checkpoint.writeStatsAsStruct": "true"}


def row(number: int, **more: Any) -> dict[str, Any]:
    user = {"name": f"n{number}", "email": f"e{number}@x"} if number % 3 else {"name": "none"}
    return {"id": number, "v": json.dumps({"user": user, "n": number, **more})}


def made(path: Path, properties: dict[str, str] | None = None, files: int = 3) -> mica.Table:
    table = mica.Table.create(str(path), DDL, properties={**KEEP, **(properties or {})})
    for file in range(files):
        table.append([row(n) for n in range(file * 10, file * 10 + 10)])
    table.append([{"id": 99, "v": '{"n":99}'}])
    return mica.Table.open(str(path))


def documents(table: mica.Table) -> list[Any]:
    texts = mica.variant.to_json(table.scan().to_arrow()["v"]).to_pylist()
    return sorted(map(json.loads, texts), key=lambda document: document["n"])


def without_email(document: Any) -> Any:
    return (
        {**document, "user": {k: v for k, v in document["user"].items() if k != "email"}}
        if "user" in document
        else document
    )


def places(table: mica.Table) -> dict[str, list[tuple[str, str]]]:
    found = mica.check_erased(table.path, PATH)
    told: dict[str, list[tuple[str, str]]] = {}
    for trace in found.traces.to_pylist():
        told.setdefault(trace["goes_with"], []).append((trace["kind"], trace["file"]))
    return told


def test_a_file_that_no_version_names_may_be_unreadable(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.erase(PATH)
    before = places(table)
    named = tmp_path / "t" / next(iter(table.files().to_pylist()))["path"]
    half = named.read_bytes()[:-100]
    (tmp_path / "t" / "half.parquet").write_bytes(half)
    pq.write_table(pa.table({"v": [1]}), tmp_path / "t" / "other.parquet")
    left = [("unread", "half.parquet"), ("unread", "other.parquet")]
    assert places(table) == before | {"vacuum": sorted(before["vacuum"] + left, key=lambda found: found[1])}
    assert "unread in half.parquet: 1, goes with vacuum" in str(mica.check_erased(table, PATH))
    named.write_bytes(half)
    with pytest.raises(MicaError, match=named.name) as error:
        mica.check_erased(table, PATH)
    assert error.value.code == "CORRUPT_FILE"


@pytest.mark.parametrize("shreds", ["true", "false"])
def test_erases_from_every_row_and_tells_what_is_left(tmp_path: Path, shreds: str) -> None:
    table = made(tmp_path / "t", {"delta.enableVariantShredding": shreds})
    before, files = documents(table), {f["path"] for f in table.files().to_pylist()}
    assert mica.check_erased(table.path, PATH).current
    done = table.erase(PATH)
    assert documents(table) == [without_email(document) for document in before]
    # The file of one row without the path is not rewritten.
    assert len(files & {f["path"] for f in table.files().to_pylist()}) == 1
    assert table.history().to_pylist()[0]["operation"] == "ERASE"
    assert done.version == table.version
    left = places(table)
    assert "erase" not in left
    assert [kind for kind, _ in left["vacuum"] if kind == "values"] == ["values"] * 3
    assert ("log cleanup" in left) == (shreds == "true")
    lines = str(mica.check_erased(table, PATH)).splitlines()
    assert lines[0] == f"what holds {PATH} in {table.path}"
    assert len(lines) == 1 + sum(map(len, left.values()))
    for file in table.files().to_pylist():
        read = pq.read_table(tmp_path / "t" / file["path"])
        assert "email" not in str(read.schema)
        assert all(b"email" not in metadata.as_py() for metadata in read["v"].combine_chunks().field("metadata"))
    table.vacuum(0, enforce_retention=False)
    assert "vacuum" not in places(table)
    version = table.version
    with pytest.warns(UserWarning, match="no row"):
        assert table.erase(PATH).version == version  # nothing left, nothing committed


def test_versions_of_old_files_are_told(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.erase(PATH)
    traces = mica.check_erased(table.path, PATH).traces.to_pylist()
    values = [(t["first"], t["last"]) for t in traces if t["kind"] == "values"]
    assert sorted(values) == [(1, 4), (2, 4), (3, 4)]


def test_rows_that_a_deletion_vector_hides_are_erased_too(tmp_path: Path) -> None:
    table = made(tmp_path / "t", {"delta.enableDeletionVectors": "true"}, files=2)
    table.delete("id = 1 OR id BETWEEN 10 AND 19 AND v:user.email IS NOT NULL AND id < 18")
    before = documents(table)
    table.erase(PATH)
    assert documents(table) == [without_email(document) for document in before]
    assert "erase" not in places(table)
    assert (
        table.files()["deletion_vector"].null_count == table.files().num_rows
        if "deletion_vector" in table.files().column_names
        else True
    )
    traces = mica.check_erased(table.path, PATH).traces.to_pylist()
    assert {(t["first"], t["last"]) for t in traces if t["kind"] == "values"} == {(1, 4), (2, 4)}


def test_a_path_that_no_row_has_is_told_with_the_nearest(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    with pytest.warns(
        UserWarning, match="erase names v:user.emial, a path that no row of .*/t has; .* is v:user.email$"
    ) as told:
        done = table.erase("v:user.emial")
    assert (done.version, told[0].filename) == (table.version, __file__)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert table.erase("v:user.emial", "id < 10").version == done.version  # other rows may have it
        assert table.erase(PATH).version == done.version + 1


def test_only_where(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    before = documents(table)
    table.erase(PATH, "id < 10 -- the first file")
    assert documents(table) == [
        without_email(document) if document["n"] < 10 else document for document in before
    ]  # fmt: skip
    assert mica.check_erased(table.path, PATH).current


def test_paths_below_go_too_and_names_used_elsewhere_stay(tmp_path: Path) -> None:
    table = mica.Table.create(str(tmp_path / "t"), "v VARIANT", properties=KEEP)
    table.append([{"v": '{"a":{"email":{"x":1,"secret":2}},"email":3}'}, {"v": '{"a":7,"email":4}'}, {"v": None}])
    table.erase("v:a.email")
    texts = mica.variant.to_json(table.scan().to_arrow()["v"]).to_pylist()
    assert texts == ['{"a":{},"email":3}', '{"a":7,"email":4}', None]
    assert not mica.check_erased(table.path, "v:a.email").current
    assert mica.check_erased(table.path, "v:email").current


def test_an_expression_of_the_metadata_may_quote_a_value(tmp_path: Path) -> None:
    generated = "CASE WHEN v:user.email::string = 'secret@x' THEN 1 END"
    table = mica.Table.create(
        tmp_path / "t", f"{DDL}, email STRING GENERATED ALWAYS AS (v:user.email::string), "
        f"known INT GENERATED ALWAYS AS ({generated})", properties={"delta.columnMapping.mode": "name"},
    )  # fmt: skip
    table.add_constraint("c", "v:user.email::string <> 'secret@x' OR v:user.email IS NULL")
    table.add_constraint("other", "v:user.name::string <> 'x' OR v IS NULL")
    table.checkpoint()
    checkpoint = next(str(f.relative_to(table.path)) for f in (tmp_path / "t/_delta_log").glob("*.checkpoint*"))
    found = places(table)
    assert ("predicates", checkpoint) in found["drop_constraint"]
    assert [file[-8:] for _, file in found["drop_columns"]] == ["000.json"]
    table.drop_constraint("c")
    assert mica.check_erased(table, PATH).current
    table.drop_columns(["known"])
    found = places(table)
    assert (set(found), mica.check_erased(table, PATH).current) == ({"log cleanup"}, False)
    assert ("predicates", checkpoint) in found["log cleanup"]


def test_checkpoints_hold_bounds_until_they_go(tmp_path: Path) -> None:
    for structs in ("true", "false"):
        place = tmp_path / structs
        table = made(place, {"delta.checkpoint.writeStatsAsStruct": structs, "delta.checkpoint.writeStatsAsJson":
                             "false" if structs == "true" else "true"})  # fmt: skip
        table.checkpoint()
        table.erase(PATH)
        kinds = places(table)["log cleanup"]
        assert any("checkpoint" in file for _, file in kinds), kinds


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("v", "INVALID_PATH"), ("id", "INVALID_PATH"), ("v:a[0]", "INVALID_PATH"), ("id:a", "INVALID_PATH"),
        ("w:a", "UNKNOWN_COLUMN"), ("v:a::string", "INVALID_PATH"), ("v:", "INVALID_EXPRESSION"),
    ],
)  # fmt: skip
def test_refuses(tmp_path: Path, path: str, code: str) -> None:
    table = made(tmp_path / "t", files=1)
    for call in (table.erase, lambda erased: mica.check_erased(table.path, erased)):
        with pytest.raises(MicaError) as raised:
            call(path)
        assert raised.value.code == code


@pytest.mark.parametrize("where", [None, "id < 5"])
def test_a_change_data_feed_has_the_changed_rows_without_the_path(tmp_path: Path, where: str | None) -> None:
    table = made(tmp_path / "t", {"delta.enableChangeDataFeed": "true"}, files=1)
    table.update({"id": "id + 100"}, "id = 7")  # its change file holds the path
    table.erase(PATH, where)
    changes = table.changes(table.version).to_arrow()
    texts = mica.variant.to_json(changes["v"]).to_pylist()
    ids = sorted(set(changes["id"].to_pylist()))
    assert ids == ([1, 2, 4] if where else [1, 2, 4, 5, 8, 107])
    assert sorted(set(changes["_change_type"].to_pylist())) == ["update_postimage", "update_preimage"]
    assert len(texts) == 2 * len(ids)
    assert not any("email" in text for text in texts)
    traces = mica.check_erased(table.path, PATH).traces.to_pylist()
    (old,) = [t for t in traces if t["file"].startswith("_change_data/") and t["kind"] == "values"]
    assert (old["first"], old["last"], old["count"], old["goes_with"]) == (3, 3, 2, "vacuum")
    if where is None:
        table.vacuum(0, enforce_retention=False)
        assert "vacuum" not in places(table)
        assert "erase" not in places(table)


def test_predicates_of_commits_quote_values(tmp_path: Path) -> None:
    """Under today's name of the column and a former one; the path that an erase names quotes nothing."""
    table = made(tmp_path / "t", {"delta.columnMapping.mode": "name"}, files=1)
    table.delete("v:user.email::string = 'e1@x'")
    table.delete("id = 3 AND v:user.name::string = 'none'")
    table.update({"id": "id + 1"}, "id = 2")
    table.rename_column("v", "w").erase("w:user.email", "w:user['email']::string = 'e4@x'")
    table.erase("w:user.email")
    traces = mica.check_erased(table.path, "w:user.email").traces.to_pylist()
    quoted = [(t["first"], t["last"], t["goes_with"]) for t in traces if t["kind"] == "predicates"]
    assert quoted == [(3, 3, "log cleanup"), (7, 7, "log cleanup")]


def test_bounds_in_sidecars_and_checksums_are_told(tmp_path: Path) -> None:
    table = made(tmp_path / "t", {"delta.checkpointPolicy": "v2"})
    table.checkpoint()
    log = tmp_path / "t" / "_delta_log"
    (sidecar,) = (log / "_sidecars").iterdir()
    (log / "_sidecars" / "killed.parquet").write_bytes(sidecar.read_bytes())
    adds = [json.loads(line)["add"] for line in (log / f"{1:020}.json").read_text().splitlines() if '"add"' in line]
    (log / f"{1:020}.crc").write_text(json.dumps({"allFiles": adds}))
    table.erase(PATH)
    left = places(table)
    assert ("bounds", "_delta_log/_sidecars/killed.parquet") in left["vacuum"]
    assert ("bounds", f"_delta_log/_sidecars/{sidecar.name}") in left["log cleanup"]
    assert ("bounds", f"_delta_log/{1:020}.crc") in left["log cleanup"]


def test_of_sidecars_that_no_checkpoint_names_some_are_none(tmp_path: Path) -> None:
    """Hadoop's checksum of a sidecar that delta-spark wrote was CORRUPT_CHECKPOINT, as was half a sidecar."""
    table = made(tmp_path / "t", {"delta.checkpointPolicy": "v2"}, files=1)
    table.checkpoint()
    (sidecar,) = (tmp_path / "t/_delta_log/_sidecars").iterdir()
    sidecar.with_name(f".{sidecar.name}.crc").write_bytes(b"crc\0")
    sidecar.with_name("half.parquet").write_bytes(sidecar.read_bytes()[:-100])
    assert places(table)["vacuum"] == [("unread", "_delta_log/_sidecars/half.parquet")]


@pytest.mark.parametrize("found", [5, "x", {"path": 1}, [5], [{"path": "x", "stats": 5}], [{"path": 5}]])
def test_what_is_no_checksum_or_action_holds_nothing(tmp_path: Path, found: object) -> None:
    """Each was an error of Python's."""
    table = made(tmp_path / "t", {})
    log = tmp_path / "t" / "_delta_log"
    before = places(table)
    (log / f"{1:020}.crc").write_text(json.dumps({"metadata": found, "allFiles": found}))
    (log / f"{table.version + 1:020}.json").write_text('{"commitInfo": "x"}\n{"cdc": {"path": null}}\n{"cdc": "x"}\n')
    assert places(table.refresh()) == before


def test_rules_hold_under_an_erase(tmp_path: Path) -> None:
    """A constraint that needs the path refuses the erase, one that lets it be null does not."""
    table = mica.Table.create(
        str(tmp_path / "t"), "id INT, v VARIANT, e STRING GENERATED ALWAYS AS (v:user.email::string)", properties=KEEP
    )
    table.append([row(n) for n in range(1, 3)])
    table.add_constraint("named", "v:user.email IS NOT NULL")
    files, version = table.files()["path"].to_pylist(), table.version
    with pytest.raises(MicaError) as raised:
        table.erase(PATH)
    assert (raised.value.code, "named" in raised.value.message) == ("CONSTRAINT_VIOLATED", True)
    assert (table.refresh().version, table.files()["path"].to_pylist()) == (version, files)
    table.drop_constraint("named").add_constraint("short", "v:user.email IS NULL OR length(v:user.email::string) < 9")
    table.erase(PATH, "id = 1")
    assert table.scan(columns=["id", "e"]).to_arrow().sort_by("id").to_pydict() == {"id": [1, 2], "e": [None, "e2@x"]}


def test_an_application_erases_once(tmp_path: Path) -> None:
    table = made(tmp_path / "t", files=1)
    assert not table.erase(PATH, txn=("gdpr", 1)).repeated
    table.append([row(1)])
    assert table.erase(PATH, txn=("gdpr", 1)).repeated
    assert mica.check_erased(table.path, PATH).current


def test_partitions_and_other_columns_stay(tmp_path: Path) -> None:
    table = mica.Table.create(str(tmp_path / "t"), "p STRING, v VARIANT", partition_by=["p"], properties=KEEP)
    table.append(pa.table({"p": ["a", "b"], "v": ['{"user":{"email":1,"k":2}}', '{"user":{"k":3}}']}))
    table.erase(PATH, "p = 'b'")
    assert table.version == 1
    table.erase(PATH, "p = 'a'")
    found = table.scan().to_arrow().sort_by("p")
    assert found["p"].to_pylist() == ["a", "b"]
    assert mica.variant.to_json(found["v"]).to_pylist() == ['{"user":{"k":2}}', '{"user":{"k":3}}']


@pytest.mark.parametrize("gone", ["deleted", "updated"])
def test_names_go_though_no_row_has_the_path_any_more(tmp_path: Path, gone: str) -> None:
    """Rows share metadata, which still named it: nothing was committed, and traces were found for ever."""
    table = mica.Table.create(tmp_path, "v VARIANT")
    table.append([{"v": {"n": 1}}, {"v": {"n": 2, "user": {"email": "a@b"}}}])
    table.append([{"v": {"n": 3}}])
    if gone == "deleted":
        table.delete("v:n::int = 2")
    else:
        table.update({"v": "variant_delete(v, '$.user')"})
    version = table.version
    table.erase("v:user.email")
    traces = mica.check_erased(tmp_path, "v:user.email").traces.to_pylist()
    assert [trace for trace in traces if trace["goes_with"] == "erase"] == []
    assert table.version == version + (gone == "deleted" or bool(traces))
    again = table.version
    table.erase("v:user.email")
    assert table.version == again


@pytest.mark.parametrize("other", ['{"to":{"email":"c@d"}}', '{"to":[{"email":"c@d"}]}'])
@pytest.mark.parametrize("mapping", ["none", "name"])
def test_a_name_that_the_shredding_schema_has_elsewhere_is_no_trace(tmp_path: Path, other: str, mapping: str) -> None:
    """All rows of a file have it in their metadata: it was found for ever, and each erase wrote all files again."""
    table = mica.Table.create(tmp_path, "v VARIANT", properties={"delta.columnMapping.mode": mapping})
    table.append([{"v": '{"email":"a@b"}'}, {"v": other}] * 5)
    assert mica.check_erased(tmp_path, "v:email").current
    version = table.erase("v:email").version
    found = mica.check_erased(tmp_path, "v:email")
    assert not found.current
    assert {trace["goes_with"] for trace in found.traces.to_pylist()} == {"vacuum", "log cleanup"}
    with pytest.warns(UserWarning, match="a path that no row"):
        assert table.erase("v:email").version == version
    assert table.erase("v:to").rows == 10


def test_lines_that_were_set_aside_may_hold_the_path(tmp_path: Path) -> None:
    lines = [
        '{"n": 1}',
        '{"user": {"\\u0065mail": "a@x"',
        '{"user": {"emails": []',
        '{"email": "b@x", "user": {',
        "\\ud83d",
    ]
    (tmp_path / "in.ndjson").write_text("\n".join(lines))
    done = mica.ingest_json(str(tmp_path / "in.ndjson"), str(tmp_path / "t"), column="v", on_error="quarantine")
    assert done.bad_lines == 4
    (tmp_path / "t/_quarantine/note").write_bytes(b"\xff no line of ours: [1]\n[1]\n")
    found = mica.check_erased(str(tmp_path / "t"), PATH)
    [trace] = found.traces.to_pylist()
    assert trace["file"].startswith("_quarantine/")
    assert (trace["kind"], trace["count"], trace["goes_with"]) == ("lines", 1, "deletion")
    assert (found.current, found.ok) == (False, False)


def test_files_of_a_clones_source_hold_the_path_until_it_goes_there(tmp_path: Path) -> None:
    """Versions of the clone before its erase read them: it was told that nothing but bounds held the path."""
    source = made(tmp_path / "s", files=1)
    clone = source.clone(tmp_path / "c")
    assert places(clone)["erase"][0][0] == "values"
    clone.erase(PATH)
    clone.vacuum(0, enforce_retention=False)
    [value, name] = places(clone)["vacuum there"]
    assert (value[0], name[0]) == ("values", "names")
    assert value[1].startswith(f"file:{tmp_path}/s/part-")
    source.erase(PATH)
    source.vacuum(0, enforce_retention=False)
    assert set(places(clone)) == {"log cleanup"}


def test_columns_may_be_mapped_since_a_later_version(tmp_path: Path) -> None:
    """It was INVALID_SCHEMA_JSON: the older schema has no names of the mapping."""
    table = made(tmp_path / "t", files=1).set_properties({"delta.columnMapping.mode": "name"})
    table.rename_column("v", "w")
    found = mica.check_erased(table.path, "w:user.email")
    assert found.current
    table.erase("w:user.email")
    assert not mica.check_erased(table.path, "w:user.email").current


@pytest.mark.parametrize(("before", "after"), [("name", "none"), ("none", "name"), ("id", "none")])
def test_older_files_may_have_another_name_for_the_column(tmp_path: Path, before: str, after: str) -> None:
    """They were not looked at: nothing was told of files that versions before a replacement read."""
    place, mode = str(tmp_path / "t"), "delta.columnMapping.mode"
    first = {"delta.enableVariantShredding": "true", mode: before}
    for ddl in ("id INT, v INT", DDL):
        table = mica.Table.create(place, ddl, properties=first, mode="overwrite")
    table.append([row(1)])
    if after == "none":
        table.drop_feature("columnMapping")
    else:
        table = mica.Table.create(place, DDL, properties={mode: after}, mode="overwrite")
        table.append([row(2)])
    table.erase(PATH)
    told = places(mica.Table.open(place))
    assert [kind for kind, _ in told["vacuum"]] == ["values"] * 2
    assert len([kind for kind, _ in told["log cleanup"] if kind == "bounds"]) >= 2


def test_older_files_may_have_another_type_or_column_of_the_name(tmp_path: Path) -> None:
    """It was MALFORMED_SHREDDING; and a column that lives on is another one."""
    mica.Table.create(tmp_path, "id INT, v INT").append([{"id": 1, "v": 1}])
    table = mica.Table.create(tmp_path, "w VARIANT, v VARIANT", mode="overwrite")
    table.append([{"v": row(1)["v"], "w": row(2)["v"]}])
    table.set_properties({"delta.columnMapping.mode": "name"})
    table.rename_column("v", "x").rename_column("w", "v")
    table.erase(PATH)
    table.vacuum(0, enforce_retention=False)
    assert "erase" not in places(table)
    assert "vacuum" not in places(table)


@pytest.mark.parametrize("rewrite", ["erase", "reshred", "optimize"])
def test_a_collated_column_beside_skips_no_row_afterwards(tmp_path: Path, rewrite: str) -> None:
    """Files are written again, and their bounds by the collation with them."""
    place = tmp_path / "t"
    table = mica.Table.create(place, "id INT, s STRING COLLATE UTF8_LCASE, v VARIANT", properties=KEEP)
    for number, letter in enumerate("aAbB"):
        table.append([{**row(10 * number + n), "s": f"{letter}{n}"} for n in range(10)])
    wheres = ("s = 'A3'", "s >= 'B5'", "s IN ('a1', 'B2')", "s < 'a2'")

    def found() -> list[list[int]]:
        return [sorted(table.scan(where=where).to_arrow()["id"].to_pylist()) for where in wheres]

    before = found()
    assert before[0] == [3, 13]
    {
        "erase": lambda: table.erase(PATH),
        "reshred": lambda: table.reshred("STRUCT<n: INT>"),
        "optimize": table.optimize,
    }[rewrite]()
    assert table.version == 5
    assert found() == before
    assert mica.check(place).ok
