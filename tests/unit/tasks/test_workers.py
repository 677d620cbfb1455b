"""Threads read files at once where each reads enough of its file; answers are the same with one and with several."""

from pathlib import Path

import mica
from mica.engines import local
from mica.tasks.parts import FilePart
from mica.tasks.workers import ALONE, WORTH, workers


def test_little_of_each_file_is_read_by_one_thread(tmp_path: Path) -> None:
    table = mica.Table.create(str(tmp_path / "t"), "n BIGINT, v VARIANT")
    files = [FilePart(str(number), size) for number, size in enumerate([2 * WORTH, 4 * WORTH])]
    many = [FilePart(str(number), 2 << 20) for number in range(40)]

    def asked(files: list[FilePart], columns: object, where: str | None = None) -> int:
        return workers(table.scan(columns=columns, where=where).spec(), files, 3)

    assert asked(files, ["v"]) == asked(files, ["n", "v"]) == 3
    assert asked(many, {f"p{n}": f"v:p{n}::string" for n in range(2)}) == 3
    assert asked(many[:1], {f"p{n}": f"v:p{n}::string" for n in range(2)}) == 1
    assert asked(many, {"a": "v:a::string"}) == 3
    assert asked([FilePart(str(number), 5 << 18) for number in range(40)], {"a": "v:a::string"}) == 1
    assert asked(files, {"a": "v:a::string"}) == 1
    assert asked([], ["n"]) == 3


def test_little_in_all_is_read_by_one_thread(tmp_path: Path) -> None:
    """Numbers that are read as they are take less time than texts, and than what is computed of them."""
    table = mica.Table.create(str(tmp_path / "t"), "n BIGINT, v VARIANT")

    def asked(size: int, columns: object, where: str | None = None) -> int:
        parts = [FilePart("large", size, part=part, parts=2) for part in range(2)]
        return workers(table.scan(columns=columns, where=where).spec(), parts, 3)

    texts, numbers, computed = {"a": "v:a::string"}, {"a": "v:a::int", "n": "n"}, {"a": "v:a::int + n"}
    assert [asked(size, texts) for size in (16 * ALONE - 2, 16 * ALONE)] == [1, 3]
    assert [asked(size, numbers) for size in (24 * ALONE - 2, 24 * ALONE)] == [1, 3]
    assert [asked(size, computed) for size in (8 * ALONE - 2, 8 * ALONE)] == [1, 3]
    assert [asked(size, numbers, "n > 1") for size in (8 * ALONE - 2, 8 * ALONE)] == [1, 3]


def test_the_rows_are_the_same(tmp_path: Path) -> None:
    table = mica.Table.create(str(tmp_path / "t"), "v VARIANT")
    for number in range(5):
        table.append([{"v": {"n": number, "t": "x" * number}}])
    path, whole = table.scan(columns={"n": "v:n::int"}), table.scan()
    assert workers(path.spec(), path.whole_files(), local.threads()) == 1
    assert path.to_arrow()["n"].to_pylist() == [row["n"] for row in whole.to_pandas()["v"]] == list(range(5))
    assert table.scan(where="v:n::int > 1").count() == 3
