"""The means of slates, compared with a sum over all ways to click."""

import itertools

import numpy as np
import pytest

from submax.research import Cascade, PositionClicks

ITEMS, POSITIONS = 4, 3


def attractions(world, slate):
    """The attraction of each position; an item that is shown again attracts nobody."""
    return [0.0 if item in slate[:position] else world[item] for position, item in enumerate(slate)]


def cascade_mean(world, slate):
    """Someone looks on until the first click."""
    total, reached = 0.0, 1.0
    for position, attraction in enumerate(attractions(world, slate)):
        total += reached * attraction * (POSITIONS - position) / POSITIONS
        reached *= 1 - attraction
    return total


def clicks_mean(world, slate, decay=0.7):
    """All patterns of looking and clicking, with their probabilities."""
    total = 0.0
    for pattern in itertools.product((0, 1), repeat=POSITIONS):
        chance = 1.0
        for position, (clicked, attraction) in enumerate(
            zip(pattern, attractions(world, slate), strict=True)
        ):
            probability = decay**position * attraction
            chance *= probability if clicked else 1 - probability
        total += chance * sum(pattern)
    return total


@pytest.mark.parametrize(
    ("environment", "mean"),
    [
        (Cascade(ITEMS, POSITIONS), cascade_mean),
        (PositionClicks(ITEMS, POSITIONS, decay=0.7), clicks_mean),
    ],
)
def test_every_slate_has_the_mean_of_its_model_and_the_best_is_found(environment, mean, seed):
    rng = np.random.default_rng(seed)
    world = environment.reset(2, rng)
    slates = environment.problem.space.listing()
    context = np.zeros((2, len(slates), 0))
    found = environment.mean_reward(world, context, np.tile(slates, (2, 1, 1)))
    expected = [[mean(row, slate.tolist()) for slate in slates] for row in world]
    np.testing.assert_allclose(found, expected)
    np.testing.assert_allclose(
        environment.best_reward(world, context)[:, 0], np.max(expected, axis=1)
    )


def test_a_cascade_pays_by_the_position_of_the_click():
    environment = Cascade(3, 3)
    clicks = np.array([[[False, True, True], [True, False, False], [False, False, False]]])
    np.testing.assert_allclose(environment.reward_of(clicks), [[2 / 3, 1.0, 0.0]])
