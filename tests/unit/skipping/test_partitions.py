"""Which files are in the partitions of others."""

from __future__ import annotations

import pyarrow as pa

from mica.schema.ddl import parse_ddl
from mica.skipping.partitions import those_of


def files(*values: dict[str, str | None]) -> pa.Table:
    maps = pa.array([list(one.items()) for one in values], pa.map_(pa.string(), pa.string()))
    return pa.table({"partition_values": maps})


def test_files_are_in_a_partition_by_the_values_of_all_its_columns() -> None:
    schema = parse_ddl("p STRING, q STRING, n INT")
    wanted = files({"p": "a", "q": "1:b"}, {"p": None, "q": "x"}, {"p": "ß", "q": None})
    found = those_of(schema, ("p", "q"), wanted, timezone="UTC")
    others = files(
        {"p": "a", "q": "1:b"}, {"p": "a:3", "q": "b"}, {"p": "a", "q": "x"}, {"p": None, "q": "x"},
        {"p": "null", "q": "x"}, {"p": "ß", "q": None}, {"p": "ß", "q": "null"}, {"p": None, "q": None},
    )  # fmt: skip
    assert found(others).to_pylist() == [True, False, False, True, False, True, False, False]
    assert found(files()).to_pylist() == []
    assert those_of(schema, ("p", "q"), files(), timezone="UTC")(others).to_pylist() == [False] * 8


def test_a_value_is_the_same_however_a_writer_spells_it() -> None:
    schema = parse_ddl("t TIMESTAMP, d DATE")
    given = files({"t": "2024-07-01T10:00:00.000000Z", "d": "2024-07-01"})
    found = those_of(schema, ("t", "d"), given, timezone="Europe/Berlin")
    others = files({"t": "2024-07-01 12:00:00", "d": "2024-07-01"}, {"t": "2024-07-01 10:00:00", "d": "2024-07-01"})
    assert found(others).to_pylist() == [True, False]
