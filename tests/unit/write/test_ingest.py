"""Ingests in process: what the lines of a file become, and what happens to those that cannot be read."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mica
from mica import variant
from mica.engines import local
from mica.log.transaction import Transaction
from mica.tasks import ingest
from mica.tasks.ingest import IngestSpec, open_reader
from mica.variant import kernel
from mica.write import inputs
from mica.write.target import Target


def _ingest(tmp_path: Path, text: str, **options: Any) -> mica.IngestReport:
    (tmp_path / "in.json").write_text(text)
    return mica.ingest_json(tmp_path / "in.json", tmp_path / "table", **options)


def _documents(tmp_path: Path) -> list[Any]:
    found: list[Any] = mica.Table.open(tmp_path / "table").scan(columns=["v"]).to_pandas()["v"].tolist()
    return found


def test_names_match_without_regard_to_case(tmp_path: Path) -> None:
    _ingest(tmp_path, '{"a":"x"}', columns={"Day": "v:a::string"})
    _ingest(tmp_path, '{"a":"y"}', columns={"day": "V:a::string"})
    _ingest(tmp_path, '{"a":"z"}', column="V", columns={"DAY": "v:a::string"}, sort_by=["DaY"])
    assert mica.Table.open(tmp_path / "table").scan(columns=["Day"]).to_arrow()["Day"].to_pylist() == ["x", "y", "z"]


@pytest.mark.parametrize(
    ("text", "documents"),
    [
        ("[1,2]\n[3]\n", [[1, 2], [3]]),
        ('[1,2]\n{"a":1}', [[1, 2], {"a": 1}]),
        ("[1,2]\n\n", [1, 2]),
        ("[1,\n2]\n", [1, 2]),
        ('{\n "a": 1\n}\n{"a":2}', [{"a": 1}, {"a": 2}]),
        ('{"a":[{"x":1},\n{"x":2}]}\n', [{"a": [{"x": 1}, {"x": 2}]}]),
    ],
)
def test_an_array_or_lines_of_documents(tmp_path: Path, text: str, documents: list[Any]) -> None:
    _ingest(tmp_path, text)
    assert _documents(tmp_path) == documents


@pytest.mark.parametrize("zeros", [1, 512, 100_000])
@pytest.mark.parametrize("text", ['{\n "a": 1\n}\n{"a":2}', '{"a": 1}\n{"a":2}\n', '[{"a": 1},\n{"a":2}]'])
def test_zeros_behind_gzip_are_read_past(tmp_path: Path, text: str, zeros: int) -> None:
    (tmp_path / "in.json.gz").write_bytes(gzip.compress(text.encode()) + bytes(zeros))
    mica.ingest_json(tmp_path / "in.json.gz", tmp_path / "table")
    assert _documents(tmp_path) == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize(
    ("name", "format_", "documents"),
    [
        ("a.json", "auto", [1, 2]),
        ("a.ndjson", "auto", [[1, 2]]),
        ("a.jsonl", "auto", [[1, 2]]),
        ("a.json", "ndjson", [[1, 2]]),
        ("a.ndjson", "json", [1, 2]),
    ],
)
def test_an_array_alone_on_its_line_is_what_the_caller_or_the_name_says(
    tmp_path: Path, name: str, format_: str, documents: list[Any]
) -> None:
    (tmp_path / name).write_text("[1,2]\n")
    (split,) = inputs.find(tmp_path / name, format=format_)
    spec = IngestSpec(write=None, column="v")  # type: ignore[arg-type] - nothing is written
    reader = open_reader(spec, split)
    batch = reader.next_batch(pa.null(), 100, 1 << 20).to_arrow()
    assert variant.to_python(kernel.unshred(batch).column(0)) == documents


def test_two_arrays_on_a_line_are_no_rows(tmp_path: Path) -> None:
    with pytest.raises(mica.CorruptDataError, match="line 1, column 6") as caught:
        _ingest(tmp_path, "[1,2][3,4]")
    assert caught.value.code == "INVALID_JSON"
    with pytest.raises(mica.CorruptDataError, match=r"line 3, column 1.*after the array"):
        _ingest(tmp_path, "[1,\n2]\n[3]")


@pytest.mark.parametrize("first", ['{"a":1,', "{", '{"a":['])
def test_a_first_line_that_was_cut_short_spoils_itself_alone(tmp_path: Path, first: str) -> None:
    report = _ingest(tmp_path, f'{first}\n{{"a":2}}\n{{"a":3}}\n', on_error="quarantine")
    assert (report.rows, report.bad_lines, _documents(tmp_path)) == (2, 1, [{"a": 2}, {"a": 3}])


@pytest.mark.parametrize("small", ["1\n", '{"header": 1}\n', "\n", '{"a": "no number"}\n' * 3])
def test_rows_of_the_larger_input_say_which_columns_a_file_has(tmp_path: Path, small: str) -> None:
    """A line or two before it, or behind it, change neither columns nor the order of rows."""
    for name in ("a", "c", "d"):
        (tmp_path / f"{name}.ndjson").write_text(small)
    (tmp_path / "b.ndjson").write_text("".join(f'{{"a": {i}}}\n' for i in range(10_000)))
    mica.ingest_json(f"{tmp_path}/*.ndjson", tmp_path / "t")
    table = mica.Table.open(tmp_path / "t")
    [path] = (tmp_path / "t").glob("*.parquet")
    assert pa.types.is_int64(
        pq.read_schema(path).field("v").type.field("typed_value").type.field("a").type.field(1).type
    )
    found = table.scan(columns={"a": "try_variant_get(v, '$.a', 'bigint')"}).to_arrow()["a"].drop_null().to_pylist()
    assert found == list(range(10_000))


def test_rows_are_not_sorted_by_what_has_no_order(tmp_path: Path) -> None:
    with pytest.raises(mica.UserError, match="VARIANT") as caught:
        _ingest(tmp_path, '{"a":1}\n{"a":2}', sort_by=["v:a"])
    assert caught.value.code == "TYPE_MISMATCH"
    assert not (tmp_path / "table").exists()


@pytest.mark.parametrize(
    "options", [{}, {"sort_by": ["v:a::int"]}, {"columns": {"a": "v:a::int"}, "partition_by": ["a"]}]
)
def test_bad_lines_are_counted_whoever_reads_them(tmp_path: Path, options: dict[str, Any]) -> None:
    report = _ingest(tmp_path, '{"a":1}\n{"a":,}\n{"a":2}\nno\n', on_error="quarantine", **options)
    assert (report.rows, report.bad_lines) == (2, 2)
    assert report.quarantine is not None
    (kept,) = Path(report.quarantine).iterdir()
    assert kept.read_text().count('"line":') == 2


@pytest.mark.parametrize(
    ("options", "codes"),
    [
        ({"columns": {"n": "v:n::int"}}, {"INVALID_CAST"}),
        ({"columns": {"n": "v:n::int"}, "partition_by": ["n"]}, {"INVALID_CAST"}),
        ({"columns": {"n": "v:n::int"}, "sort_by": ["v:at::date"]}, {"INVALID_CAST"}),
        ({"columns": {"n": "try_variant_get(v, '$.n', 'int')"}}, {"NULL_IN_NOT_NULL_COLUMN"}),
        ({"columns": {"n": "coalesce(try_variant_get(v, '$.n', 'int'), -1)"}}, {"CONSTRAINT_VIOLATED"}),
        ({"columns": {"m": "1"}, "sort_by": ["v:n::int"]}, {"INVALID_CAST", "NULL_IN_NOT_NULL_COLUMN"}),
    ],
)
def test_documents_that_make_no_row_are_kept_as_bad_lines_are(
    tmp_path: Path, options: dict[str, Any], codes: set[str]
) -> None:
    table = mica.Table.create(
        tmp_path / "table",
        "id BIGINT GENERATED BY DEFAULT AS IDENTITY, v VARIANT, n INT NOT NULL, m INT",
        partition_by=options.get("partition_by", []),
    )
    table.add_constraint("natural", "n >= 0 AND id >= 1")
    if "m" in options["columns"]:
        table.set_properties({"mica.ingest.columns": "{\"n\": \"try_variant_get(v, '$.n', 'int')\"}"})
    given = [{"n": 1}, {"n": "x", "at": "2026-01-01"}, {"n": 2}, {"n": [3]}, {"n": 4}]
    lines = "".join(f"{json.dumps(document)}\n" for document in given)
    with pytest.raises(mica.MicaError):
        _ingest(tmp_path, lines, **options)
    report = _ingest(tmp_path, lines + "no\n", on_error="quarantine", **options)
    assert (report.rows, report.bad_lines) == (3, 3)
    found = mica.Table.open(tmp_path / "table").scan(columns=["id", "n"]).to_arrow().to_pydict()
    assert sorted(found["n"]) == [1, 2, 4]
    assert len(set(found["id"])) == 3
    assert report.quarantine is not None
    kept = [json.loads(line) for path in Path(report.quarantine).iterdir() for line in path.read_text().splitlines()]
    assert [json.loads(line["text"]) for line in kept if line["line"] is None] == [given[1], given[3]]
    assert {line["reason"].split("]")[0].strip("[") for line in kept if line["line"] is None} <= codes


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_partition_is_one_file_though_its_rows_come_among_many_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_disk: bool
) -> None:
    if on_disk:
        monkeypatch.setattr(local, "SORT_BYTES", 1)
    lines = "".join(f'{{"n": {n}, "p": {n % 100}}}\n' for n in range(5_000)) + '{"n": 1, "p": "x"}\nno\n'
    report = _ingest(tmp_path, lines, columns={"p": "v:p::int"}, partition_by=["p"], on_error="quarantine")
    assert (report.rows, report.files, report.bad_lines) == (5_000, 100, 2)
    rows = mica.Table.open(tmp_path / "table").scan("p = 7", columns={"n": "v:n::int", "p": "p"}).to_arrow()
    assert sorted(rows["n"].to_pylist()) == list(range(7, 5_000, 100))


def test_a_limit_beyond_spark_is_refused(tmp_path: Path) -> None:
    with pytest.raises(mica.UserError, match="max_size"):
        _ingest(tmp_path, "1", max_size="129MB")


def test_a_time_zone_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(mica.UserError) as caught:
        _ingest(tmp_path, "{}", timezone="Nowhere/At_All")
    assert caught.value.code == "UNKNOWN_TIME_ZONE"
    assert not (tmp_path / "table").exists()


def test_paths_for_statistics_are_checked_before_anything_is_written(tmp_path: Path) -> None:
    for text, code in (("v.a", "INVALID_PROPERTY"), ("w:a", "UNKNOWN_COLUMN")):
        with pytest.raises(mica.UserError) as caught:
            _ingest(tmp_path, "{}", properties={"mica.variantStats.paths": text})
        assert caught.value.code == code
        assert not (tmp_path / "table").exists()


def test_bytes_that_are_not_utf8_are_refused_with_their_place_or_replaced(tmp_path: Path) -> None:
    source = tmp_path / "in.json"
    source.write_bytes(b'{"a":"\xc3\xa9"}\n{"a":"\xe9t\xe9"}\n{"a":"z"}\n')
    with pytest.raises(
        mica.CorruptDataError, match=r"in\.json, line 2, column 7: the byte 0xe9 is not UTF-8"
    ) as caught:
        mica.ingest_json(source, tmp_path / "table")
    assert caught.value.code == "INVALID_UTF8"
    report = mica.ingest_json(source, tmp_path / "table", on_error="quarantine")
    assert (report.rows, report.bad_lines) == (2, 1)
    mica.ingest_json(source, tmp_path / "table", mode="overwrite", invalid_utf8="replace")
    assert _documents(tmp_path) == [{"a": "é"}, {"a": "\ufffdt\ufffd"}, {"a": "z"}]


def test_a_later_run_computes_the_columns_of_the_first(tmp_path: Path) -> None:
    _ingest(tmp_path, '{"a":"x"}', columns={"day": "v:a::string", "n": "v:n::int"}, partition_by=["day"])
    _ingest(tmp_path, '{"a":"y","n":2}')
    report = _ingest(tmp_path, '{"a":"z","n":3}', columns={"N": "v:n::int + 1"})
    assert report.notes == [
        "the column 'N' is computed as v:n::int + 1 in this run; the table's expression is v:n::int"
    ]
    rows = mica.Table.open(tmp_path / "table").scan(columns=["day", "n"]).to_arrow().to_pylist()
    assert sorted(rows, key=str) == [{"day": "x", "n": None}, {"day": "y", "n": 2}, {"day": "z", "n": 4}]


def test_no_partition_column_is_null_because_nobody_computes_it(tmp_path: Path) -> None:
    mica.Table.create(tmp_path / "table", "v VARIANT, day STRING, n INT", ["day"])
    with pytest.raises(mica.UserError, match="partitioned by 'day'") as caught:
        _ingest(tmp_path, '{"a":"x"}')
    assert caught.value.code == "MISSING_COLUMN"
    mica.Table.open(tmp_path / "table").set_properties({"mica.ingest.columns": '{"day": "v:a::string"}'})
    assert _ingest(tmp_path, '{"a":"x"}').rows == 1
    assert mica.Table.open(tmp_path / "table").scan("day = 'x'").count() == 1


def test_kept_columns_that_the_documents_do_not_give_are_refused(tmp_path: Path) -> None:
    mica.Table.create(
        tmp_path / "table", "v VARIANT, w VARIANT, day STRING", ["day"],
        properties={"mica.ingest.columns": '{"day": "v:a::string"}'},
    )  # fmt: skip
    with pytest.raises(mica.UserError, match="computes its column 'day' as v:a::string") as caught:
        _ingest(tmp_path, '{"a":"x"}', column="w")
    assert caught.value.code == "MISSING_COLUMN"
    with pytest.raises(mica.UserError, match="JSON object"):
        mica.Table.open(tmp_path / "table").set_properties({"mica.ingest.columns": "day"})


def test_an_idempotent_run_counts_each_file_once(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.json").write_text(f'{{"a":"{name}"}}\n')
    table = tmp_path / "table"
    first = mica.ingest_json([tmp_path / "a.json", tmp_path / "a.json"], table, idempotent=True)
    second = mica.ingest_json(tmp_path / "*.json", table, idempotent=True)
    third = mica.ingest_json(tmp_path / "*.json", table, idempotent=True)
    assert [(r.rows, r.skipped_files, r.version) for r in (first, second, third)] == [(1, 1, 0), (1, 1, 1), (0, 2, 1)]
    assert mica.Table.open(table).scan().count() == 2
    os.utime(tmp_path / "b.json", (1, 1))
    with pytest.raises(mica.UserError, match=r"b\.json") as caught:
        mica.ingest_json(tmp_path / "*.json", table, idempotent=True)
    assert caught.value.code == "INPUT_CHANGED"
    with pytest.raises(mica.UserError, match="overwrite"):
        mica.ingest_json(tmp_path / "*.json", table, idempotent=True, mode="overwrite")


@pytest.mark.parametrize("by", ["ingest", "overwrite", "create"])
def test_rows_that_an_overwrite_took_away_may_be_ingested_again(tmp_path: Path, by: str) -> None:
    for name in "ab":
        (tmp_path / f"{name}.json").write_text(f'{{"a":"{name}"}}\n')
    (tmp_path / "link.json").symlink_to(tmp_path / "a.json")
    path = tmp_path / "table"
    assert mica.ingest_json(tmp_path / "*.json", path, idempotent=True).rows == 2
    table = mica.Table.open(path)
    if by == "ingest":
        mica.ingest_json(tmp_path / "a.json", path, mode="overwrite")
    elif by == "overwrite":
        table.overwrite(table.scan(limit=0).to_arrow())
    else:
        mica.Table.create(path, table.schema, if_exists="overwrite")
    again = [mica.ingest_json(tmp_path / "*.json", path, idempotent=True) for _ in "12"]
    assert [(r.rows, r.skipped_files) for r in again] == [(2, 1), (0, 3)]


def test_two_idempotent_runs_at_once_count_a_file_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.json").write_text("{}\n")
    first, commit = [True], Target.commit

    def late(target: Target, *rest: Any) -> Any:
        if first.pop() if first else False:
            mica.ingest_json(tmp_path / "a.json", tmp_path / "table", idempotent=True)
        return commit(target, *rest)

    monkeypatch.setattr(Target, "commit", late)
    with pytest.raises(mica.ConflictError) as caught:
        mica.ingest_json(tmp_path / "a.json", tmp_path / "table", idempotent=True)
    assert caught.value.code == "CONCURRENT_TRANSACTION"
    assert mica.Table.open(tmp_path / "table").scan().count() == 1
    assert len(list((tmp_path / "table").glob("*.parquet"))) == 1


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (bz2.compress(b"{}"), "compressed with bzip2"),
        (lzma.compress(b"{}"), "compressed with xz"),
        (lzma.compress(b"{}", lzma.FORMAT_ALONE), "compressed with lzma"),
        ('{"a":1}'.encode("utf-16"), "text in UTF-16"),
        ('{"a":1}'.encode("utf-16-be"), "text in UTF-16"),
        ('{"a":1}'.encode("utf-32"), "text in UTF-32"),
        (gzip.compress('{"a":1}'.encode("utf-16-le"), mtime=0), "text in UTF-16"),
        (b"PK\x03\x04" + bytes(30), "a zip archive"),
        (bytes(257) + b"ustar\x00", "a tar archive"),
        (b"PAR1\x15\x04", "a Parquet file"),
    ],
)
@pytest.mark.parametrize("on_error", ["fail", "quarantine"])
def test_what_is_not_json_text_is_named(tmp_path: Path, data: bytes, what: str, on_error: Any) -> None:
    (tmp_path / "in").write_bytes(data)
    with pytest.raises(mica.UserError, match=what) as caught:
        mica.ingest_json(tmp_path / "in", tmp_path / "table", on_error=on_error)
    assert caught.value.code == "UNSUPPORTED_INPUT"
    assert not list(tmp_path.glob("table/**/*"))


def test_bad_lines_are_private_and_go_where_nothing_is_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = _ingest(tmp_path, "{}\nno\n", on_error="quarantine")
    assert report.quarantine is not None
    (kept,) = Path(report.quarantine).iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600

    def lost(*_: object, **__: object) -> None:
        raise mica.ConflictError("METADATA_CHANGED", "another writer was faster")

    monkeypatch.setattr(Transaction, "commit", lost)
    before = sorted((tmp_path / "table").rglob("*"))
    with pytest.raises(mica.ConflictError):
        _ingest(tmp_path, "{}\nno\n", on_error="quarantine")
    assert sorted((tmp_path / "table").rglob("*")) == before


def test_a_pipe_is_refused_where_a_file_is_needed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(mica.StorageError, match="named pipe") as caught:
        mica.ingest_json(tmp_path / "pipe", tmp_path / "table")
    assert caught.value.code == "NOT_A_FILE"


@pytest.mark.parametrize("levels", [30, 31, 64, 1000])
@pytest.mark.parametrize("shape", [('{"a":', "}"), ("[", "]"), ('[{"a":', "}]")])
def test_documents_of_any_depth_come_back_from_every_writer(
    tmp_path: Path, shape: tuple[str, str], levels: int
) -> None:
    depth = levels if len(shape[1]) == 1 else levels // 2
    text = shape[0] * depth + "1" + shape[1] * depth
    _ingest(tmp_path, f"{text}\n{text}\n")
    table = mica.Table.open(tmp_path / "table")
    rows = table.scan(columns=["v"]).to_arrow()
    assert variant.to_json(rows["v"]).to_pylist() == [text] * 2
    table.append(rows)
    assert mica.check(tmp_path / "table").ok
    for layout in ("standard", "early"):
        mica.write_parquet(rows, tmp_path / f"{layout}.parquet", layout=layout)
        again = mica.read_parquet(tmp_path / f"{layout}.parquet").to_arrow()
        assert variant.to_json(again["v"]).to_pylist() == [text] * 2


def test_a_schema_that_pyarrow_does_not_take_is_refused(tmp_path: Path) -> None:
    with pytest.raises(mica.UserError, match="30 levels"):
        _ingest(tmp_path, "1", shredding="struct<a: " * 31 + "int" + ">" * 31)


@pytest.mark.parametrize("options", [{}, {"sort_by": ["v:n::int"]}])
def test_a_bad_cast_names_file_and_value(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(mica.UserError, match=r'in\.json: v:n cannot be cast to INT: the value is "many"') as caught:
        _ingest(tmp_path, '{"n":1}\n{"n":"many"}\n', columns={"n": "v:n::int"}, **options)
    assert caught.value.code == "INVALID_CAST"
    assert not (tmp_path / "table").exists() or not list((tmp_path / "table").rglob("*.parquet"))
    _ingest(tmp_path, "\n".join(f'{{"n":{n}, "s":"s{n}"}}' for n in range(70_000)) + '\n{"n":"x","s":"last"}\n')
    table = mica.Table.open(tmp_path / "table")
    for scan, value in (
        (table.scan("v:n::int < 0"), '"x"'),
        (table.scan(columns={"n": "v:n::int"}), '"x"'),
        (table.scan("v:n::string > '1'", columns={"n": "v:n::int"}), '"x"'),
        (table.scan(columns={"n": "cast(cast(v:s as string) as int)"}), "'s0'"),
    ):
        with pytest.raises(mica.UserError, match=rf"\.parquet: .* INT: the value is {value}") as caught:
            scan.to_arrow()
        assert caught.value.code == "INVALID_CAST"
        assert caught.value.context["path"].endswith(".parquet")


def test_fields_of_objects_that_stand_beside_other_values_are_columns_with_bounds(tmp_path: Path) -> None:
    """A field of an object with a column stands nowhere else, so its bounds hold whatever else is at the place."""
    for file in range(2):
        one = '{{"s": {{"uri": "{file}-{i}"}}}}\n{{"s": "text {i}"}}\n{{"s": {{}}}}\n{{"s": {{}}}}\n'
        rows = [one.format(file=file, i=i) for i in range(500)]
        (tmp_path / "in.ndjson").write_text("".join(rows))
        mica.ingest_json(tmp_path / "in.ndjson", tmp_path / "t")
    table = mica.Table.open(tmp_path / "t")
    found = table.scan("v:s.uri::string = '1-33'", columns={"s": "to_json(v:s)"})
    assert found.kept.num_rows == 1
    assert found.to_arrow()["s"].to_pylist() == ['{"uri":"1-33"}']
    others = table.scan("v:s::string LIKE 'text 4_'", columns={"uri": "v:s.uri::string"})
    assert others.to_arrow()["uri"].to_pylist() == [None] * 20
    assert not list(mica.check(table))


def test_the_kernel_is_asked_once_for_all_computed_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for each of 400 columns among 400 fields, it opened 160,000: 4 of 6 s."""
    asked, extract = [], kernel.extract
    monkeypatch.setattr(kernel, "extract", lambda *given, **how: asked.append(given) or extract(*given, **how))
    (tmp_path / "in.ndjson").write_text('{"a": 1, "b": {"c": "x"}}\n')
    columns = {"a": "v:a::int", "b": "v:b.c::string", "both": "v:a::int + length(v:b.c::string)"}
    mica.ingest_json(tmp_path / "in.ndjson", tmp_path / "t", columns=columns)
    assert mica.Table.open(tmp_path / "t").scan(columns=list(columns)).to_arrow().to_pylist() == [
        {"a": 1, "b": "x", "both": 2}
    ]
    assert len([given for given in asked if len(given[1]) > 0]) == 1


