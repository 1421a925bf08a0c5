"""CascadeUCB and CascadeKLUCB, compared with the algorithms of their paper, written as loops."""

import math

import numpy as np
import pytest
from scipy.special import rel_entr

from submax import Cascade, Feedback, make_policy, simulate
from submax.policies import CascadeKLUCB, CascadeUCB

ITEMS, POSITIONS = 5, 3


def ucb_bound(share, looked, rounds):
    return share + math.sqrt(1.5 * math.log(max(rounds, 1)) / looked)


def kl_bound(share, looked, rounds):
    """The largest q with looked · kl(share, q) ≤ ln t + 3 ln ln t, by bisection."""
    level = math.log(rounds) + 3 * math.log(math.log(rounds)) if rounds > 1 else 0.0
    low, high = share, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        inside = looked * (rel_entr(share, middle) + rel_entr(1 - share, 1 - middle)) <= level
        low, high = (middle, high) if inside else (low, middle)
    return low


@pytest.mark.parametrize(
    ("policy", "bound"), [(CascadeUCB(), ucb_bound), (CascadeKLUCB(), kl_bound)]
)
def test_slates_are_ordered_by_the_bounds_of_the_paper(policy, bound, seed):
    environment = Cascade(ITEMS, POSITIONS)
    rng = np.random.default_rng(seed)
    world = environment.reset(1, rng)
    state, context = policy.init(environment.problem, 1, rng), np.zeros((1, 1, 0))
    looked, clicked = [0] * ITEMS, [0] * ITEMS
    for rounds in range(60):
        bounds = [
            math.inf
            if looked[item] == 0
            else bound(clicked[item] / looked[item], looked[item], rounds)
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
        feedback = Feedback(context, action, reward, log_prob, np.ones((1, 1)))
        state = policy.update(state, feedback, rng)
        assert state.looked[0].tolist() == looked
        assert state.clicked[0].tolist() == clicked


@pytest.mark.parametrize("name", ["cascade-ucb", "cascade-kl-ucb"])
def test_it_earns_more_than_a_uniform_choice(name, seed):
    settings = {"observations": 400, "replicas": 10, "seed": seed}
    ours, uniform = (
        simulate(Cascade(ITEMS, POSITIONS), make_policy(one), **settings).final_regret
        for one in (name, "random")
    )
    difference = uniform - ours
    assert difference.mean() > 3 * difference.std(ddof=1) / math.sqrt(10)
