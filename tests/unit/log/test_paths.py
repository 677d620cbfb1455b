"""Names of the log and URIs of files."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mica.log.paths import (
    LogName,
    canonical_keys,
    checkpoint_name,
    commit_name,
    decode_path,
    encode_path,
    escape_partition_value,
    file_keys,
    new_file_name,
    parse_log_name,
)
from mica.log.replay import DELETION_VECTOR
from mica.storage import split_scheme

ZEROS = "0" * 18


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        (f"{ZEROS}07.json", LogName("commit", 7)),
        (f"{ZEROS}07.checkpoint.parquet", LogName("checkpoint", 7)),
        (f"{ZEROS}07.checkpoint.0000000002.0000000003.parquet", LogName("part", 7, 2, 3)),
        (f"{ZEROS}07.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json", LogName("v2", 7)),
        (f"{ZEROS}07.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.parquet", LogName("v2", 7)),
        (f"{ZEROS}04.{ZEROS}06.compacted.json", LogName("compaction", 4, end=6)),
        (f"{ZEROS}07.crc", None),
        (f".{ZEROS}07.json.crc", None),
        ("7.json", None),
        ("_last_checkpoint", None),
        (f"{ZEROS}07.json.tmp", None),
        ("99999999999999999999.json", None),
        (f"{ZEROS}07.80a083e8-7026-4e79-81be-64bd76c43a11.json", None),
    ],
)
def test_a_log_name_means_what_the_protocol_says(name: str, meaning: LogName | None) -> None:
    assert parse_log_name(name) == meaning


def test_names_that_we_write_are_names_that_we_read() -> None:
    assert parse_log_name(commit_name(12).rpartition("/")[2]) == LogName("commit", 12)
    assert parse_log_name(checkpoint_name(12).rpartition("/")[2]) == LogName("checkpoint", 12)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_any_file_name_survives_the_log(name: str) -> None:
    uri = encode_path(name)
    assert not any(c.isspace() or c < "!" for c in uri)
    assert decode_path(uri) == name
    assert split_scheme(uri)[0] is None


def test_names_as_delta_spark_encodes_them() -> None:
    assert decode_path("special%20p@%23h") == "special p@#h"
    assert encode_path("day=2024-01-01 00%3A00/x#1") == "day=2024-01-01%2000%253A00/x%231"
    # As Java's URIs have them: spaces and controls beyond ASCII are encoded, letters are not.
    assert encode_path("p=\u00fc e\u0301\u4e2d\U0001f600") == "p=\u00fc%20e\u0301\u4e2d\U0001f600"
    assert encode_path("\x85\xa0\u2028\u3000\udcff") == "%C2%85%C2%A0%E2%80%A8%E3%80%80%FF"


def test_a_partition_value_becomes_a_directory_name_as_in_hive() -> None:
    assert escape_partition_value('a/b:c=d%e"#?*\\{[]^\x01') == "a%2Fb%3Ac%3Dd%25e%22%23%3F%2A%5C%7B%5B%5D%5E%01"
    assert escape_partition_value("2024-01-01 ä") == "2024-01-01 ä"


def test_new_file_names_differ() -> None:
    assert new_file_name(".parquet", "", "part") != new_file_name(".parquet", "", "part")


def test_spellings_of_one_file_are_one_key() -> None:
    spelled = pa.array(["/a/b c", "file:/a/b%20c", "file:///a/b%20c", "/a/b%20c", "a%3Ab", "a:b", "a%3ab"])
    keys = canonical_keys(spelled).to_pylist()
    assert set(keys[:4]) == {"/a/b c"}
    assert set(keys[4:]) == {"a:b"}
    same = pa.array(["a/b", "./a/b", "a/./b", "././a/././b", "%2E/a/b", "file:/a/b", "/./a/b", "x./b", "../b", "a/.b"])
    assert canonical_keys(same).to_pylist() == ["a/b"] * 5 + ["/a/b"] * 2 + ["x./b", "../b", "a/.b"]


def test_bytes_that_are_no_text_keep_their_spelling() -> None:
    assert canonical_keys(pa.array(["a%FFb", "a%20b"])).to_pylist() == ["a%FFb", "a b"]


def test_a_deletion_vector_is_part_of_the_key() -> None:
    vectors = [
        None,
        {"storageType": "u", "pathOrInlineDv": "ab", "offset": 4},
        {"storageType": "u", "pathOrInlineDv": "ab", "offset": None},
        {"storageType": "i", "pathOrInlineDv": "ab", "offset": None},
    ]
    keys = file_keys(pa.array(["p"] * 4), pa.array(vectors, DELETION_VECTOR)).to_pylist()
    assert keys == ["p", "p\nuab@4", "p\nuab", "p\niab"]
