"""How long the rewards of each choice take: from a sample of decisions, without a bias."""

import msgspec
import numpy as np
import pytest

from submax.live.monitoring.rollups.choice_delays import (
    LEVELS,
    NEAR_EVENTS,
    ChoiceDelays,
    ChoiceDelaysRecord,
)
from submax.live.monitoring.rollups.delay_bins import BINS, delay_bins, median_delays


def timed(count: int, lags: tuple[int, ...], pages: int, wait: float = np.inf) -> ChoiceDelays:
    """Delays of a log with a decision a second, for one choice after the other.

    Each gets its reward so many decisions later; the reward stands right after that decision.
    """
    delays = ChoiceDelays(wait)
    number = np.arange(count)
    choice, decision = number % len(lags), 1 + 2 * number
    later = np.minimum(number + np.array(lags)[choice], count)
    order = np.argsort(later, kind="stable")
    order = order[later[order] < count]
    for part in np.array_split(number, pages):
        delays.decided(decision[part], choice[part], part.astype(float))
        due = order[(later[order] >= part[0]) & (later[order] <= part[-1])]
        delays.rewarded(decision[due], decision[later[due]] + 1, later[due].astype(float))
        delays.forget(int(decision[part[-1]]) + 1)
    return delays


def test_few_events_later_all_rewards_are_timed() -> None:
    sums = timed(2000, (3, 100), pages=5, wait=50.0).sums
    assert sums.total.tolist() == [999.0, 950.0]
    assert sums.effective.tolist() == [999.0, 950.0]
    assert sums.late.tolist() == [0.0, 950.0]
    assert [int(one.argmax()) for one in sums.bins] == [2, 7]


def test_the_sample_has_no_bias() -> None:
    # The hash spreads positions evenly, so that the error is below that of independent draws.
    count, lag = 60_000, 9 * NEAR_EVENTS
    sums = timed(count, (lag,), pages=7).sums
    wanted, weight = count - lag, 64
    assert abs(sums.total[0] - wanted) < 4 * np.sqrt(wanted * (weight - 1))
    assert sums.effective[0] < wanted / 16


@pytest.mark.parametrize("pages", [1, 3, 40])
def test_sums_do_not_depend_on_how_the_log_was_read(pages: int) -> None:
    wanted = msgspec.msgpack.encode(timed(8000, (5, 1500), 10).to_record())
    assert msgspec.msgpack.encode(timed(8000, (5, 1500), pages).to_record()) == wanted


def test_the_memory_is_bounded_and_restored() -> None:
    delays = timed(60_000, (2,), pages=20)
    record = delays.to_record()
    assert len(record.position) / 8 < LEVELS * NEAR_EVENTS
    data = msgspec.msgpack.encode(record)
    restored = ChoiceDelays.restore(msgspec.msgpack.decode(data, type=ChoiceDelaysRecord))
    assert msgspec.msgpack.encode(restored.to_record()) == data
    restored.decided(np.array([200_000]), np.array([1]), np.array([7e4]))
    restored.rewarded(np.array([200_000]), np.array([200_001]), np.array([7e4 + 3]))
    assert restored.sums.total[1] == 1


def test_rewards_of_unknown_decisions_are_not_timed() -> None:
    delays = timed(10, (1,), pages=1)
    before = delays.sums.total.sum()
    delays.rewarded(np.array([2, 10**9]), np.array([10**9, 10**9 + 1]), np.array([1e9, 1e9]))
    assert delays.sums.total.sum() == before


def test_the_median_lies_between_the_bounds_of_its_bin(seed: int) -> None:
    delay = np.random.default_rng(seed).exponential(20.0, 501)
    bins = np.bincount(delay_bins(delay), minlength=BINS).astype(float)
    found, none = median_delays(np.stack([bins, np.zeros(BINS)]))
    assert np.median(delay) / 2 <= found <= 2 * np.median(delay)
    assert np.isnan(none)
