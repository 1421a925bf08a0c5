"""Rollups equal sums over all decisions, however the log was divided into pages."""

import itertools
import math
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import msgspec
import numpy as np
import pytest

from submax.live.log.decisions.decided_rows import DecidedRows
from submax.live.log.group_draw import GROUP_RECORD
from submax.live.monitoring.rollups.added_numbers import AddedNumbers
from submax.live.monitoring.rollups.decision_sums import COLUMNS, DecisionSums, made, matured
from submax.live.monitoring.rollups.delay_bins import BINS, bounds
from submax.live.monitoring.rollups.keyed_sums import KeyedSums
from submax.live.monitoring.rollups.rollups import Rollups, RollupsRecord
from submax.live.monitoring.rollups.tier import MOST_CELLS, RESOLUTIONS, Resolution, Tier

DAY = 24 * 3600.0


def some_decisions(rng: np.random.Generator, count: int = 3000) -> dict[str, np.ndarray]:
    return {
        "at": 1.7e9 + np.sort(rng.uniform(0, 30 * DAY, count)),
        "choices": rng.integers(3, size=(count, 2)),
        "version": np.sort(rng.integers(5, size=count)),
        "held_out": rng.random(count) < 0.1,
        "reward": rng.normal(size=count),
        "rewarded": rng.random(count) < 0.7,
        "propensity": rng.uniform(0.05, 1, count),
    }


def rolled_up(rows: dict[str, np.ndarray], pages: int) -> Rollups:
    rollups = Rollups(slots=2)
    for part in np.array_split(np.arange(len(rows["at"])), pages):
        one = {name: column[part] for name, column in rows.items()}
        decisions = decided(one["choices"], one["version"], one["held_out"], one["propensity"])
        decisions = decisions._replace(position=1 + part)
        rollups.decided(one["at"], decisions)
        weight = 1 / one["propensity"]
        rollups.matured(one["at"], decisions, one["reward"], one["rewarded"], weight)
    return rollups


def decided(
    choices: np.ndarray, version: np.ndarray, held_out: np.ndarray, propensity: np.ndarray
) -> DecidedRows:
    count = len(choices)
    return DecidedRows(
        position=np.arange(count),
        context=np.zeros((count, 0), np.float32),
        action=choices.astype(float),
        propensity=propensity,
        activated=np.ones(count, bool),
        holdout=held_out,
        paused=np.zeros(count, bool),
        unit=np.full(count, None, object),
        group=np.zeros(count, GROUP_RECORD),
        version=version,
    )


def test_sums_by_version_equal_those_of_all_rows(seed: int) -> None:
    rows = some_decisions(np.random.default_rng(seed))
    rollups = rolled_up(rows, pages=7)
    sums = DecisionSums.of_table(rollups.versions.rows)
    assert sums.decisions.sum() == len(rows["at"])
    chosen = (rows["version"] == 2) & rows["held_out"]
    place = (rollups.versions.leading == 2) & (rollups.versions.rest == 1)
    np.testing.assert_allclose(sums.decisions[place], chosen.sum())
    np.testing.assert_allclose(sums.reward[place], rows["reward"][chosen].sum())
    np.testing.assert_allclose(sums.mean[place], rows["reward"][chosen].mean())
    error = rows["reward"][chosen].std(ddof=1) / math.sqrt(chosen.sum())
    np.testing.assert_allclose(sums.standard_error[place], error)


def test_the_effective_number_of_decisions_follows_from_the_sums(seed: int) -> None:
    weight = 1 / np.random.default_rng(seed).uniform(0.1, 1, 500)
    rows = matured(np.zeros(500), np.ones(500, bool), weight).sum(axis=1)[None]
    expected = weight.sum() ** 2 / (weight**2).sum()
    np.testing.assert_allclose(DecisionSums.of_table(rows).effective, [expected])


def test_cells_without_decisions_have_no_mean() -> None:
    sums = DecisionSums.of_table(np.zeros((2, COLUMNS)))
    for found in (sums.mean, sums.standard_error, sums.effective):
        assert np.isnan(found).all()


@pytest.mark.parametrize("pages", [1, 3, 100])
def test_rollups_do_not_depend_on_pages(seed: int, pages: int) -> None:
    rng = np.random.default_rng(seed)
    rows = some_decisions(rng)
    wanted = msgspec.msgpack.encode(rolled_up(rows, pages=10).to_record())
    assert msgspec.msgpack.encode(rolled_up(rows, pages).to_record()) == wanted


