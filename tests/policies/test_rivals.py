"""Rivals, compared with their papers' algorithms as loops."""

import itertools
import math

import numpy as np
import pytest
from observations import listed, observed, taught
from scipy.special import rel_entr

from submax import Arms, Bernoulli, Memory, Problem, Slots, make_policy, simulate
from submax.policies import EXP3IX, CascadeKLUCB, RelativeUCB, Thompson, TopTwoThompson
from submax.policies.thompson import largest_beta
from submax.research import Adversarial, Cascade, Dueling, identify
from submax.research.beyond.duels import preferences_of
from submax.research.beyond.identification import optimal_shares

ARMS = 4


def bounds(wins, number, alpha, sign):
    """The bounds before duel ``number``, as nested lists."""
    table = [[0.5] * len(wins) for _ in wins]
    for i, j in itertools.permutations(range(len(wins)), 2):
        n = wins[i][j] + wins[j][i]
        share, radius = (wins[i][j] / n, math.sqrt(alpha * math.log(number) / n)) if n else (1, 1)
        table[i][j] = share + sign * radius
    return table


def test_relative_ucb_draws_the_pairs_of_the_paper(seed):
    policy, rng = RelativeUCB(0.6), np.random.default_rng(seed)
    state, arms = policy.init(Problem(Slots((ARMS, ARMS))), 1, rng), range(ARMS)
    wins, best, beliefs = [[0] * ARMS for _ in arms], set(), set()
    for number in range(1, 200):
        upper = bounds(wins, number, 0.6, 1)
        candidates = {i for i in arms if all(upper[i][j] >= 0.5 for j in arms)}
        best = candidates if len(candidates) == 1 else best & candidates
        expected = np.zeros((ARMS, ARMS))
        for i in candidates or arms:
            if len(candidates) == 1:
                share = 1.0
            elif i in best:
                share = 0.5
            else:
                share = 1 / (2 ** len(best) * len((candidates or set(arms)) - best))
            highest = max(upper[j][i] for j in arms)
            rivals = [j for j in arms if upper[j][i] == highest]
            rivals = [j for j in rivals if j != i] or rivals
            expected[i, rivals] = share / len(rivals)
        found = listed(policy, state).reshape(ARMS, ARMS)
        np.testing.assert_allclose(found, expected, atol=1e-12)
        beliefs.add((len(best), min(len(candidates), 2)))
        # The first arm wins until it is the only candidate, and then loses.
        i, j = policy.act(state, np.zeros((1, 1, 0)), rng).action[0, 0].tolist()
        won = (i < j) == (number < 120)
        wins[i if won else j][j if won else i] += 1
        state = policy.update(state, observed([[[i, j]]], [[won]]), rng)
    assert {(1, 1), (0, 2)} <= beliefs


# Policies that forget, compared with sums over the whole history

FEW_ARMS, ROWS = 3, 25


@pytest.mark.parametrize("memory", [Memory(discount=0.9), Memory(window=10)])
@pytest.mark.parametrize("blocks", [1, 4])
def test_chances_are_those_of_weighted_beta_posteriors(memory, blocks, seed):
    policy, rng = Thompson(memory=memory), np.random.default_rng(seed)
    arms = np.concatenate([np.arange(FEW_ARMS), rng.integers(FEW_ARMS, size=ROWS - FEW_ARMS)])
    rewards = rng.integers(2, size=ROWS).astype(float)
    state = policy.init(Problem(Arms(FEW_ARMS)), 1, rng)
    for part in np.array_split(np.arange(ROWS), blocks):
        state = policy.update(state, observed(arms[None, part], rewards[None, part]), rng)
    ages = np.arange(ROWS)[::-1]
    weight = memory.discount**ages if memory.window is None else 1.0 * (ages < memory.window)
    parts = weight * np.array([rewards, 1 - rewards])
    wins, losses = (1 + part @ (arms[:, None] == np.arange(FEW_ARMS)) for part in parts)
    expected = largest_beta(wins[None], losses[None])
    np.testing.assert_allclose(listed(policy, state), expected, atol=1e-9)


# Policies that identify the best arm: published numbers, guarantees, and simple regret

POLICIES = ("track-and-stop", "top-two-thompson")


@pytest.mark.parametrize(
    ("means", "published"),
    [
        ((0.5, 0.45, 0.43, 0.4), (0.42, 0.39, 0.14, 0.06)),
        ((0.3, 0.21, 0.2, 0.19, 0.18), (0.34, 0.25, 0.18, 0.13, 0.10)),
    ],
)
def test_shares_are_those_that_the_paper_prints(means, published):
    """Garivier and Kaufmann (2016), section 6."""
    found = optimal_shares(np.array([means]))[0]
    np.testing.assert_allclose(found, published, atol=0.0051)


@pytest.mark.parametrize("name", POLICIES)
def test_the_recommended_arm_is_wrong_as_rarely_as_promised(name, seed):
    means, replicas = np.array([0.9, 0.4, 0.3]), 40
    settings = {"observations": 1500, "replicas": replicas, "seed": seed}
    found = identify(Bernoulli.of(means), make_policy(name), **settings)
    assert found.certain.mean() > 0.9
    # The failure probability is 0.05; five standard errors of its estimate are added.
    assert found.wrong <= 0.05 + 5 * math.sqrt(0.05 * 0.95 / replicas)
    np.testing.assert_allclose(found.simple_regret, 0.9 - means[found.recommended])


