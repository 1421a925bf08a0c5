"""What a bandit shows of itself."""

from dataclasses import dataclass

import numpy as np
import pytest

import submax
from submax.estimators import Counting
from submax.live.bandits.open import open_bandit
from submax.live.fitting.recent_rows import RecentRows
from submax.live.log.collecting.position_set import PositionSet
from submax.policies import Gridded, RewardConditioned, Thompson
from submax.schema.columns import Columns
from submax.strategies import Clipped


def fits(bandit):
    lines = repr(bandit).split("\n")
    return len(lines) <= 24 and max(map(len, lines)) <= 80


def test_actions_have_counts_mean_rewards_and_shares():
    bandit = submax.Bandit(["A", "B"], policy="random", seed=0)
    for number in range(40):
        decision = bandit.decide()
        if number < 30:
            bandit.reward(decision.id, float(decision.action == "A"))
    told = repr(bandit)
    tally = bandit.ledger().tally.choices[0]
    assert sum(one.decisions for one in tally) == 40
    assert "40 decisions, 30 learned from, 10 open" in told
    row = next(line.split() for line in told.split("\n") if line.startswith("  A "))
    share = f"{100 * tally[0].decisions / 40:.1f}"
    assert row[1:] == [
        str(tally[0].decisions),
        share,
        "%",
        str(tally[0].rows),
        "1",
        "0",
        "50.0",
        "%",
    ]


def test_the_title_names_the_parts_of_a_policy_and_no_folders(tmp_path):
    @dataclass(frozen=True)
    class Mine(Thompson):
        pass

    file = tmp_path / "own.py"
    file.write_text(
        "from dataclasses import dataclass\n"
        "from submax.policies import Thompson\n\n\n"
        "@dataclass(frozen=True)\nclass Own(Thompson):\n    pass\n"
    )
    clipped = RewardConditioned(Counting("fitted"), Clipped(2.0))
    for policy, title in (
        ("epsilon-greedy-0.1", "epsilon-greedy-0.1"),
        ({"kind": "gridded", "policy": "thompson-1-9"}, "gridded (thompson-1-9)"),
        (clipped, "reward-conditioned (counting, clipped)"),
        ({"kind": f"{file}:Own"}, "Own"),
        (Mine(), "Mine"),
        (Gridded(policy=Mine()), "Gridded (Mine)"),
    ):
        bandit = submax.Bandit(["A", "B"], policy=policy)
        assert repr(bandit).startswith(f"Bandit 'bandit': {title}, 2 actions, no context")
        assert f": {title}, 2 actions" in bandit._repr_html_()


def test_means_and_errors_are_those_of_the_rewards(seed):
    bandit = submax.Bandit(["A"], policy="random", rewards="continuous")
    rewards = np.random.default_rng(seed).normal(size=20)
    for reward in rewards:
        bandit.reward(bandit.decide().id, float(reward))
    tally = bandit.ledger().tally.choices[0][0]
    assert tally.mean == pytest.approx(rewards.mean())
    assert tally.standard_error == pytest.approx(rewards.std(ddof=1) / np.sqrt(20))


@pytest.mark.parametrize(
    "declaration",
    [
        {"actions": [f"a long name of the arm {number}" * 3 for number in range(1000)]},
        {"actions": {f"slot {number}": ["a", "b", "c"] for number in range(60)}},
        {"actions": {"price": (0.0, 1.0), "size": (1.0, 2.0)}},
        {"actions": ["A", "B"], "context": {f"field {number}": float for number in range(50)}},
        {"actions": {"title": ["A", "B"], "price": (1.0, 20.0)}},
    ],
    ids=["1000 arms", "60 slots", "intervals", "50 fields", "slots and an interval"],
)
@pytest.mark.filterwarnings("ignore::submax.live.declaring.declare.ContextIgnoredWarning")
def test_every_bandit_fits_one_screen(declaration):
    bandit = submax.Bandit(**declaration, policy="random", seed=0)
    assert fits(bandit)
    context = dict.fromkeys(bandit.settings.context.names, 0.0)
    for number in range(30):
        bandit.reward(bandit.decide(context).id, float(number % 2))
    assert fits(bandit)
    assert bandit._repr_html_().startswith("<div><p>Bandit")


def test_html_is_escaped():
    bandit = submax.Bandit(["<script>alert(1)</script>", "B"])
    bandit.decide()
    assert "<script>" not in bandit._repr_html_()
    assert "&lt;script&gt;" in bandit._repr_html_()


def test_a_bandit_with_a_store_shows_what_it_read(tmp_path, clock):
    path = tmp_path / "page.db"
    bandit = open_bandit(path, actions=["A", "B"], background=False, clock=clock, reward_wait=10)
    decision = bandit.decide()
    bandit.retire("B" if decision.action == "A" else "A")
    clock.now += 11
    with pytest.warns(submax.LateRewardWarning):
        bandit.reward(decision.id, 1.0)
    told = repr(bandit)
    assert "1 decision, 1 learned from, 0 open" in told
    assert "1 reward came too late" in told
    assert "(retired)" in told
    bandit.close()
    with open_bandit(path, background=False, clock=clock) as again:
        assert "1 decision, 1 learned from" in repr(again)


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


def test_recent_rows_are_the_last_ones(seed):
    rng = np.random.default_rng(seed)
    recent, everything = RecentRows(100), []
    for size in rng.integers(0, 9, size=200).tolist():
        rewards = rng.normal(size=size)
        everything += rewards.tolist()
        nothing = np.zeros((size, 0), dtype=np.float32)
        recent.add(Columns(nothing, np.zeros((size, 1)), rewards, np.zeros(size)))
        kept = [reward for part in recent.parts for reward in part.reward]
        assert kept == everything[len(everything) - len(kept) :]
        assert len(kept) == recent.count >= min(100, len(everything))
    assert len(recent.parts) < 12
