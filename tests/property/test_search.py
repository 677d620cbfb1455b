"""A search of pages spares no row that equals one of the texts, however these are stored: encodings, codecs, versions
and sizes of pages, with and without a page index, of the rows asked for alone, beside residuals of every kind. And it
spares what it can.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mica
from mica.schema.arrow import variant_field
from mica.variant import from_json, kernel
from mica.variant.kernel import FileReader, FileWriter, Request

Rows = list[tuple[int, int]]

#: Texts that share beginnings, and some that look like what residuals become as texts.
TEXTS = st.one_of(
    st.text("ab", max_size=6),
    st.sampled_from(["", "7", "true", '{"b":1}', "[1]", "null", "é", "abab" * 20, "abab" * 20 + "a"]),
)
ENCODINGS = [None, "PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"]
CODECS = ["none", "zstd", "snappy", "gzip", "lz4", "brotli"]


def ranges_of(draw: st.DrawFn, rows: int) -> Rows:
    edges = draw(st.one_of(st.just([0, rows]), st.lists(st.integers(0, rows), min_size=2, max_size=6, unique=True)))
    edges = sorted(edges)[: len(edges) // 2 * 2]
    return [(start, end) for start, end in zip(edges[::2], edges[1::2], strict=True) if start < end]


def spares_none(
    reader: FileReader, item: Request, wanted: list[str], ranges: Rows, equal: Callable[[int], bool]
) -> None:
    found = reader.search(item, pa.array(wanted, pa.string()), ranges)
    left = {row for start, end in found for row in range(start, end)}
    asked = {row for start, end in ranges for row in range(start, end)}
    assert left <= asked
    assert {row for row in asked if equal(row)} <= left


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.data())
def test_of_a_plain_column(tmp_path: Path, data: st.DataObject) -> None:
    texts = data.draw(st.lists(st.one_of(st.none(), TEXTS), min_size=1, max_size=40))
    encoding = data.draw(st.sampled_from(ENCODINGS))
    path = tmp_path / f"{uuid4()}.parquet"
    pq.write_table(
        pa.table({"c": pa.array(texts, pa.string())}), path, compression=data.draw(st.sampled_from(CODECS)),
        use_dictionary=encoding is None, column_encoding=None if encoding is None else {"c": encoding},
        row_group_size=data.draw(st.sampled_from([7, 100])), data_page_size=1,
        write_batch_size=data.draw(st.integers(1, 9)),
        data_page_version=data.draw(st.sampled_from(["1.0", "2.0"])), write_page_index=data.draw(st.booleans()),
        dictionary_pagesize_limit=data.draw(st.sampled_from([10, 1000])),
    )  # fmt: skip
    reader = FileReader(name="f", path=str(path))
    for wanted in data.draw(st.lists(st.lists(TEXTS, min_size=1, max_size=3), min_size=1, max_size=4)):
        ranges = ranges_of(data.draw, len(texts))
        spares_none(reader, Request(("c",)), wanted, ranges, lambda row, w=wanted: texts[row] in w)


VALUES = st.one_of(
    TEXTS.map(json.dumps), st.sampled_from(["7", "true", "null", '{"b":1}', '{"$link":"abab"}', "[1]", "1.5", "[]"])
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.data())
def test_of_a_path_beside_its_residuals(tmp_path: Path, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.one_of(st.none(), VALUES), min_size=1, max_size=30))
    documents = ["{}" if value is None else f'{{"a":{value}}}' for value in values]
    batch = pa.record_batch([from_json(pa.array(documents))], schema=pa.schema([variant_field("v")]))
    shredded = kernel.shred(batch, {("v",): pa.struct([("a", pa.string())])})
    path = str(tmp_path / f"{uuid4()}.parquet")
    group, page = data.draw(st.sampled_from([4, 100])), data.draw(st.integers(1, 9))
    writer = FileWriter(
        shredded.schema, path=path, row_group_rows=group, page_rows=page,
        compression=data.draw(st.sampled_from(["none", "zstd", "snappy"])),
    )  # fmt: skip
    for start in range(0, len(values), page):
        writer.write(shredded.slice(start, page))
    writer.close()
    item = Request(("v",), ("a",), pa.string())
    texts = kernel.extract(batch, [item]).column(0).to_pylist()
    reader = FileReader(name="f", path=path)
    for wanted in data.draw(st.lists(st.lists(TEXTS, min_size=1, max_size=3), min_size=1, max_size=4)):
        ranges = ranges_of(data.draw, len(values))
        spares_none(reader, item, wanted, ranges, lambda row, w=wanted: texts[row] in w)
        for text in wanted:
            where = "v:a::string = '" + text.replace("'", "''") + "'"
            found = mica.read_parquet(path, where=where, columns={"a": "v:a::string"}).to_arrow()
            assert found.num_rows == texts.count(text)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_one_page_is_left_for_an_identifier(tmp_path: Path, encoding: str | None, codec: str, version: str) -> None:
    names = [f"{n * 7919 % 10_007:05}-{n}" for n in range(1000)]
    path = tmp_path / "f.parquet"
    pq.write_table(
        pa.table({"c": names}), path, compression=codec, use_dictionary=encoding is None, row_group_size=500,
        column_encoding=None if encoding is None else {"c": encoding}, data_page_version=version, data_page_size=1,
        write_batch_size=100,
    )  # fmt: skip
    reader = FileReader(name="f", path=str(path))

    def left(*wanted: str) -> Rows:
        return reader.search(Request(("c",)), pa.array(wanted), [(50, 1000)])

    assert left("none of them") == []
    # Of a column chunk that is all in a dictionary only this is read.
    assert left(names[642]) == ([(500, 1000)] if encoding is None else [(600, 700)])
    assert left(names[7]) == ([(50, 500)] if encoding is None else [(50, 100)])
    # What stands in most pages is not looked for in the rest.
    assert left(names[120], names[299], names[345], names[444], names[999])[-1][1] == 1000


def test_residuals_that_are_no_such_text_do_not_hinder(tmp_path: Path) -> None:
    texts = [f'{{"a":"id{n}"}}' for n in range(8)]
    texts[1], texts[5], texts[6] = '{"a":{"$link":"id1"}}', '{"a":["id5"]}', '{"a":null}'
    batch = pa.record_batch([from_json(pa.array(texts))], schema=pa.schema([variant_field("v")]))
    shredded = kernel.shred(batch, {("v",): pa.struct([("a", pa.string())])})
    path = str(tmp_path / "f.parquet")
    writer = FileWriter(shredded.schema, path=path, row_group_rows=4)
    writer.write(shredded)
    writer.close()
    reader = FileReader(name="f", path=path)

    def left(text: str, *untyped: int) -> Rows:
        item = Request(("v",), ("a",), pa.string(), untyped_in=untyped)
        return reader.search(item, pa.array([text]), [(0, 8)])

    assert left("id1") == left("no") == []
    assert left("id2") == [(0, 4)]
    assert left("id2", 0) == []
    assert left('{"$link":"id1"}') == [(0, 4)]
    assert left('["id5"]') == left('["id6"]', 0) == [(4, 8)]