def test_small_files_are_told_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Facts are kept until the end of a write: one of each of 10,000 files took 500 MB, and most of the time."""
    for number in range(200):
        (tmp_path / f"{number}.ndjson").write_text(f'{{"n": {number}}}\n')
    told: list[object] = []
    real = ingest.facts
    monkeypatch.setattr(ingest, "facts", lambda *given: (told.append(given), real(*given))[1])
    seen: list[mica.Progress] = []
    report = mica.ingest_json(str(tmp_path / "*.ndjson"), tmp_path / "t", progress=seen.append)
    assert report.rows == mica.Table.open(tmp_path / "t").count() == 200
    assert len(told) < 50
    assert seen[-1].rows == 200
    assert seen[-1].input_bytes == seen[-1].total_bytes == sum(f.stat().st_size for f in tmp_path.glob("*.ndjson"))


@pytest.mark.parametrize("options", [{}, {"partition_by": ["even"]}, {"sort_by": ["n"]}])
def test_documents_of_small_files_are_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    """Each step costs a row what it costs thousands: 20,000 files of a row took 18 s and 800 MB."""
    for number in range(200):
        (tmp_path / f"{number}.ndjson").write_text(f'{{"n": {number}, "s": "{number}"}}\n')
    asked: list[object] = []
    real = kernel.extract
    monkeypatch.setattr(kernel, "extract", lambda *given, **named: (asked.append(given), real(*given, **named))[1])
    columns = {"n": "v:n::bigint", "even": "v:n::int % 2"}
    assert mica.ingest_json(str(tmp_path / "*.ndjson"), tmp_path / "t", columns=columns, **options).rows == 200
    assert len(asked) < 50
    read = mica.Table.open(tmp_path / "t").scan(columns={"n": "n", "even": "even", "s": "v:s::string"})
    rows = read.to_arrow().to_pylist()
    assert sorted(row["n"] for row in rows) == list(range(200))
    assert all(row == {"n": row["n"], "even": row["n"] % 2, "s": str(row["n"])} for row in rows)


def test_joined_documents_are_told_by_their_file(tmp_path: Path) -> None:
    for number in range(100):
        value = '"x"' if number % 30 == 7 else number
        (tmp_path / f"{number:03}.ndjson").write_text(f'{{"n": {value}}}\n')
    given = {"columns": {"n": "v:n::bigint"}}
    with pytest.raises(mica.MicaError, match=r"007\.ndjson"):
        mica.ingest_json(str(tmp_path / "*.ndjson"), tmp_path / "t", **given)
    report = mica.ingest_json(str(tmp_path / "*.ndjson"), tmp_path / "t", on_error="quarantine", **given)
    assert (report.rows, report.bad_lines) == (96, 4)
    assert report.quarantine is not None
    bad = [json.loads(line) for file in Path(report.quarantine).iterdir() for line in file.read_text().splitlines()]
    assert sorted(Path(line["file"]).name for line in bad) == [f"{n:03}.ndjson" for n in (7, 37, 67, 97)]
    assert not any(".ndjson" in line["reason"] for line in bad)


def test_a_line_too_long_to_be_read_is_a_bad_line(tmp_path: Path) -> None:
    long = '{"a": "' + "x" * (5 << 20) + '"}'
    lines = f'{{"a": 1}}\n{long}\n{{"a": 2}}\n'
    with pytest.raises(mica.MicaError, match="line 2, column 1: a row is longer than 4194304 bytes"):
        _ingest(tmp_path, lines, max_size=1 << 20)
    report = _ingest(tmp_path, lines, max_size=1 << 20, on_error="quarantine")
    assert (report.rows, report.bad_lines, _documents(tmp_path)) == (2, 1, [{"a": 1}, {"a": 2}])
    assert report.quarantine is not None
    [kept] = [json.loads(path.read_text()) for path in Path(report.quarantine).iterdir()]
    assert (kept["line"], kept["reason"]) == (2, "a row is longer than 4194304 bytes")
    assert long.startswith(kept["text"])
    assert len(kept["text"]) == 64 << 10
