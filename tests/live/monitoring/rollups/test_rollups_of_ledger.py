"""The rollups of a bandit agree with the rows of its log, and sums are those of a loop."""

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import submax
from submax.live.log.export import Export
from submax.live.monitoring.rollups.added_numbers import AddedNumbers
from submax.live.monitoring.rollups.choice_delays import NEAR_EVENTS, ChoiceDelays
from submax.live.monitoring.rollups.decision_sums import DecisionSums, made
from submax.live.monitoring.rollups.keyed_sums import KeyedSums
from submax.live.monitoring.rollups.tier import MOST_CELLS, Resolution, Tier

COUNTRIES = ["fr", "de", "us"]
COLUMNS = st.one_of(
    st.sampled_from(
        [[0.0], [1.0], [0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.1, -0.3], [0.0, -0.0, 2.0**60]]
    ),
    st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=6),
    st.just([np.inf, 0.0, 0.0, 1.0]),
)


@pytest.mark.parametrize("often", [True, False])
def test_rollups_agree_with_the_exported_log(seed, tmp_path, clock, often):
    rng = np.random.default_rng(seed)
    bandit = submax.open(
        tmp_path / "b.db",
        actions=["A", "B", "C"],
        context={"age": float, "country": COUNTRIES},
        policy="linear-thompson",
        reward_wait=600,
        default_reward=0.0,
        guard_rails={"holdout": 0.2, "baseline": "A"},
        clock=clock,
        background=False,
    )
    for _ in range(40):
        contexts = [{"age": rng.normal(), "country": rng.choice(COUNTRIES)} for _ in range(4)]
        shown = bandit.decide_many([{"context": one} for one in contexts])
        clock.now += float(rng.uniform(0, 400))
        bandit.reward_many(
            [{"id": one.id, "value": 1.0} for one in shown if rng.random() < 0.6]
            or [{"id": shown[0].id, "value": 0.0}]
        )
        # However often the log is read, the sums are the same.
        if often and rng.random() < 0.3:
            bandit.refit()
    clock.now += 3600
    bandit.refit()
    rollups = bandit.rollups()
    Export(bandit.store, bandit.name).write(tmp_path / "log.parquet")
    log = pq.read_table(tmp_path / "log.parquet").to_pandas()
    bandit.close()
    reward = log["reward"].to_numpy(float)
    weight = 1 / log["propensity"].to_numpy(float)
    sums = DecisionSums.of_table(rollups.tiers[-1].groups.rows.sum(axis=0, keepdims=True))
    assert sums.decisions == sums.matured == len(log)
    np.testing.assert_allclose(sums.reward, reward.sum())
    np.testing.assert_allclose(sums.weight, weight.sum())
    days = rollups.tiers[-1].choices
    for number, name in enumerate(["A", "B", "C"]):
        chosen = (log["action"] == name).to_numpy()
        found = days.rows[days.rest == number].sum(axis=0)
        np.testing.assert_allclose(found, [chosen.sum(), chosen.sum(), reward[chosen].sum()])
    by_context = rollups.contexts.settled()
    found, listed = by_context.sums(1, 0), by_context.fields[1].values
    for place, country in enumerate(COUNTRIES):
        for column, choice in enumerate(by_context.choices[0]):
            here = (log["context_country"] == country) & (log["action"] == "ABC"[int(choice)])
            learned = here & ~log["holdout"]
            w, r = weight[learned], reward[learned]
            wanted = [here.sum(), learned.sum(), r.sum(), w.sum(), (w**2).sum(), (w * r).sum()]
            wanted += [(w**2 * r).sum(), (w**2 * r**2).sum()]
            np.testing.assert_allclose(found[listed.index(place), column], wanted)
    held_out = rollups.versions.rest == 1
    assert rollups.versions.rows[held_out, 0].sum() == log["holdout"].sum()
    for tier in rollups.tiers:
        assert tier.groups.rows[:, 0].sum() == len(log)
    assert rollups.delays.sums.total.sum() > 0
    # They survive a restart.
    with submax.open(tmp_path / "b.db", clock=clock, background=False) as again:
        again.ledger()
        assert again.rollups().to_record() == rollups.to_record()


@given(
    st.integers(0, 60),
    st.lists(COLUMNS, min_size=1, max_size=3),
    st.sampled_from([0.0, 3.0, 0.1, 1e17]),
    st.integers(0, 2**32),
)
def test_sums_have_the_bits_of_a_loop(count, columns, before, seed):
    rng = np.random.default_rng(seed)
    table = np.stack([rng.choice(one, count) for one in columns], axis=1)
    cell = rng.integers(4, size=count)
    expected = np.full((4, len(columns)), before)
    found = AddedNumbers(table.T).added_to(expected.copy(), cell)
    for place, row in zip(cell.tolist(), table, strict=True):
        expected[place] += row
    assert found.tobytes() == expected.tobytes()


def test_the_delays_of_a_sample_have_no_bias():
    # The hash spreads positions evenly, so that the error is below that of independent draws.
    count, lag, weight = 60_000, 9 * NEAR_EVENTS, 64
    delays, number = ChoiceDelays(np.inf), np.arange(count)
    for part in np.array_split(number, 7):
        delays.decided(1 + 2 * part, np.zeros(len(part), int), part.astype(float))
        due = part[part >= lag]
        delays.rewarded(1 + 2 * (due - lag), 2 + 2 * due, due.astype(float))
        delays.forget(int(2 + 2 * part[-1]))
    wanted = count - lag
    assert abs(delays.sums.total[0] - wanted) < 4 * np.sqrt(wanted * (weight - 1))
    assert delays.sums.effective[0] < wanted / 16


def test_memory_is_bounded_with_many_choices_and_the_far_future_hides_nothing(seed):
    rng = np.random.default_rng(seed)
    tier = Tier(Resolution(60, 500))
    for hour in range(30):
        at = 1.7e9 + hour * 3600 + np.sort(rng.uniform(0, 3600, 5000))
        choices = rng.integers(1000, size=(5000, 1))
        tier.add(at, np.zeros(5000, np.int64), choices, AddedNumbers(made(5000)))
        assert len(tier.choices.keys) <= MOST_CELLS
        assert len(tier.groups.keys) <= 500
    sums = KeyedSums(1, 1000, 10)
    for at in ([0, 1, 2], [10**6], [3, 4]):
        sums.add(np.array(at), np.zeros(len(at), np.int64), AddedNumbers(np.ones((1, len(at)))))
    assert sums.leading.tolist() == [0, 1, 2, 3, 4, 10**6]
