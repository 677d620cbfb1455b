"""One commit for all of a write: appends that name a version of a collation join each other; nothing is left behind."""

from pathlib import Path

import orjson
import pyarrow as pa
import pytest

from mica import writing
from mica.errors import ConflictError, CorruptDataError
from mica.table import Table
from mica.tasks.write import FACTS
from mica.writing import Target, open_target


def target(table: Table, version: str, *, mode: str = "append") -> Target:
    """A write without files, which has bounds of a collation to name."""
    made = open_target(
        table.snapshot.storage, table.schema, (), mode=mode, operation="WRITE", properties={}, snapshot=table.snapshot
    )  # type: ignore[arg-type]
    made.versions = (["icu.de"], version)
    return made


def test_the_version_that_another_named_meanwhile_stays(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "s STRING COLLATE de")
    one, other, same = target(table, "78.3"), target(table, "79.1"), target(table, "78.3")
    assert [t.commit(FACTS.empty_table()).version for t in (one, other, same)] == [1, 2, 3]
    found = table.refresh().snapshot.domains["collations"]
    assert orjson.loads(found) == {"writeVersions": {"icu.de": ["78.3", "79.1"]}}


def test_an_overwrite_does_not_join(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "s STRING COLLATE de")
    late = target(table, "79.1", mode="overwrite")
    target(table, "78.3").commit(FACTS.empty_table())
    with pytest.raises(ConflictError):
        late.commit(FACTS.empty_table())


def test_files_whose_bounds_cannot_be_made_do_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: object) -> None:
        raise CorruptDataError("LOST", "the session is gone")

    table = Table.create(tmp_path / "t", "s STRING COLLATE UTF8_LCASE")
    monkeypatch.setattr(writing, "bounds_of_facts", lost)
    with pytest.raises(CorruptDataError):
        table.append(pa.table({"s": ["a"]}))
    assert [f.name for f in (tmp_path / "t").iterdir()] == ["_delta_log"]
    assert Table.open(tmp_path / "t").version == 0
