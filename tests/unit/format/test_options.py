"""Options of the format: a misspelt one is found, others of Spark are not ours."""

from __future__ import annotations

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


@pytest.mark.parametrize(("name", "value"), [("overwriteSchema", "TRUE"), ("datachange", "false")])
def test_what_delta_spark_would_do_otherwise_is_refused(name: str, value: str) -> None:
    with pytest.raises(UserError, match=f"no option {name}={value}") as raised:
        Options.of({name: value})
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
