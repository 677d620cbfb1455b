"""Numbers of new rows: no two tasks give the same one, and a small write has no gaps."""

from __future__ import annotations

import random

import numpy as np
import pytest

from mica.tasks import lane
from mica.tasks.lane import BLOCK, Lane


def test_one_task_counts_without_gaps() -> None:
    mine = Lane(0)
    assert mine.end == 0
    assert [*mine.take(3), *mine.take(2)] == [0, 1, 2, 3, 4]
    assert mine.end == 5
    assert [*Lane(0).take(2 * BLOCK)] == list(range(2 * BLOCK))


@pytest.mark.slow
def test_no_two_tasks_give_the_same_number(rng: random.Random) -> None:
    lanes, seen = [Lane(i) for i in range(7)], []
    for _ in range(60):
        mine = rng.choice(lanes)
        found = mine.take(rng.randrange(BLOCK))
        assert (found < mine.end).all()
        seen.append(found)
    numbers = np.concatenate(seen)
    assert len(np.unique(numbers)) == len(numbers)


def test_a_repeated_task_gives_the_same_numbers() -> None:
    assert Lane(3).take(BLOCK + 5).tolist() == [*(first := Lane(3)).take(5), *first.take(BLOCK)]


def test_the_lane_of_a_task_is_the_one_that_its_engine_began() -> None:
    lane.begin(4)
    assert lane.current().index == 4
    lane.begin(0)
