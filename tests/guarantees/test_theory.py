"""The claims of docs/explanation/theory.md, recomputed exactly or shown by a small simulation."""

import csv
import itertools
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from observations import listed, observed, taught
from scipy import stats
from scipy.optimize import brentq
from scipy.special import xlogy

from submax.core.conditioning import (
    FIRST_ROUND,
    ConditionalDistribution,
    SampleSizes,
    Table,
    rejection,
)
from submax.core.numerics import draw, draw_grouped
from submax.core.problem import Problem
from submax.core.spaces import Arms, Slots
from submax.environments.arms import Bernoulli
from submax.estimators.counting import Counting, fitted_smoothing
from submax.policies import make_policy
from submax.policies.reward_conditioned import RewardConditioned
from submax.policies.slots import SlotBySlot
from submax.simulation.delays import BatchedRewards
from submax.simulation.simulate import simulate
from submax.strategies.tracking import Divergence, Tracking, confidence, persistence
from submax.strategies.weighted import Clipped, Optimistic, SubMax
from submax.testing.assertions import SMALLEST_P_VALUE, goodness_of_fit

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "theory.md"
FALSE_ALARM = 1e-8
"""Of one comparison; there are fewer than a thousand of them."""


def kl(value, mark):
    """Divergence between Bernoulli distributions."""
    return xlogy(value, value / mark) + xlogy(1 - value, (1 - value) / (1 - mark))


def worlds(rng, count, arms=6):
    """Logging policies and values ``[count, arms]``, sparse and dense, and the tables they make."""
    logging = rng.dirichlet(np.ones(arms), size=count)
    value = rng.beta(1, rng.choice([1, 9, 99], size=(count, 1)), size=(count, arms))
    mean = np.sum(logging * value, axis=1, keepdims=True)
    rows = np.stack([logging * (1 - value) / (1 - mean), logging * value / mean], axis=1)
    prior = np.concatenate([1 - mean, mean], axis=1)
    levels = np.broadcast_to([0.0, 1.0], prior.shape)
    return logging, value, mean, Table(rows, levels, prior, np.full(prior.shape, np.nan))


def play(policy, value, steps, rng, *, first=None, batch=1, watch=None):
    """Arms of ``value [R, K]`` for so many batches: the arms taken, ``[R, steps * batch]``."""
    replicas, arms = value.shape
    state = policy.init(Problem(Arms(arms)), replicas, rng)
    if first is not None:
        state = policy.update(state, first, rng)
    taken = []
    for _ in range(steps):
        action = policy.act(state, np.zeros((replicas, batch, 0)), rng).action
        state = policy.record(state, action)
        taken.append(action[..., 0])
        chance = np.take_along_axis(value, taken[-1], axis=1)
        reward = (rng.random(chance.shape) < chance).astype(float)
        state = policy.update(state, observed(taken[-1], reward), rng)
        if watch is not None:
            watch(state)
    return np.concatenate(taken, axis=1)


def test_the_page_names_every_test():
    named = set(re.findall(r"`(test_\w+)`", PAGE.read_text()))
    here = {name for name in globals() if name.startswith("test_")}
    assert named == here - {"test_the_page_names_every_test"}


# 1. SubMax is one step of policy improvement


def test_the_difference_of_conditioned_policies_is_the_advantage(seed):
    logging, value, mean, table = worlds(np.random.default_rng(seed), 500)
    low, high = np.moveaxis(table.probabilities, 1, 0)
    assert np.allclose(high - low, logging * (value - mean) / (mean * (1 - mean)))


def test_submax_gains_what_the_formula_says(seed):
    logging, value, mean, table = worlds(np.random.default_rng(seed), 500)
    policy = SubMax().probabilities(table)
    above = np.maximum(value - mean, 0)
    assert np.allclose(policy, logging * above / np.sum(logging * above, axis=1, keepdims=True))
    gain = np.sum(logging * above**2, axis=1) / np.sum(logging * above, axis=1)
    assert np.allclose(np.sum(policy * value, axis=1), mean[:, 0] + gain)


