"""What a bandit shows of itself."""

import numpy as np
import pytest

import submax
from submax.live.log.collecting.position_set import PositionSet


def test_decisions_are_counted_by_action_with_the_means_and_errors_of_rewards(seed):
    bandit = submax.Bandit(["A"], policy="random", rewards="continuous")
    rewards = np.random.default_rng(seed).normal(size=20)
    for reward in rewards:
        bandit.reward(bandit.decide().id, float(reward))
    bandit.decide()
    counts = bandit.counts()
    assert (counts["decisions"], counts["learned"]) == (21, 20)
    tally = bandit.ledger().tally.choices[0][0]
    assert tally.mean == pytest.approx(rewards.mean())
    assert tally.standard_error == pytest.approx(rewards.std(ddof=1) / np.sqrt(20))


@pytest.mark.parametrize(
    "declaration",
    [
        {"actions": [f"a long name of the arm {number}" * 3 for number in range(300)]},
        {"actions": {f"slot {number}": ["a", "b", "c"] for number in range(30)}},
        {"actions": {"title": ["A", "B"], "price": (1.0, 20.0)}},
    ],
    ids=["300 arms", "30 slots", "slots and an interval"],
)
def test_every_bandit_fits_one_screen(declaration):
    bandit = submax.Bandit(**declaration, policy="random", seed=0)
    for _ in range(2):
        lines = repr(bandit).split("\n")
        assert len(lines) <= 24
        assert max(map(len, lines)) <= 80
        for number in range(10):
            bandit.reward(bandit.decide().id, float(number % 2))


def test_html_is_escaped():
    bandit = submax.Bandit(["<script>alert(1)</script>", "B"])
    bandit.decide()
    assert "<script>" not in bandit._repr_html_()
    assert "&lt;script&gt;" in bandit._repr_html_()


def test_a_set_of_positions_is_a_set(seed):
    rng = np.random.default_rng(seed)
    positions, known = PositionSet(), set()
    for position in rng.integers(1, 30_000, size=2000).tolist():
        positions.add(position)
        known.add(position)
    again = PositionSet(positions.base, positions.bits)
    for probe in rng.integers(1, 40_000, size=2000).tolist():
        assert (probe in positions) == (probe in again) == (probe in known)
    positions.forget_up_to(20_000)
    assert len(positions.bits) < len(again.bits)
    assert all(probe in positions for probe in range(1, 10_000))
    late = range(20_001, 30_000)
    assert [one in positions for one in late] == [one in known for one in late]