def test_what_is_counted_after_a_copy_is_not_in_the_copy(seed: int) -> None:
    rows = some_decisions(np.random.default_rng(seed), 200)
    rollups = rolled_up(rows, pages=2)
    copy, again = rollups.copy(), rollups.copy()
    decisions = decided(rows["choices"], rows["version"], rows["held_out"], rows["propensity"])
    rollups.decided(rows["at"], decisions)
    once, twice = rolled_up(rows, pages=1), DecisionSums.of_table(rollups.versions.rows)
    assert copy.to_record() == again.to_record() == once.to_record()
    assert twice.decisions.sum() == 2 * len(rows["at"])


def test_threads_that_look_at_a_copy_at_once_see_all_its_sums(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = some_decisions(np.random.default_rng(seed), 200)
    copy = rolled_up(rows, pages=2).copy()
    add, adding = Tier.add, Event()

    def slow_add(*args: object) -> None:
        adding.set()
        time.sleep(0.02)
        add(*args)

    monkeypatch.setattr(Tier, "add", slow_add)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(copy.to_record)
        assert adding.wait(10)
        second = pool.submit(copy.to_record)
        assert first.result() == second.result()


def test_what_was_recorded_is_restored(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rollups = rolled_up(some_decisions(rng), pages=2)
    data = msgspec.msgpack.encode(rollups.to_record())
    restored = Rollups.restore(msgspec.msgpack.decode(data, type=RollupsRecord))
    assert msgspec.msgpack.encode(restored.to_record()) == data
    # And it can be added to.
    one = decided(np.array([[0, 0]]), np.array([6]), np.array([False]), np.array([0.5]))
    restored.decided(np.array([1.8e9]), one)
    assert restored.versions.leading[-1] == 6


def test_memory_is_bounded_with_many_choices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tier = Tier(Resolution(60, 500))
    for day in range(50):
        at = 1.7e9 + day * 3600 + np.sort(rng.uniform(0, 3600, 5000))
        rows = AddedNumbers(made(5000))
        tier.add(at, np.zeros(5000, np.int64), rng.integers(1000, size=(5000, 1)), rows)
        assert len(tier.choices.keys) <= MOST_CELLS
        assert len(tier.groups.keys) <= 500
    # Whole intervals are kept: the decisions of the last one are all there.
    last = tier.choices.leading == tier.choices.leading[-1]
    of_group = tier.groups.rows[tier.groups.leading == tier.groups.leading[-1], 0].sum()
    assert tier.choices.rows[last, 0].sum() == of_group


def test_one_event_of_the_far_future_does_not_make_others_forgotten() -> None:
    sums = KeyedSums(1, 1000, 10)
    sums.add(np.arange(5), np.zeros(5, np.int64), AddedNumbers(np.ones((1, 5))))
    sums.add(np.array([10**6]), np.zeros(1, np.int64), AddedNumbers(np.ones((1, 1))))
    sums.add(np.arange(5, 8), np.zeros(3, np.int64), AddedNumbers(np.ones((1, 3))))
    assert sums.leading.tolist() == [*range(8), 10**6]


def test_forgotten_intervals_stay_forgotten() -> None:
    sums = KeyedSums(1, 1000, 3)
    sums.add(np.arange(6), np.zeros(6, np.int64), AddedNumbers(np.ones((1, 6))))
    sums.add(np.array([1, 4]), np.zeros(2, np.int64), AddedNumbers(np.ones((1, 2))))
    assert sums.leading.tolist() == [3, 4, 5]
    assert sums.rows[:, 0].tolist() == [1, 2, 1]


def test_resolutions_become_coarser_and_reach_further() -> None:
    reach = [one.seconds * one.intervals for one in RESOLUTIONS]
    assert reach == sorted(reach)
    assert reach[-1] > 365 * DAY


def test_bins_of_delays_cover_all_times() -> None:
    edges = [bounds(place) for place in range(BINS)]
    assert edges[0] == (0.0, 1.0)
    assert edges[-1][1] == math.inf
    assert all(left[1] == right[0] for left, right in itertools.pairwise(edges))