@pytest.mark.parametrize("smoothing", [0.1, 1.0, 3.0])
def test_counting_with_smoothing_is_the_same_step_on_smoothed_counts(smoothing, seed):
    rng = np.random.default_rng(seed)
    action = rng.integers(0, 5, size=(20, 60))
    reward = (rng.random(action.shape) < 0.3).astype(float)
    policy = RewardConditioned(Counting(smoothing), SubMax())
    state = taught(policy, Problem(Arms(5)), observed(action, reward))
    arm = action[..., None] == np.arange(5)
    won = (arm * reward[..., None]).sum(axis=1) + smoothing
    evidence = arm.sum(axis=1) + 2 * smoothing
    logging, value = evidence / evidence.sum(axis=1, keepdims=True), won / evidence
    above = logging * np.maximum(value - np.sum(logging * value, axis=1, keepdims=True), 0)
    expected = above / above.sum(axis=1, keepdims=True)
    assert np.allclose(listed(policy, state, 20), expected)


# 2. One family from optimistic to SubMax

WEIGHTS = (0.0, 0.3, 1.0, 1.2, 2.0, 4.0, 20.0, 1e3)


def test_clipped_policies_are_one_family(seed):
    logging, value, mean, table = worlds(np.random.default_rng(seed), 300)
    for weight in WEIGHTS:
        steep = weight / mean + (weight - 1) / (1 - mean)
        mass = logging * np.maximum(1 + steep * (value - mean), 0)
        expected = mass / mass.sum(axis=1, keepdims=True)
        assert np.allclose(Clipped(weight).probabilities(table), expected)
    assert np.allclose(Clipped(1.0).probabilities(table), Optimistic().probabilities(table))


def test_the_value_does_not_fall_as_the_weight_rises(seed):
    _, value, _, table = worlds(np.random.default_rng(seed), 500)
    policies = [Clipped(weight).probabilities(table) for weight in WEIGHTS]
    policies.append(SubMax().probabilities(table))
    assert any(np.any(policy == 0) for policy in policies[:-1]), "nothing was clipped"
    order = value.argsort(axis=1)
    for before, after in itertools.pairwise(policies):
        assert np.all(np.sum(before * value, axis=1) <= np.sum(after * value, axis=1) + 1e-12)
        # More than that: every tail of better actions gains.
        tails = [
            np.take_along_axis(policy, order, axis=1)[:, ::-1].cumsum(axis=1)
            for policy in (before, after)
        ]
        assert np.all(tails[0] <= tails[1] + 1e-12)


# 3. Rejection sampling is exact


class Repeated(ConditionalDistribution):
    """One table ``[L, M]`` in n rows of one replica; notes how many rows were asked again."""

    def __init__(self, table, count, asked=None):
        self.table, self.count, self.asked = table, count, [] if asked is None else asked

    def prob(self, action):
        return np.moveaxis(self.table[:, action[..., 0]], 0, 2)

    def sample(self, level, count, rng):
        index = draw(self.table[None, level, None], self.count * count, rng)
        return index.reshape(1, self.count, count, 1)

    def rows(self, row):
        self.asked.append(row.shape[1])
        return Repeated(self.table, row.shape[1], self.asked)


@pytest.mark.parametrize(
    "weights", [(-1.0, 1.0), (-3.0, 4.0), (1.0, -1.2, 0.8), (-0.4, 1.5, -0.3), (0.2, 0.8)]
)
def test_rejection_is_exact_and_accepts_what_the_formula_says(weights, seed):
    rng = np.random.default_rng((seed, len(weights)))
    weights, count = np.array(weights), 5000
    mass = np.zeros(1)
    while mass.sum() < 0.05 * np.maximum(weights, 0).sum():
        table = rng.dirichlet(np.ones(8), size=len(weights))
        mass = np.maximum(weights @ table, 0)
    belief = Repeated(table, count)
    action, exhausted = rejection(np.tile(weights, (1, count, 1)), belief, rng)
    assert not exhausted.any()
    assert goodness_of_fit(action, mass / mass.sum()) > SMALLEST_P_VALUE
    accepted = mass.sum() / np.maximum(weights, 0).sum()
    if tuple(weights) == (-1.0, 1.0):
        assert np.isclose(accepted, np.abs(table[1] - table[0]).sum() / 2)
    again = belief.asked[0] if belief.asked else 0
    none = (1 - accepted) ** FIRST_ROUND
    assert stats.binomtest(again, count, none).pvalue > FALSE_ALARM


