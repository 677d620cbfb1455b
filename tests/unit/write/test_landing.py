"""A folder that grows becomes a table: each file once, whatever is killed."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import mica
from mica.errors import MicaError
from mica.log.transaction import Transaction
from mica.storage import Storage
from mica.storage.local import LocalStorage
from mica.write.landing import drift
from tests.faulty_s3 import FaultyS3
from tests.killed import TIMES, Run


def put(folder: Path, name: str, *documents: object) -> None:
    folder.mkdir(exist_ok=True)
    hidden = folder / f"_{name}"
    hidden.write_text("".join(f"{json.dumps(one)}\n" for one in documents))
    hidden.rename(folder / name)


def ids(table: Path) -> list[int]:
    found = mica.Table.open(table).scan(columns={"id": "v:id::int"}).to_arrow()
    return sorted(found.column("id").to_pylist())


def test_a_wrong_size_names_its_option(tmp_path: Path) -> None:
    with pytest.raises(MicaError, match="max_bytes"):
        mica.stream_json(tmp_path, tmp_path / "t", max_bytes="many")


def test_an_option_that_is_not_there_is_named_with_the_stream_s_own(tmp_path: Path) -> None:
    with pytest.raises(MicaError, match="stream_json has no option 'intervall'") as near:
        mica.stream_json(tmp_path, tmp_path / "t", intervall=3)
    assert near.value.hint == "The nearest one is interval."
    with pytest.raises(MicaError, match="stream_json has no option 'zzz'") as far:
        mica.stream_json(tmp_path, tmp_path / "t", zzz=3)
    assert far.value.hint is not None
    there = far.value.hint.removeprefix("There are ").rstrip(".").split(", ")
    assert {"interval", "max_files", "max_bytes", "spark", "sort_by"} <= {*there}
    assert not {"mode", "idempotent", "txn"} & {*there}


@pytest.mark.parametrize("source", [".", "*", "./**"])
def test_the_table_may_lie_in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    monkeypatch.chdir(tmp_path)
    put(tmp_path, "a.json", {"id": 1})
    put(tmp_path, "table.json", {"id": 2})
    assert [report.input_files for report in mica.stream_json(source, "table")] == [2]
    put(tmp_path, "b.json", {"id": 3})
    assert [report.input_files for report in mica.stream_json(source, "table")] == [1]
    assert ids(tmp_path / "table") == [1, 2, 3]


def test_each_file_is_taken_once_in_batches(tmp_path: Path) -> None:
    landing, table = tmp_path / "landing", tmp_path / "table"
    for number in range(5):
        put(landing, f"{number}.json", {"id": number})
    put(landing, "[odd] *.json", {"id": 5})
    (landing / ".part").write_text("{")
    reports = list(mica.stream_json(landing, table, max_files=4))
    assert [report.input_files for report in reports] == [4, 2]
    assert list(mica.stream_json(landing, table)) == []
    put(landing, "later.json", {"id": 6}, {"id": 7})
    (report,) = mica.stream_json(f"{landing}/*.json", table, max_bytes=1)
    assert (report.rows, ids(table)) == (2, list(range(8)))


def test_a_partition_s_directory_is_data_whatever_its_name(tmp_path: Path) -> None:
    landing = tmp_path / "landing"
    for number, folder in enumerate(("_day=1", "_tmp", "day=2")):
        (landing / folder).mkdir(parents=True)
        put(landing / folder, "a.json", {"id": number})
    list(mica.stream_json(landing, tmp_path / "table"))
    assert ids(tmp_path / "table") == [0, 2]


def test_a_table_may_change_between_batches(tmp_path: Path) -> None:
    landing, table = tmp_path / "landing", tmp_path / "table"
    for number in range(6):
        put(landing, f"{number}.json", {"id": number})
    reports = mica.stream_json(landing, table, max_files=2)
    next(reports)
    mica.Table.open(table).add_columns("more INT")
    next(reports)
    shutil.rmtree(table)
    mica.Table.create(table, "v VARIANT")
    assert sum(report.rows for report in reports) == 6  # none of them is in the new table
    assert ids(table) == list(range(6))


@pytest.mark.parametrize("change", ["property", "column", "identity"])
def test_a_table_may_change_while_a_batch_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    columns = "v VARIANT, k BIGINT GENERATED ALWAYS AS IDENTITY" if change == "identity" else "v VARIANT"
    table = mica.Table.create(tmp_path / "t", columns)
    (tmp_path / "in").mkdir()
    for name in "abc":
        (tmp_path / "in" / f"{name}.ndjson").write_text('{"a": 1}')
    changes: dict[str, Callable[[], object]] = {
        "property": lambda: table.set_properties({"own": "x"}),
        "column": lambda: table.add_columns("late INT"),
        "identity": lambda: table.append([{"v": "1"}]),
    }
    left, commit = [changes[change]], Transaction._put

    def beside(self: Transaction, version: int, data: bytes) -> bool:
        if left:
            left.pop()()
        return commit(self, version, data)

    monkeypatch.setattr(Transaction, "_put", beside)
    assert sum(report.rows for report in mica.stream_json(tmp_path / "in", tmp_path / "t", max_files=1)) == 3
    assert mica.Table.open(tmp_path / "t").count() == 3 + (change == "identity")


def test_it_waits_for_files_that_come(tmp_path: Path) -> None:
    landing, table = tmp_path / "landing", tmp_path / "table"
    put(landing, "1.json", {"id": 1})
    reports = mica.stream_json(landing, table, interval=0.05)
    assert next(reports).rows == 1
    put(landing, "2.json", {"id": 2})
    assert next(reports).rows == 1
    reports.close()  # type: ignore[attr-defined]
    assert ids(table) == [1, 2]


def test_a_report_says_what_drifts(tmp_path: Path) -> None:
    landing, table = tmp_path / "landing", tmp_path / "table"
    put(landing, "1.json", *({"id": i, "kind": "a", "at": {"x": i}} for i in range(50)))
    (report,) = mica.stream_json(landing, table)
    assert report.notes == []
    put(landing, "2.json", *({"id": i, "kind": i, "at": {"x": i, "y": "new"}} for i in range(50)))
    (report,) = mica.stream_json(landing, table)
    assert report.notes == ["v:at.y is new: STRING", "v:kind was STRING and is BIGINT"]


def test_a_file_that_grows_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    landing, table = tmp_path / "landing", tmp_path / "table"
    put(landing, "1.json", {"id": 1})
    assert [report.rows for report in mica.stream_json(landing, table)] == [1]
    put(landing, "1.json", {"id": 1}, {"id": 2})
    with pytest.raises(mica.UserError, match="another name to take it whole") as raised:
        next(mica.stream_json(landing, table))
    assert raised.value.code == "INPUT_CHANGED"
    (landing / "1.json").rename(landing / "2.json")
    assert [report.rows for report in mica.stream_json(landing, table)] == [2]
    assert ids(table) == [1, 1, 2]


def test_drift_of_many_paths_is_short() -> None:
    assert drift({"v:a": "INT"}, {"v:a": "INT"}) == []
    notes = drift({}, {f"v:p{i}": "INT" for i in range(20)})
    assert (len(notes), notes[-1]) == (9, "12 more paths are new or have another type")


def test_a_file_of_a_store_is_no_folder_and_an_empty_folder_is_nothing_new() -> None:
    with FaultyS3() as store:
        Storage.open("s3://b/in", store.options).put("a.json", b'{"id":1}')
        with pytest.raises(MicaError) as raised:
            list(mica.stream_json("s3://b/in/a.json", "s3://b/table", storage_options=store.options))
        assert raised.value.code == "NOT_A_FILE"
        assert list(mica.stream_json("s3://b/none", "s3://b/table", storage_options=store.options)) == []
        [report] = mica.stream_json("s3://b/in", "s3://b/table", storage_options=store.options)
        assert report.rows == 1


def test_wrong_places_and_options_are_errors(tmp_path: Path) -> None:
    put(tmp_path, "file.json", {"id": 1})
    for source, code in ((tmp_path / "none", "NOT_FOUND"), (tmp_path / "file.json", "NOT_A_FILE")):
        with pytest.raises(MicaError) as raised:
            list(mica.stream_json(source, tmp_path / "table"))
        assert raised.value.code == code
    with pytest.raises(MicaError, match="no option of stream_json"):
        mica.stream_json(tmp_path, tmp_path / "table", idempotent=False)
    with pytest.raises(MicaError, match=r"no option .colum.\nThe nearest"):
        mica.stream_json(tmp_path, tmp_path / "table", colum="v")
    bad = tmp_path / "bad"
    put(bad, "1.json", {"id": 1})
    (bad / "2.json").write_text('{"id": 2}\n{"id": \n')
    with pytest.raises(MicaError) as raised:
        list(mica.stream_json(bad, tmp_path / "table", max_files=10))
    assert raised.value.code == "INVALID_JSON"
    (report,) = mica.stream_json(bad, tmp_path / "table", on_error="quarantine")
    assert (report.rows, report.bad_lines) == (2, 1)


RUN = """
    import sys
    import mica

    print("begun", flush=True)
    for report in mica.stream_json(sys.argv[1], sys.argv[2], max_files=2):
        print(report.version, flush=True)
