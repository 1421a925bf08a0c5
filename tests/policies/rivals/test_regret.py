"""Rivals learn: their regret is below that of uniform choices."""

import math

import pytest

from submax import (
    make_policy,
    simulate,
)
from submax.research import Cascade, Dueling

CASCADE, DUELS = Cascade(5, 3), Dueling(utilities=(2.0, 0.5, 0.0, -1.0))


@pytest.mark.parametrize(
    ("name", "environment", "observations"),
    [
        ("cascade-ucb", CASCADE, 400),
        ("cascade-kl-ucb", CASCADE, 400),
        ("relative-ucb", DUELS, 400),
        ("double-thompson", DUELS, 150),
    ],
)
def test_it_has_less_regret_than_a_uniform_choice(name, environment, observations, seed):
    settings = {"observations": observations, "replicas": 10, "seed": seed}
    ours, uniform = (
        simulate(environment, make_policy(one), **settings).final_regret for one in (name, "random")
    )
    difference = uniform - ours
    assert difference.mean() > 3 * difference.std(ddof=1) / math.sqrt(10)