# 4. When SubMax gets stuck


def taking_the_second(won, pulls, smoothing):
    """SubMax's probability of arm 2, from integers alone: ``won`` and ``pulls`` of both arms.

    c = ``smoothing``: arm 2 where (S₂ + c) / (F₂ + c) > (S₁ + c) / (F₁ + c), half where they are
    equal, and half while a level was never seen.
    """
    exact = Fraction(str(smoothing))
    above = [exact.denominator * number + exact.numerator for number in won]
    below = [
        exact.denominator * (pull - number) + exact.numerator
        for pull, number in zip(pulls, won, strict=True)
    ]
    first, second = above[0] * below[1], above[1] * below[0]
    seen = (won[0] + won[1] > 0) & (won[0] + won[1] < pulls[0] + pulls[1])
    return np.where(seen, 0.5 * ((second > first) + 1.0 * (second >= first)), 0.5)


def stuck(values, pulls, smoothing, further):
    """How likely arm 1 is not taken again: in ``further`` decisions, and two bounds for ever.

    After ``pulls`` of each arm, one decision at a time. A recursion over the rewards of arm 2, for
    every s of arm 1; the bounds are those of the random walk from where it then is.
    """
    s = np.arange(pulls + 1)[:, None]
    won = np.arange(pulls + further + 1)[None]
    mass = stats.binom.pmf(s, pulls, values[0]) * stats.binom.pmf(won, pulls, values[1])
    for step in range(further):
        mass = mass * taking_the_second((s, won), (pulls, pulls + step), smoothing)
        moved = mass * (1 - values[1])
        moved[:, 1:] += mass[:, :-1] * values[1]
        mass = moved
    lowest = highest = 0.0
    for number in range(pulls + 1):
        odds = (number + smoothing) / max(pulls - number + smoothing, 1e-300)
        place = won[0] + smoothing - odds * (pulls + further - won[0] + smoothing)
        rate = decay(values[1], odds)
        lowest += mass[number] @ -np.expm1(-rate * np.maximum(place, 0))
        bound = -np.expm1(-rate * np.maximum(place + odds, 0))
        # Without any reward a coin decides, wherever the walk is.
        bound[0] = 1.0 if number == 0 else bound[0]
        highest += mass[number] @ bound
    return mass.sum(), lowest, highest


def decay(value, odds):
    """θ > 0 with p e^−θ + (1 − p) e^(θ ρ) = 1, and 0 where the walk does not drift up."""
    if odds * (1 - value) >= value * (1 - 1e-9):
        return 0.0

    def excess(theta):
        return np.logaddexp(np.log(value) - theta, np.log1p(-value) + theta * odds)

    highest = 1.0
    while excess(highest) <= 0 and highest < 1e3:
        highest *= 2
    lowest = highest
    while excess(lowest) >= 0:
        lowest /= 2
    return highest if highest >= 1e3 else brentq(excess, lowest, highest)


def test_with_two_arms_submax_takes_the_higher_smoothed_odds(seed):
    rng = np.random.default_rng(seed)
    pulls = rng.integers(0, 8, size=(500, 2))
    won = rng.binomial(pulls, rng.random((500, 2)))
    action, reward, weight = np.zeros((500, 28), int), np.zeros((500, 28)), np.zeros((500, 28))
    place = np.arange(7)
    for arm, paid in itertools.product((0, 1), (0, 1)):
        columns = slice(7 * (2 * arm + paid), 7 * (2 * arm + paid) + 7)
        count = won[:, arm] if paid else pulls[:, arm] - won[:, arm]
        action[:, columns], reward[:, columns] = arm, paid
        weight[:, columns] = place < count[:, None]
    feedback = observed(action, reward, weight=weight)
    for smoothing in (0.1, 1):
        policy = RewardConditioned(Counting(float(smoothing)), SubMax())
        found = listed(policy, taught(policy, Problem(Arms(2)), feedback), 500)[:, 1]
        expected = taking_the_second(won.T, pulls.T, smoothing)
        assert np.allclose(found, expected, rtol=0, atol=1e-12)
        assert set(expected) == {0.0, 0.5, 1.0}


