"""Files are read ahead of their turn, in order and within bounds."""

import contextvars
import threading
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest

from mica.tasks import ahead
from mica.tasks.ahead import AHEAD_BYTES, in_order
from mica.tasks.parts import FilePart


def parts(*sizes: int | None) -> list[FilePart]:
    return [FilePart(str(number), size) for number, size in enumerate(sizes)]


def batches(file: FilePart) -> Iterator[pa.RecordBatch]:
    for row in range(3):
        yield pa.record_batch({"file": [file.path], "row": [row]})


@pytest.mark.parametrize("readers", [1, 2, 8])
def test_the_rows_come_in_the_order_of_the_files(readers: int) -> None:
    files = parts(*[10] * 50, None, AHEAD_BYTES * 2, *[AHEAD_BYTES // 3] * 7, 1)
    found = pa.Table.from_batches(in_order(batches, files, readers))
    assert found.column("file").to_pylist() == [file.path for file in files for _ in range(3)]


def test_several_files_are_read_at_once() -> None:
    both = threading.Barrier(2, timeout=20)

    def waits(file: FilePart) -> Iterator[pa.RecordBatch]:
        both.wait()
        return batches(file)

    assert len(list(in_order(waits, parts(1, 1, 1, 1), 2))) == 12


def test_no_more_is_read_ahead_than_allowed() -> None:
    begun: list[str] = []

    def counts(file: FilePart) -> Iterator[pa.RecordBatch]:
        begun.append(file.path)
        return batches(file)

    rows = in_order(counts, parts(*[AHEAD_BYTES // 2] * 10), 8)
    next(rows)
    assert len(begun) <= 3
    rows.close()  # type: ignore[attr-defined]
    assert len(begun) <= 3


def test_where_few_rows_may_be_enough_little_is_read_ahead() -> None:
    begun: list[str] = []

    def counts(file: FilePart) -> Iterator[pa.RecordBatch]:
        begun.append(file.path)
        return batches(file)

    rows = in_order(counts, parts(*[1] * 60), 8, few=True)
    for file, most in enumerate([2, 5, 10, 19, 36]):
        assert [next(rows).column("file")[0].as_py() for _ in range(3)] == [str(file)] * 3
        assert file < len(begun) <= most
    rows.close()  # type: ignore[attr-defined]


def test_an_error_comes_in_its_turn() -> None:
    def fails(file: FilePart) -> Iterator[pa.RecordBatch]:
        if file.path == "3":
            raise ValueError(file.path)
        return batches(file)

    rows = in_order(fails, parts(*[1] * 6), 2)
    assert [next(rows).column("file")[0].as_py() for _ in range(9)] == ["0"] * 3 + ["1"] * 3 + ["2"] * 3
    with pytest.raises(ValueError, match="3"):
        next(rows)


@pytest.mark.parametrize(("once", "times"), [(True, 1), (False, 2)])
def test_what_writes_is_not_done_again(once: bool, times: int) -> None:
    begun: list[str] = []

    def fails(file: FilePart) -> Iterator[pa.RecordBatch]:
        begun.append(file.path)
        yield from batches(file)
        if file.path == "1":
            raise ValueError(file.path)

    with pytest.raises(ValueError, match="1"):
        list(in_order(fails, parts(1, 1, 1), 2, once=once))
    assert begun.count("1") == times


def test_of_groups_no_more_files_are_read_ahead_than_allowed() -> None:
    begun: list[int] = []

    def counts(files: Sequence[FilePart]) -> Iterator[pa.RecordBatch]:
        begun.append(len(files))
        return batches(files[0])

    groups = [parts(*[1] * count) for count in [4, 4, 4, 30, *[4] * 9]]
    rows = in_order(counts, groups, 8, most_files=10)
    next(rows)
    rows.close()  # type: ignore[attr-defined]
    assert len(begun) <= 2
    assert len(list(in_order(counts, groups, 8, most_files=10))) == 3 * len(groups)


def test_a_file_is_taken_in_the_context_of_its_task() -> None:
    task = contextvars.ContextVar[str]("task")
    task.set("this one")

    def named(file: FilePart) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"task": [task.get()]})

    found = pa.Table.from_batches(in_order(named, parts(1, 1, 1), 2))
    assert found.column("task").to_pylist() == ["this one"] * 3


def test_files_come_with_what_is_known_of_them() -> None:
    def told(known: tuple[FilePart, list[int] | None]) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"file": [known[0].path], "rows": [str(known[1])]})

    found = pa.Table.from_batches(in_order(told, zip(parts(5, 5), [[1], None], strict=True), 4))
    assert found.to_pylist() == [{"file": "0", "rows": "[1]"}, {"file": "1", "rows": "None"}]


def test_of_rows_no_more_wait_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "HELD_BYTES", 100)
    begun: list[str] = []

    def counts(file: FilePart) -> Iterator[pa.RecordBatch]:
        begun.append(file.path)
        for row in range(30):
            yield pa.record_batch({"file": [file.path], "row": [row]})

    found = pa.Table.from_batches(in_order(counts, parts(*[1] * 20), 4))
    assert found.column("file").to_pylist() == [str(file) for file in range(20) for _ in range(30)]
    assert found.column("row").to_pylist() == [*range(30)] * 20
    assert len(begun) == 40, "all are read in their turn"