def test_the_second_arm_is_drawn_until_it_differs(seed):
    """The rule of the paper, played many times, against the probabilities."""
    policy, rng = TopTwoThompson(leader=0.6), np.random.default_rng(seed)
    state = taught(policy, Problem(Arms(3)), observed([[0, 0, 1, 2, 2]], [[1, 1, 1, 0, 1]]))
    a, b = np.array([3.0, 2.0, 2.0]), np.array([1.0, 1.0, 2.0])
    plays = 20000
    taken = rng.beta(a, b, (plays, 3)).argmax(axis=1)
    again = rng.random(plays) >= 0.6
    first = taken.copy()
    while (same := again & (taken == first)).any():
        taken[same] = rng.beta(a, b, (int(same.sum()), 3)).argmax(axis=1)
    found = listed(policy, state)[0]
    share = np.bincount(taken, minlength=3) / plays
    assert np.all(np.abs(share - found) < 5 * np.sqrt(found * (1 - found) / plays))


# Rivals compared with the algorithms of their papers, written as loops

EXP3_ARMS, EXP3_ROUNDS = 4, 40


def exp3_ix_probabilities(history):
    """Algorithm 1 of Neu (2015) with η_t = √(2 ln K / (K t)) and γ_t = η_t / 2."""
    losses = [0.0] * EXP3_ARMS
    for number, (arm, reward, probability) in enumerate(history, 1):
        rate = math.sqrt(2 * math.log(EXP3_ARMS) / (EXP3_ARMS * number))
        losses[arm] += (1 - reward) / (probability + rate / 2)
    rate = math.sqrt(2 * math.log(EXP3_ARMS) / (EXP3_ARMS * (len(history) + 1)))
    mass = [math.exp(-rate * loss) for loss in losses]
    return [one / sum(mass) for one in mass]


def test_exp3_ix_has_the_probabilities_of_the_paper(seed):
    policy = EXP3IX()
    rng, problem = np.random.default_rng(seed), Problem(Arms(EXP3_ARMS))
    state, context, history = policy.init(problem, 1, rng), np.zeros((1, 1, 0)), []
    for _ in range(EXP3_ROUNDS):
        found = listed(policy, state)[0]
        np.testing.assert_allclose(found, exp3_ix_probabilities(history), rtol=1e-9)
        action, log_prob = policy.act(state, context, rng)
        reward = rng.integers(2, size=(1, 1)).astype(float)
        history.append((int(action[0, 0, 0]), float(reward[0, 0]), math.exp(log_prob[0, 0])))
        state = policy.update(state, observed(action, reward, log_prob=log_prob), rng)


def test_regret_against_the_best_single_arm_is_below_the_bound_of_the_paper(seed):
    """The first arm is good in the first third, the second afterwards."""
    rounds = 600
    table = np.full((rounds, 2), 0.2)
    table[: rounds // 3, 0] = table[rounds // 3 :, 1] = 0.8
    environment = Adversarial.of(table)
    trace = simulate(environment, EXP3IX(), observations=rounds, replicas=20, seed=seed)
    best = table.sum(axis=0).max()
    # Auer et al. (2002), corollary 3.2, for rewards in a range of 0.6 and the best γ.
    bound = 0.6 * 2.63 * math.sqrt(rounds * 2 * math.log(2))
    assert best - trace.final_reward.mean() < bound


ITEMS, POSITIONS = 5, 3


def kl_bound(share, looked, rounds):
    """The largest q with looked · kl(share, q) ≤ ln t + 3 ln ln t, by bisection."""
    level = math.log(rounds) + 3 * math.log(math.log(rounds)) if rounds > 1 else 0.0
    low, high = share, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        inside = looked * (rel_entr(share, middle) + rel_entr(1 - share, 1 - middle)) <= level
        low, high = (middle, high) if inside else (low, middle)
    return low


def test_slates_are_ordered_by_the_bounds_of_the_paper(seed):
    policy, environment = CascadeKLUCB(), Cascade(ITEMS, POSITIONS)
    rng = np.random.default_rng(seed)
    world = environment.reset(1, rng)
    state, context = policy.init(environment.problem, 1, rng), np.zeros((1, 1, 0))
    looked, clicked = [0] * ITEMS, [0] * ITEMS
    for rounds in range(60):
        bounds = [
            math.inf
            if looked[item] == 0
            else kl_bound(clicked[item] / looked[item], looked[item], rounds)
            for item in range(ITEMS)
        ]
        action, log_prob = policy.act(state, context, rng)
        slate = action[0, 0].tolist()
        assert len(set(slate)) == POSITIONS
        expected = sorted(bounds, reverse=True)[:POSITIONS]
        np.testing.assert_allclose([bounds[item] for item in slate], expected, atol=1e-9)
        reward = environment.reward(world, context, action, rng)
        place = POSITIONS if reward[0, 0] == 0 else round(POSITIONS * (1 - reward[0, 0]))
        for position, item in enumerate(slate[: place + 1]):
            looked[item] += 1
            clicked[item] += position == place
        state = policy.update(state, observed(action, reward, log_prob=log_prob), rng)
        assert state.looked[0].tolist() == looked
        assert state.clicked[0].tolist() == clicked


# Rivals learn: their regret is below that of uniform choices

PREFERENCES = preferences_of(np.array([2.0, 0.5, 0.0, -1.0]))
CASCADE, DUELS = Cascade(5, 3), Dueling(preferences=tuple(map(tuple, PREFERENCES.tolist())))


@pytest.mark.parametrize(
    ("name", "environment"), [("cascade-kl-ucb", CASCADE), ("relative-ucb", DUELS)]
)
def test_it_has_less_regret_than_a_uniform_choice(name, environment, seed):
    settings = {"observations": 400, "replicas": 10, "seed": seed}
    ours, uniform = (
        simulate(environment, make_policy(one), **settings).final_regret for one in (name, "random")
    )
    difference = uniform - ours
    assert difference.mean() > 3 * difference.std(ddof=1) / math.sqrt(10)