def tried(value, pulls, replicas, rng):
    """Each of two arms pulled so often: the feedback."""
    action = np.tile(np.repeat([0, 1], pulls), (replicas, 1))
    return observed(action, (rng.random(action.shape) < np.array(value)[action]).astype(float))


@pytest.mark.parametrize(
    ("values", "pulls", "smoothing"),
    [
        ((0.5, 0.4), 5, 1.0),
        ((0.5, 0.4), 5, 0.0),
        ((0.1, 0.05), 20, 0.1),
        ((0.1, 0.05), 20, 1.0),
        # (n + 2c) p₂ < c: the first drop is never final.
        ((0.1, 0.05), 5, 1.0),
    ],
)
def test_the_policy_gets_stuck_as_often_as_the_recursion_says(values, pulls, smoothing, seed):
    rng = np.random.default_rng((seed, pulls))
    replicas, further = 4000, 100
    policy = RewardConditioned(Counting(smoothing), SubMax())
    world, first = np.tile(values, (replicas, 1)), tried(values, pulls, replicas, rng)
    taken = play(policy, world, further, rng, first=first)
    never = int((taken == 1).all(axis=1).sum())
    expected, *_ = stuck(values, pulls, smoothing, further)
    assert stats.binomtest(never, replicas, expected).pvalue > FALSE_ALARM


@pytest.mark.parametrize(("values", "pulls"), [((0.5, 0.4), 3), ((0.3, 0.2), 2)])
def test_without_smoothing_an_arm_without_reward_is_dropped_for_ever(values, pulls, seed):
    rng = np.random.default_rng((seed, pulls))
    replicas, further = 4000, 150
    world, first = np.tile(values, (replicas, 1)), tried(values, pulls, replicas, rng)
    last = []
    policy = RewardConditioned(Counting(0.0), SubMax())
    play(policy, world, further, rng, first=first, watch=lambda state: last.append(state.params))
    won = last[-1].counts[:, 1]
    # Without any reward both are still tried: less than 0.75^150 of the runs.
    dropped = int(((won[:, 0] == 0) & (won[:, 1] > 0)).sum())
    better, worse = values
    expected = (1 - better) ** pulls * (1 - (1 - worse) ** pulls * better / (better + worse))
    assert stats.binomtest(dropped, replicas, expected).pvalue > FALSE_ALARM


def test_the_table_of_the_page():
    rows = [
        [float(cell) for cell in line.strip("| \n").split("|")]
        for line in PAGE.read_text().split("<!-- stuck -->")[1].splitlines()
        if line.startswith("| 0.")
    ]
    assert len(rows) == 12
    for better, worse, smoothing, pulls, soon, ever in rows:
        found, low, high = stuck((better, worse), int(pulls), smoothing, 100)
        assert abs(found - soon) <= 0.000051
        assert low - 0.000051 <= ever <= high + 0.000051


# 5. The adaptive rule


def filled(value, evidence, observations, decisions):
    """The probabilities of the filling strategy, from values and evidence ``[n, K]``."""
    mass = np.stack([(1 - value) * evidence, value * evidence], axis=1)
    total = mass.sum(axis=-1)
    prior = total / total.sum(axis=-1, keepdims=True)
    levels = np.broadcast_to([0.0, 1.0], prior.shape)
    experience = SampleSizes(total, np.array(observations), np.array(decisions))
    return Tracking().probabilities(
        Table(mass / total[..., None], levels, prior, np.full(prior.shape, np.nan), experience)
    )


def demands(value, observed, decisions):
    """κ of every arm, ``[count, arms]``."""
    least = persistence(observed[:, None], Divergence.of(value))
    return np.maximum(confidence(observed, decisions)[:, None], least)


