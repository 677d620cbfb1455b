"""Threads read files at once where each reads enough of its file; answers are the same with one and with several."""

from pathlib import Path

import mica
from mica.engines import local
from mica.tasks.parts import FilePart
from mica.tasks.workers import WORTH, workers


def test_little_of_each_file_is_read_by_one_thread(tmp_path: Path) -> None:
    table = mica.Table.create(str(tmp_path / "t"), "n BIGINT, v VARIANT")
    files = [FilePart(str(number), size) for number, size in enumerate([2 * WORTH, 4 * WORTH])]

    def asked(columns: object, where: str | None = None) -> int:
        return workers(table.scan(columns=columns, where=where).spec(), files, 3)

    assert asked(["v"]) == asked(["n", "v"]) == 3
    assert asked({"a": "v:a::int"}) == asked(["n"]) == asked({"a": "v:a::int"}, "v:b::int = 1") == 1
    assert asked({f"p{n}": f"v:p{n}::int" for n in range(8)}) == 3
    assert workers(table.scan(columns=["n"]).spec(), [FilePart("large", 16 * WORTH)], 3) == 3
    assert workers(table.scan(columns=["n"]).spec(), [], 3) == 3


def test_the_rows_are_the_same(tmp_path: Path) -> None:
    table = mica.Table.create(str(tmp_path / "t"), "v VARIANT")
    for number in range(5):
        table.append([{"v": {"n": number, "t": "x" * number}}])
    path, whole = table.scan(columns={"n": "v:n::int"}), table.scan()
    assert workers(path.spec(), path.whole_files(), local.threads()) == 1
    assert path.to_arrow()["n"].to_pylist() == [row["n"] for row in whole.to_pandas()["v"]] == list(range(5))
    assert table.scan(where="v:n::int > 1").count() == 3
