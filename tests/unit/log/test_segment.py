"""Segments: a checkpoint and the commits after it, without a gap."""

from __future__ import annotations

import pytest

from mica.errors import CorruptDataError, UserError
from mica.log.listing import read_listing
from mica.log.segment import choose_segment
from mica.storage import Entry

UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"


def listing(*names: str, empty: tuple[str, ...] = ()):
    def full(short: str) -> str:
        head, _, rest = short.partition(".")
        if rest.endswith("compacted.json"):
            end = rest.partition(".")[0]
            return f"_delta_log/{int(head):020d}.{int(end):020d}.compacted.json"
        return f"_delta_log/{int(head):020d}.{rest}"

    return read_listing([Entry(full(name), 0 if name in empty else 1, 5) for name in names])


def shape(segment) -> tuple[int, str | None, list[str]]:
    checkpoint = None if segment.checkpoint is None else f"{segment.checkpoint.version}{segment.checkpoint.kind}"
    return segment.version, checkpoint, [f"{d.name.version}-{d.name.end}" for d in segment.deltas]


@pytest.mark.parametrize(
    ("names", "version", "expected"),
    [
        (["0.json", "1.json"], None, (1, None, ["0-0", "1-1"])),
        (["0.json", "1.json"], 0, (0, None, ["0-0"])),
        (["0.json", "1.json", "1.checkpoint.parquet", "2.json"], None, (2, "1checkpoint", ["2-2"])),
        (["0.json", "1.json", "1.checkpoint.parquet", "2.json"], 0, (0, None, ["0-0"])),
        (["1.checkpoint.parquet", "2.json"], None, (2, "1checkpoint", ["2-2"])),
        (["3.checkpoint.parquet"], None, (3, "3checkpoint", [])),
        # of two checkpoints the newer, of one version the one with fewer files
        (["1.checkpoint.parquet", "2.checkpoint.parquet", "2.json"], None, (2, "2checkpoint", [])),
        (
            [
                "1.json",
                "1.checkpoint.parquet",
                "1.checkpoint.0000000001.0000000002.parquet",
                "1.checkpoint.0000000002.0000000002.parquet",
            ],
            None,
            (1, "1checkpoint", []),
        ),
        # an incomplete multi-part checkpoint is none
        (["0.json", "1.json", "1.checkpoint.0000000001.0000000002.parquet"], None, (1, None, ["0-0", "1-1"])),
        (["0.json", "1.json", f"1.checkpoint.{UUID}.json"], None, (1, "1v2", [])),
        # a compaction stands for commits that are missing, as it may lack removals; the last commit is read by itself
        (["0.json", "1.json", "3.json", "0.2.compacted.json"], None, (3, None, ["0-2", "3-3"])),
        (["0.json", "1.json", "2.json", "3.json", "0.2.compacted.json"], None, (3, None, ["0-0", "1-1", "2-2", "3-3"])),
        (["0.json", "1.json", "2.json", "0.2.compacted.json"], None, (2, None, ["0-0", "1-1", "2-2"])),
        (["0.json", "1.json", "2.json", "3.json", "0.2.compacted.json"], 1, (1, None, ["0-0", "1-1"])),
        (
            ["0.json", "3.json", "4.json", "1.2.compacted.json", "1.3.compacted.json"],
            None,
            (4, None, ["0-0", "1-3", "4-4"]),
        ),
    ],
)
def test_a_version_is_its_newest_checkpoint_and_the_commits_after(names, version, expected) -> None:
    assert shape(choose_segment(listing(*names), version, "t", frozenset())) == expected


def test_an_empty_checkpoint_file_is_none() -> None:
    found = listing("0.json", "1.json", "1.checkpoint.parquet", empty=("1.checkpoint.parquet",))
    assert shape(choose_segment(found, None, "t", frozenset())) == (1, None, ["0-0", "1-1"])


def test_a_checkpoint_to_skip_is_not_chosen() -> None:
    found = listing("0.json", "1.json", "1.checkpoint.parquet")
    skip = frozenset({f"_delta_log/{1:020d}.checkpoint.parquet"})
    assert shape(choose_segment(found, None, "t", skip)) == (1, None, ["0-0", "1-1"])


@pytest.mark.parametrize(
    ("names", "version", "missing"),
    [
        (["0.json", "2.json"], None, 1),
        (["1.json", "2.json"], None, 0),
        (["1.checkpoint.parquet", "3.json"], None, 2),
        (["0.json", "1.json", "3.json"], 3, 2),
    ],
)
def test_a_gap_is_named(names: list[str], version: int | None, missing: int) -> None:
    with pytest.raises(CorruptDataError) as caught:
        choose_segment(listing(*names), version, "t", frozenset())
    assert caught.value.code == "LOG_GAP"
    assert caught.value.context["missing"] == missing


def test_a_version_before_the_oldest_checkpoint_has_expired() -> None:
    with pytest.raises(UserError, match="oldest version that can be read is 5") as caught:
        choose_segment(listing("4.json", "5.checkpoint.parquet", "5.json", "6.json"), 3, "t", frozenset())
    assert caught.value.code == "VERSION_EXPIRED"


def test_a_version_between_checkpoints_that_a_clean_up_left_has_expired() -> None:
    found = listing(f"2.checkpoint.{UUID}.json", "5.checkpoint.parquet", "5.json")
    with pytest.raises(UserError, match="next to it that can be read are 2 and 5") as caught:
        choose_segment(found, 4, "t", frozenset())
    assert caught.value.code == "VERSION_EXPIRED"


@pytest.mark.parametrize("version", [2, -1])
def test_a_version_that_is_not_there_is_named_with_the_latest(version: int) -> None:
    with pytest.raises(UserError, match="latest version is 1") as caught:
        choose_segment(listing("0.json", "1.json"), version, "t", frozenset())
    assert caught.value.code == "VERSION_NOT_FOUND"