def beliefs(rng, count, arms=5, most=1e4):
    """Values and evidence such as counts and a prior leave behind, ``[count, arms]``."""
    pulls = np.floor(most ** rng.random((count, arms)))
    chance = rng.beta(1, rng.choice([1, 9], size=(count, 1)), size=(count, arms))
    added = 1 + 8 * rng.random((count, 1))
    evidence = pulls + added + 1
    return (rng.binomial(pulls.astype(int), chance) + 1) / evidence, evidence, pulls.sum(axis=1)


def test_chernoff_for_the_posterior(seed):
    rng = np.random.default_rng(seed)
    evidence = np.exp(rng.uniform(-1, 8, size=5000))
    value = rng.random(5000)
    mark = value + (1 - value) * rng.random(5000) ** 3
    tail = stats.beta.sf(mark, evidence * value, evidence * (1 - value))
    assert np.all(tail <= np.exp(-evidence * kl(value, mark)) * (1 + 1e-9))


def test_value_and_observations_are_those_of_the_posterior(seed):
    rng = np.random.default_rng(seed)
    policy = make_policy("rcp-adaptive")
    states = []
    play(policy, rng.beta(1, 4, size=(10, 6)), 5, rng, batch=40, watch=states.append)
    for state in states:
        counts, added = state.params.counts, state.params.smoothing
        evidence = counts.sum(axis=1) + added.sum(axis=1, keepdims=True)
        value = (counts[:, 1] + added[:, 1:]) / evidence
        expected = filled(value, evidence, state.decision_counts.received, np.full(10, 40.0))
        found = listed(policy, state, 10)
        seen = (counts.sum(axis=2) > 0).all(axis=1)
        assert np.allclose(found[seen], expected[seen])


def test_the_threshold_is_unique_and_uses_up_the_decisions(seed):
    rng = np.random.default_rng(seed)
    value, evidence, observed = beliefs(rng, 150)
    decisions = np.exp(rng.uniform(0, 8, size=150)).round()
    found = filled(value, evidence, observed, decisions)
    for row, demand in enumerate(demands(value, observed, decisions)):

        def missing(logit, row=row, demand=demand):
            entropy = xlogy(value[row], value[row]) + xlogy(1 - value[row], 1 - value[row])
            divergence = entropy + np.logaddexp(0, logit) - value[row] * logit
            return np.maximum(demand / divergence - evidence[row], 0)

        def excess(logit, row=row, missing=missing):
            return missing(logit).sum() - decisions[row]

        foot = np.log(value[row].max() / (1 - value[row].max()))
        grid = np.array([excess(foot + height) for height in np.geomspace(1e-3, 30, 60)])
        assert np.all(np.diff(grid) <= 1e-9 * np.abs(grid[:-1]))
        logit = brentq(excess, foot + 1e-4, foot + 30, xtol=1e-13)
        assert np.allclose(found[row], missing(logit) / decisions[row], atol=1e-5)


def test_the_allocation_is_monotone(seed):
    rng = np.random.default_rng(seed)
    value, evidence, observed = beliefs(rng, 300)
    decisions = np.full(300, 100.0)
    equal = np.repeat(evidence[:, :1], 5, axis=1)
    order = value.argsort(axis=1)
    found = np.take_along_axis(filled(value, equal, observed, decisions), order, axis=1)
    assert np.all(np.diff(found, axis=1) >= -1e-12)
    same = np.repeat(value[:, :1], 5, axis=1)
    order = evidence.argsort(axis=1)
    found = np.take_along_axis(filled(same, evidence, observed, decisions), order, axis=1)
    assert np.all(np.diff(found, axis=1) <= 1e-12)


