import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from refusals import raises_code
from stored import named, probabilities

import submax

FILE = str(Path(__file__).parents[1] / "support" / "weighted.py")
WEIGHTS = (1.0, 2.0, 4.0, 8.0, 3.0, 7.0)
WEIGHTED = {"kind": f"{FILE}:Weighted", "weights": list(WEIGHTS)}
ARMS = ["A", "B", "C", "D"]
PAGE = {"title": ["A", "B", "C"], "layout": ["wide", "narrow"]}
JOINT = [*itertools.product(*PAGE.values())]
MANY = {slot: [str(number) for number in range(10)] for slot in "abcde"}
DRAWS = 400
SIGMAS = 7.0
"""Standard errors: fewer than one false alarm in 10¹¹ comparisons."""


@pytest.fixture
def declared(opened):
    """A bandit of weighted arms, or of another declaration."""
    return lambda actions=ARMS, policy=WEIGHTED: opened(actions=actions, policy=policy)


def learned(bandit, clock, decisions=20):
    """After a first version, with rewards that tell the actions apart."""
    for number in range(decisions):
        bandit.reward(bandit.decide().id, float(number % 3 == 0))
    clock.now += 11
    assert bandit.refit()
    return bandit


def shares(names, weights):
    return {name: weight / sum(weights) for name, weight in zip(names, weights, strict=True)}


@pytest.mark.parametrize("fitted", [False, True])
@pytest.mark.parametrize(
    ("eligible", "left"),
    [
        (["B"], ["B"]),
        (["A", "D"], ["A", "D"]),
        (["B", "C", "D"], ["B", "C", "D"]),
        (ARMS, ARMS),
        ({"title": ["C", "A"]}, [names for names in JOINT if names[0] in "AC"]),
    ],
)
def test_a_propensity_is_that_of_the_policy_over_all_that_is_eligible(
    declared, clock, eligible, left, fitted
):
    actions, every = (PAGE, JOINT) if isinstance(eligible, dict) else (ARMS, ARMS)
    bandit = learned(declared(actions), clock) if fitted else declared(actions)
    expected = shares(left, [WEIGHTS[every.index(name)] for name in left])
    assert probabilities(bandit, eligible=eligible) == pytest.approx(expected, rel=1e-5)
    decision = bandit.decide(eligible=eligible)
    assert decision.propensity == pytest.approx(expected[named(decision.action)], rel=1e-14)


def test_new_choices_have_the_share_of_a_uniform_policy(declared, clock):
    bandit = learned(declared(), clock)
    bandit.add("E", ramp=0)
    bandit.add("F", ramp=0)
    old = shares(ARMS, WEIGHTS[:4])
    expected = {name: share * 4 / 6 for name, share in old.items()} | {"E": 1 / 6, "F": 1 / 6}
    assert probabilities(bandit) == pytest.approx(expected, rel=1e-5)
    some = probabilities(bandit, eligible=["A", "B", "F"])
    assert some == pytest.approx({"A": 2 / 9, "B": 4 / 9, "F": 1 / 3}, rel=1e-5)
    assert probabilities(bandit, eligible=["E", "F"]) == {"E": 0.5, "F": 0.5}


def test_new_choices_of_a_slot_make_new_joint_actions(declared, clock):
    bandit = learned(declared(PAGE), clock)
    bandit.add("tall", slot="layout", ramp=0)
    found = probabilities(bandit)
    assert len(found) == 9
    for names, share in found.items():
        old = dict(zip(JOINT, WEIGHTS, strict=True)).get(names)
        assert share == pytest.approx(
            1 / 9 if old is None else old / sum(WEIGHTS) * 6 / 9, rel=1e-5
        )


@pytest.mark.parametrize("verb", ["pause", "retire"])
@pytest.mark.parametrize("fitted", [False, True])
def test_a_choice_that_is_not_active_has_nothing_until_it_is_resumed(declared, clock, verb, fitted):
    bandit = learned(declared(), clock) if fitted else declared()
    before = probabilities(bandit)
    getattr(bandit, verb)("D")
    found = probabilities(bandit)
    assert found == pytest.approx(shares("ABC", WEIGHTS[:3]), rel=1e-5)
    assert "D" not in {bandit.decide().action for _ in range(100)}
    if verb == "pause":
        bandit.resume("D")
        assert probabilities(bandit) == before


