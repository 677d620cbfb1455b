"""Options of the format: a misspelt one is found, others of Spark are not ours."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from mica.errors import UserError
from mica.format.options import Options


def test_names_have_no_case_and_others_are_left_alone() -> None:
    options = Options.of(
        {"PATH": "t", "MaxBytesPerTrigger": "10m", "owner": "root", "queryName": "q", "storage.key": "x"}
    )
    assert (options.path, options.number("maxBytesPerTrigger"), options.storage) == ("t", 10 << 20, {"key": "x"})
    assert Options.of({"path": "file:/a b"}).path == "/a b"
    assert Options.of({"path": "s3://b/t"}).path == "s3://b/t"
    assert Options.of({"columns": "a, `b c`"}).names("columns") == ["a", "b c"]
    assert options.properties({"delta.enableX": "true", "path": "t"}) == {"delta.enableX": "true"}


def test_several_tables_are_not_one_without_a_path() -> None:
    with pytest.raises(UserError, match=r"reads one table, got \["):
        _ = Options.of({"paths": '["/a","/b"]'}).path
    with pytest.raises(UserError, match="needs a path"):
        _ = Options.of({"paths": "a BIGINT"}).path


def test_a_relative_path_in_a_folder_of_the_servers_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows were written, and went with the session."""
    folder = tmp_path / "userFiles-648cf6d6-bb2c-4f53-82bd-e658aba0c5de" / "35f0a1be-5d39-4ec2-9f1c-0c1a7ac5a0c1"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    with pytest.raises(UserError, match="absolute") as raised:
        _ = Options.of({"path": "lake/t"}).path
    assert raised.value.code == "INVALID_ARGUMENT"
    assert Options.of({"path": "file:/data/t"}).path == "/data/t"
    for place in ("/data/t", "s3://b/t", "file:///data/t", "FILE:///data/t", "file://localhost/data/t"):
        assert Options.of({"path": place}).path == place


def test_what_delta_spark_would_do_otherwise_is_refused() -> None:
    with pytest.raises(UserError, match="no option dataChange=FALSE") as raised:
        Options.of({"dataChange": "FALSE"})
    assert "Table." in str(raised.value.hint)
    Options.of({"overwriteSchema": "False", "dataChange": "true"})


def test_an_overwrite_is_of_all_partitions_or_of_those_that_get_rows() -> None:
    assert [Options.of(given).dynamic for given in ({}, {"partitionOverwriteMode": "STATIC"})] == [False, False]
    assert Options.of({"partitionoverwritemode": "Dynamic"}).dynamic
    with pytest.raises(UserError, match="partitionOverwriteMode"):
        _ = Options.of({"partitionOverwriteMode": "some"}).dynamic


@pytest.mark.parametrize("name", ["wher", "maxFilePerTrigger", "mergeschema2", "readChangesFeed"])
def test_a_misspelt_name_is_an_error_with_the_nearest(name: str) -> None:
    with pytest.raises(UserError, match="has no option") as raised:
        Options.of({name: "1"})
    assert "nearest" in str(raised.value.hint)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("maxFilesPerTrigger", "0"),
        ("maxFilesPerTrigger", "1k"),
        ("maxBytesPerTrigger", "x"),
        ("maxFilesPerTrigger", ""),
        ("maxFilesPerTrigger", "²"),
    ],
)
def test_wrong_numbers_are_errors(name: str, value: str) -> None:
    with pytest.raises(UserError) as raised:
        Options.of({name: value}).number(name)
    assert raised.value.code == "INVALID_ARGUMENT"


def test_flags_and_versions_are_checked() -> None:
    for check in (lambda o: o.flag("mergeSchema"), lambda o: o.version("versionAsOf"), lambda o: o.path):
        with pytest.raises(UserError):
            check(Options.of({"mergeSchema": "yes", "versionAsOf": "-1"}))


@pytest.mark.parametrize("name", ["excludeRegex", "schemaLocation", "withEventTimeOrder"])
def test_an_option_that_would_change_the_rows_is_never_ignored(name: str) -> None:
    with pytest.raises(UserError, match="has no option") as raised:
        Options.of({name: "true"})
    assert raised.value.hint
    assert "nearest" not in raised.value.hint


def test_the_change_feed_is_known_by_its_former_name() -> None:
    for given, wanted in (("TRUE", True), ("false", False)):
        assert Options.of({"readChangeData": given}).flag("readChangeFeed") is wanted
    assert Options.of({"readchangedata": "false", "READCHANGEFEED": "true"}).flag("readChangeFeed")


def test_codecs_have_sparks_names() -> None:
    wanted = {"GZIP": "gzip", "uncompressed": "none", "lz4": "lz4_raw", "snappy": "snappy"}
    assert {name: Options.of({"compression": name}).codec for name in wanted} == wanted
    assert Options.of({}).codec is None
    with pytest.raises(UserError, match="compression"):
        _ = Options.of({"compression": "best"}).codec


def test_a_time_needs_a_zone_since_the_session_s_is_not_seen() -> None:
    def at(text: str, **more: str) -> object:
        return Options.of({"timestampAsOf": text, **more}).moment("timestampAsOf")

    noon = dt.datetime(2026, 7, 1, 12, tzinfo=dt.UTC)
    assert at("2026-07-01 12:00:00Z") == at("2026-07-01T14:00:00+02:00") == noon
    assert at("2026-07-01 14:00:00", timeZone="Europe/Berlin") == noon
    for text in ("2026-07-01 12:00:00", "2026-07-01"):
        with pytest.raises(UserError, match="has no time zone") as raised:
            at(text)
        assert "Z for UTC" in str(raised.value.hint)
    with pytest.raises(UserError, match="timeZone"):
        at("2026-07-01", timeZone="Mars/Base")
    assert at("2026-07-01 14:00:00", timeZone="+02:00") == noon
    with pytest.raises(UserError, match="timestampAsOf"):
        at("noon")


def test_names_may_have_commas_and_sizes_sparks_units() -> None:
    assert Options.of({"columns": "a, `b,c`, `d``e`, f``g, `h```"}).names("columns") == [
        "a",
        "b,c",
        "d`e",
        "f``g",
        "h`",
    ]
    assert Options.of({"maxBytesPerTrigger": "1tb"}).number("maxBytesPerTrigger") == 1 << 40