def test_many_decisions_go_to_the_best_alone(seed):
    rng = np.random.default_rng(seed)
    value, evidence, observed = beliefs(rng, 300)
    best = value.argmax(axis=1)
    others = np.arange(5) != best[:, None]
    gap = np.where(others, kl(value, value.max(axis=1, keepdims=True)), np.inf)
    for decisions in (1e2, 1e4, 1e6):
        given = np.full(300, decisions)
        demand = demands(value, observed, given)
        with np.errstate(divide="ignore"):
            bound = np.sum(demand / gap, axis=1) / decisions
        share = np.sum(filled(value, evidence, observed, given) * others, axis=1)
        assert np.all(share <= bound + 1e-6)


def test_an_arm_with_enough_observations_is_not_taken(seed):
    # The bound on the pulls of worse arms, which gives sublinear regret: here of one that never
    # pays, and of others.
    rng = np.random.default_rng(seed)
    value = np.concatenate([np.zeros((20, 1)), rng.beta(1, 4, size=(20, 4))], axis=1)
    policy, batch, checked = make_policy("rcp-adaptive"), 50, []

    def watch(state):
        counts, added = state.params.counts, state.params.smoothing
        evidence = counts.sum(axis=1) + added.sum(axis=1, keepdims=True)
        estimate = (counts[:, 1] + added[:, 1:]) / evidence
        demand = demands(estimate, state.decision_counts.received, np.full(20, float(batch)))
        best = estimate.max(axis=1, keepdims=True)
        full = evidence * kl(estimate, best) >= demand
        found = listed(policy, state, 20)
        seen = (counts.sum(axis=2) > 0).all(axis=1)
        assert np.all(found[seen[:, None] & full] == 0)
        checked.append(full.sum())

    play(policy, value, 100, rng, batch=batch, watch=watch)
    assert sum(checked) > 1000