"""


def test_a_stream_that_is_killed_has_every_row_once(tmp_path: Path, rng: random.Random) -> None:
    landing, table, count = tmp_path / "landing", tmp_path / "table", 0
    for _ in range(TIMES):
        for _ in range(12):
            put(landing, f"{count}.json", {"id": count}, {"id": count + 1})
            count += 2
        run = Run(RUN, landing, table)
        run.wait()
        run.kill(rng, 0.2)
    list(mica.stream_json(landing, table))
    assert ids(table) == list(range(count))
    assert mica.check(table).ok


def test_streams_at_once_share_the_files(tmp_path: Path) -> None:
    landing, table = tmp_path / "landing", tmp_path / "table"
    for number in range(60):
        put(landing, f"{number}.json", {"id": number})
    mica.Table.create(table, "v VARIANT")
    with ThreadPoolExecutor(3) as pool:
        reports = list(pool.map(lambda _: list(mica.stream_json(landing, table, max_files=4)), range(3)))
    assert sum(report.input_files for each in reports for report in each) == 60
    assert ids(table) == list(range(60))
    assert len(mica.Table.open(table).snapshot.app_transactions) == 1


def test_the_table_may_be_named_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    put(tmp_path / "real", "a.json", {"id": 1})
    for source, table in (("real", "link/t"), ("link", "real/t")) * 2:
        list(mica.stream_json(tmp_path / source, tmp_path / table))
    assert ids(tmp_path / "real/t") == [1]


def test_a_poll_makes_the_name_of_each_file_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder may have a million files, and each poll names all of them."""
    landing, table = tmp_path / "landing", tmp_path / "table"
    for number in range(3):
        put(landing, f"{number}.json", {"id": number})
    list(mica.stream_json(landing, table))
    asked: list[str] = []
    path = LocalStorage.path
    monkeypatch.setattr(LocalStorage, "path", lambda self, rel: asked.append(rel) or path(self, rel))
    assert list(mica.stream_json(landing, table)) == []
    assert [rel for rel in asked if rel.endswith(".json") and "/" not in rel] == ["0.json", "1.json", "2.json"]