@pytest.mark.parametrize(
    ("policy", "slots"),
    [
        ("random", {"title": ["A", "B"]}),
        ("grid-epsilon-greedy-0.1", {}),
        ("grid-epsilon-greedy-0.1", {"title": ["A", "B"]}),
        pytest.param("grid-thompson-1-1", {}, marks=pytest.mark.soak),
        ("grid-rcp-submax", {"title": ["A", "B"]}),
    ],
)
def test_real_valued_actions_are_within_their_bounds_with_their_density(
    declared, clock, policy, slots
):
    bandit = declared({**slots, "price": (1.0, 20.0)}, policy)
    volume = 19.0 * (2 if slots else 1)
    assert bandit.decide().propensity == pytest.approx(1 / volume)
    learned(bandit, clock)
    decisions = [bandit.decide() for _ in range(DRAWS)]
    assert all(1.0 <= one.action["price"] <= 20.0 for one in decisions)
    assert all(set(one.action) == {*slots, "price"} for one in decisions)
    density = np.array([one.propensity for one in decisions])
    # The mean of 1/p over draws from p is the volume of where p is not zero, at most all.
    error = (1 / density).std(ddof=1) / math.sqrt(DRAWS)
    assert (1 / density).mean() <= volume + SIGMAS * error + 1e-9
    if policy == "random":
        assert density == pytest.approx(1 / volume)
    if policy == "grid-epsilon-greedy-0.1":
        # All cells are explored, and the best ones, which are equal, share the rest.
        cells = 20 if slots else 10
        explored, exploited = np.unique(density.round(9)) * volume / cells
        assert explored == pytest.approx(0.1 / cells)
        best = 0.9 / (exploited - explored)
        assert best == pytest.approx(round(best))


def test_draws_of_a_gridded_policy_agree_with_their_density(declared, clock):
    """The share of draws in a part is the integral of the density over it: E[1/p; part].

    A part without a best cell has 150 of 1500 draws if ε is 1/2. A density of twice or half of
    the true one is then noticed: it is 8 standard errors away.
    """
    explored = {"kind": "epsilon-greedy", "epsilon": 0.5}
    policy, draws = {"kind": "gridded", "points": 10, "policy": explored}, 1500
    bandit = learned(declared({"price": (1.0, 20.0)}, policy), clock)
    decisions = [bandit.decide() for _ in range(draws)]
    price = np.array([decision.action["price"] for decision in decisions])
    inverse = 1 / np.array([decision.propensity for decision in decisions])
    for low, high in itertools.pairwise(np.linspace(1.0, 20.0, 6)):
        part = np.where((price >= low) & (price < high), inverse, 0.0)
        error = part.std(ddof=1) / math.sqrt(draws)
        assert abs(part.mean() - (high - low)) < SIGMAS * error


def test_among_many_joint_actions_the_greedy_one_is_as_frequent_as_it_says(declared, clock, seed):
    bandit = learned(declared(MANY, "epsilon-greedy-0.2"), clock)
    decisions = [bandit.decide() for _ in range(DRAWS)]
    often = [decision for decision in decisions if decision.propensity > 1e-3]
    kinds = {tuple(one.action.values()): one.propensity for one in often}
    expected = sum(kinds.values())
    error = math.sqrt(expected * (1 - expected) / DRAWS)
    assert abs(len(often) / DRAWS - expected) < SIGMAS * error


def test_real_valued_actions_are_uniform_until_a_version_knows_the_choices(declared, clock):
    bandit = learned(
        declared({"title": ["A", "B"], "price": (0.0, 2.0)}, "grid-thompson-1-1"), clock
    )
    bandit.add("C", slot="title")
    assert [bandit.decide().propensity for _ in range(20)] == [pytest.approx(1 / 6)] * 20
    assert "C" in {bandit.decide().action["title"] for _ in range(200)}


@pytest.mark.parametrize("actions", [MANY, {"title": ["A", "B"], "price": (0.0, 2.0)}])
def test_eligible_choices_cannot_be_named_where_actions_are_not_listed(declared, actions):
    bandit = declared(actions, "random")
    slot = next(iter(actions))
    with raises_code("invalid-input"):
        bandit.decide(eligible={slot: actions[slot][:1]})
    bandit.pause(actions[slot][0], slot=slot)
    assert bandit.decide().action[slot] != actions[slot][0]


@pytest.mark.parametrize(
    "policy",
    ["rcp-adaptive", "ucb1"]
    + [pytest.param(name, marks=pytest.mark.soak) for name in ("thompson-1-1", "rcp-submax")],
)
def test_the_better_arm_is_found_where_the_best_is_not_eligible(policy):
    """Every third decision lacks the best arm: the second best must get 95 of 100 of them."""
    rng, chances = np.random.default_rng(1), {"A": 0.05, "B": 0.5, "C": 0.9}
    bandit = submax.Bandit(list(chances), policy=policy, seed=1)
    taken = []
    for number in range(1500):
        restricted = number % 3 == 0
        decision = bandit.decide(eligible=["A", "B"] if restricted else None)
        bandit.reward(decision.id, float(rng.random() < chances[decision.action]))
        if restricted and number > 600:
            taken.append(decision.action)
    assert taken.count("B") >= 0.95 * len(taken)