def test_the_growth_table_is_that_of_the_file():
    with (PAGE.parents[1] / "research" / "sublinear.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    table = PAGE.read_text().split("<!-- growth -->")[1]
    lines = [line for line in table.splitlines() if line.startswith("| K =")]
    # The file has three rows of every simulation, the page one line.
    for line, before, row in zip(lines, rows[1::3], rows[2::3], strict=True):
        assert 10 * int(before["t"]) == int(row["t"])
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert cells == [
            row["problem"],
            f"`{row['policy']}`",
            row["batch"],
            row["replicas"],
            f"{int(row['t']):,}",
            f"{row['mean_regret']} ± {row['error']}",
            row["median"],
            row["largest"],
            f"{before['slope']} ± {before['slope_error']}",
            f"{row['slope']} ± {row['slope_error']}",
            row["constant"],
        ]


def test_the_confidence_grows_until_any_arm_is_taken_again():
    value, evidence = np.array([[0.05, 0.5]]), np.array([[30.0, 1e6]])
    one = np.ones(1)

    def short(log_observed):
        return demands(value, np.exp([log_observed]), one)[0, 0] - 30 * kl(0.05, 0.5)

    due = brentq(short, np.log(1e4), 600)
    before, after = (
        filled(value, evidence, np.exp([share * due]), one)[0, 0] for share in (0.9, 1.1)
    )
    assert before == 0
    assert after > 0


def test_an_arm_that_looked_terrible_is_tried_again(seed):
    rng = np.random.default_rng(seed)
    replicas, decisions = 60, 250
    value = np.tile([0.8, 0.4], (replicas, 1))
    # Arm 1 fails four times, arm 2 pays twelve times in thirty.
    action = np.tile(np.repeat([0, 1], [4, 30]), (replicas, 1))
    reward = np.tile(np.repeat([0.0, 1.0, 0.0], [4, 12, 18]), (replicas, 1))
    again = {
        name: play(make_policy(name), value, decisions, rng, first=observed(action, reward)) == 0
        for name in ("rcp-adaptive", "rcp-submax")
    }
    odds = (0 + 1) / (4 + 1)
    back = np.exp(-decay(0.4, odds) * ((12 + 1) - odds * (18 + 1)))
    assert replicas * back < 1e-7, "SubMax could come back"
    assert not again["rcp-submax"].any()
    assert again["rcp-adaptive"].any(axis=1).all()
    assert again["rcp-adaptive"][:, -100:].mean() > 0.5


@pytest.mark.parametrize("beta", [1.0, pytest.param(9.0, marks=pytest.mark.soak)])
def test_the_regret_of_the_adaptive_rule_slows_down(beta, seed):
    settings = {"observations": 50_000, "replicas": 60, "seed": seed, "points": 10}
    world, policy = Bernoulli(10, 1.0, beta), make_policy("rcp-adaptive")
    trace = simulate(world, policy, delay=BatchedRewards(500), **settings)
    early = trace.accumulated_regret[:, 0] / 5000
    late = (trace.accumulated_regret[:, -1] - trace.accumulated_regret[:, 4]) / 25_000
    assert stats.ttest_rel(late, early, alternative="less").pvalue < FALSE_ALARM


@pytest.mark.parametrize("count", [10, 100, 900])
def test_groups_have_the_marginal_probabilities_in_every_place(count, seed):
    rng = np.random.default_rng((seed, count))
    probabilities = rng.dirichlet(np.ones(6))
    drawn = draw_grouped(np.tile(probabilities, (6000, 1, 1)), count, rng)
    for place in (0, count // 3, count - 1):
        assert goodness_of_fit(drawn[:, place], probabilities) > SMALLEST_P_VALUE


@pytest.mark.parametrize("count", [1, 20, 36, 144, 900, 1000, 5000])
def test_groups_are_chosen_as_often_as_expected_up_to_one(count, seed):
    rng = np.random.default_rng((seed, count))
    probabilities = rng.dirichlet(np.ones(12), size=(50, 1))
    drawn = draw_grouped(probabilities, count, rng)
    met = (drawn[..., None] == np.arange(12)).sum(axis=1)
    groups = min(count, round(6 * count**0.5))
    share = groups * probabilities[:, 0]
    assert np.all(met >= (count // groups) * np.floor(share - 1e-9))
    assert np.all(met <= -(-count // groups) * np.ceil(share + 1e-9))
    if count % groups == 0:
        assert np.all(np.abs(met - count * probabilities[:, 0]) < count // groups + 1e-9)


def greedily_counted(arms, replicas, rng, beta=9.0):
    """Beta(1, β) arms, each tried twice, then always the best quarter so far: the counts."""
    chance = rng.beta(1, beta, size=(replicas, arms))
    won, pulls = rng.binomial(2, chance).astype(float), np.full(chance.shape, 2.0)
    for _ in range(20):
        estimate = (won + 1) / (pulls + 2) + 1e-9 * rng.random(chance.shape)
        taken = estimate >= np.quantile(estimate, 0.75, axis=1, keepdims=True)
        pulls += taken
        won += taken & (rng.random(chance.shape) < chance)
    return np.stack([pulls - won, won], axis=1)


def test_the_fitted_prior_is_not_disturbed_by_greedy_sampling(seed):
    rng = np.random.default_rng(seed)
    counts = greedily_counted(3000, 40, rng)
    fitted = np.log(fitted_smoothing(counts))
    assert np.all(fitted[:, 1] == 0)
    assert stats.ttest_1samp(fitted[:, 0], np.log(9)).pvalue > FALSE_ALARM
    pooled = counts[:, 1].sum(axis=1) / counts.sum(axis=(1, 2))
    assert stats.ttest_1samp(pooled, 0.1).pvalue < FALSE_ALARM


def test_the_fitted_prior_comes_closer_with_more_arms(seed):
    rng = np.random.default_rng(seed)
    few, many = (
        np.square(np.log(fitted_smoothing(greedily_counted(arms, 40, rng))[:, 0] / 9)).mean()
        for arms in (100, 3000)
    )
    # Thirty times less is expected; the quotient of two such means varies as F does.
    assert few / many > 30 * stats.f.ppf(FALSE_ALARM, 40, 40)


# 6. Slot by slot


def logged(space, logging, value):
    """What ``[M]`` actions come to in the mean: every action with both rewards, weighted."""
    weight = np.concatenate([logging * (1 - value), logging * value])[None]
    reward = np.repeat([[0.0, 1.0]], space.size, axis=1)
    return observed(np.tile(space.listing(), (2, 1))[None], reward, weight=weight)


def improved(kind, space, logging, value):
    """SubMax of one kind after the feedback of ``logged``: the probability of every action."""
    policy = kind(Counting(0.0), SubMax())
    return listed(policy, taught(policy, Problem(space), logged(space, logging, value)))[0]


def product(slots):
    """The probability of every joint choice, the last slot fastest."""
    joint = np.ones(1)
    for slot in slots:
        joint = np.outer(joint, slot).ravel()
    return joint


def test_every_slot_takes_its_own_step(seed):
    space, rng = Slots((3, 4)), np.random.default_rng(seed)
    for _ in range(50):
        logging, value = rng.dirichlet(np.ones(12)), rng.random(12)
        mean, expected = logging @ value, []
        for axis in (1, 0):
            share = logging.reshape(3, 4).sum(axis=axis)
            worth = (logging * value).reshape(3, 4).sum(axis=axis) / share
            step = share * np.maximum(worth - mean, 0)
            expected.append(step / step.sum())
        found = improved(SlotBySlot, space, logging, value)
        assert np.allclose(found, product(expected))


def test_the_gains_of_slots_that_add_up_add_up(seed):
    space, rng = Slots((3, 4, 2)), np.random.default_rng(seed)
    for _ in range(50):
        slots = [rng.dirichlet(np.ones(size)) for size in space.sizes]
        parts = [rng.uniform(0, 0.3, size=size) for size in space.sizes]
        listing = space.listing()
        value = sum(part[listing[:, slot]] for slot, part in enumerate(parts))
        logging, gain = product(slots), 0.0
        for share, part in zip(slots, parts, strict=True):
            above = np.maximum(part - share @ part, 0)
            gain += (share @ above**2) / (share @ above)
        found = improved(SlotBySlot, space, logging, value)
        assert found @ value == pytest.approx(logging @ value + gain)


@pytest.mark.parametrize("slots", [1, 2, 5, 10])
def test_a_joint_step_gains_as_the_root_of_the_slots(slots):
    space = Slots((2,) * slots)
    value = 0.5 + 0.04 * (2 * space.listing() - 1).sum(axis=1)
    logging = np.full(space.size, 1 / space.size)
    by_slot, joint = (
        improved(kind, space, logging, value) @ value - 0.5
        for kind in (SlotBySlot, RewardConditioned)
    )
    # Where a walk of so many steps is on average.
    walk = sum(abs(2 * up - slots) * stats.binom(slots, 0.5).pmf(up) for up in range(slots + 1))
    assert by_slot == pytest.approx(0.04 * slots)
    assert joint == pytest.approx(0.04 * slots / walk)
    assert walk == pytest.approx((2 * slots / np.pi) ** 0.5, rel=0.3 / slots)


def test_what_only_a_combination_earns_is_not_seen_in_one_step():
    space, logging = Slots((2, 2)), np.full(4, 0.25)
    value = np.array([0.6, 0.2, 0.2, 0.6])
    assert np.allclose(improved(SlotBySlot, space, logging, value), 0.25)
    assert np.allclose(improved(RewardConditioned, space, logging, value), [0.5, 0, 0, 0.5])


def test_the_regret_of_optimistic_grows_as_that_of_an_urn(seed):
    """Between t/8 and t it grows by 8^(p₂/p₁), less what the first uniform batch hides."""
    world, policy = Bernoulli(means=(0.4, 0.2)), RewardConditioned(Counting(0.1), Optimistic())
    settings = {"observations": 40_000, "replicas": 100, "seed": seed, "points": 8}
    trace = simulate(world, policy, delay=BatchedRewards(50), **settings)
    first, last = trace.accumulated_regret[:, 0], trace.accumulated_regret[:, -1]
    assert trace.steps[-1] == 8 * trace.steps[0]
    exponent = np.log(last.mean() / first.mean()) / np.log(8)
    relative = [one.std(ddof=1) / one.mean() / 10 for one in (first, last)]
    error = np.hypot(*relative) / np.log(8)
    assert abs(exponent - 0.5) < 6 * error + 0.08
