"""What the suite asks of an estimator's belief."""

from typing import Any

import numpy as np

from submax.core.arrays import Floats
from submax.core.conditioning.estimator import Estimator
from submax.core.contracts.problem import Problem
from submax.testing.rules.examples import some_contexts
from submax.testing.rules.goodness_of_fit import SMALLEST_P_VALUE, goodness_of_fit
from submax.testing.rules.leaves import copied, unchanged
from submax.testing.rules.require import require

ROWS = 3
DRAWS = 2000


def check_belief(
    estimator: Estimator[Any], problem: Problem, replicas: int, params: Any, seed: int
) -> None:
    """Check that probabilities and prior are some, at every level and in every row."""
    before = copied(params)
    for rows in (0, 1, ROWS):
        context = some_contexts(problem, replicas, rows, seed)
        listed = listed_probabilities(estimator, problem, params, context)
        shape = (replicas, rows, problem.scale.levels, problem.space.size)
        require(listed.shape == shape, estimator, f"log_prob must have shape {shape}")
        rule = "the probabilities of all joint actions must sum to one at every level"
        require(np.allclose(listed.sum(axis=-1), 1, atol=1e-9), estimator, rule)
        _check_forms(estimator, problem, params, context, listed)
        _check_choices(estimator, problem, params, context, listed)
        prior = estimator.level_prior(params, context)
        require(prior.shape == shape[:3], estimator, f"level_prior must have shape {shape[:3]}")
        require(np.all(prior >= 0), estimator, "level_prior must not be negative")
        require(np.allclose(prior.sum(axis=-1), 1), estimator, "level_prior must sum to one")
    values = estimator.values(params)
    require(values.shape == (replicas, problem.scale.levels), estimator, "values must be [R, L]")
    require(unchanged(before, params), estimator, "to ask must not change the parameters")


def check_draws(
    estimator: Estimator[Any], problem: Problem, replicas: int, params: Any, seed: int
) -> None:
    """Compare samples with the probabilities, level by level and row by row."""
    context = some_contexts(problem, replicas, ROWS, seed)
    listed = listed_probabilities(estimator, problem, params, context)
    for level in range(problem.scale.levels):
        rngs = (np.random.default_rng(seed) for _ in range(2))
        action, again = (estimator.sample(params, context, level, DRAWS, rng) for rng in rngs)
        expected = (replicas, ROWS, DRAWS, problem.space.slots)
        require(action.shape == expected, estimator, f"samples must have shape {expected}")
        require(problem.space.contains(action), estimator, "samples must belong to the space")
        require(np.array_equal(action, again), estimator, "the same seed must sample the same")
        for place in np.ndindex(replicas, ROWS):
            index = problem.space.index(action[place])
            p_value = goodness_of_fit(index, listed[(*place, level)])
            rule = f"samples must agree with log_prob, and their p-value is {p_value:.1e}"
            require(p_value > SMALLEST_P_VALUE, estimator, rule)


def listed_probabilities(
    estimator: Estimator[Any], problem: Problem, params: Any, context: Floats
) -> Floats:
    """Probability of every joint action at every level: ``[R, n, L, M]``."""
    return np.exp(estimator.log_prob(params, context, problem.space.listing()[None, None]))


def _check_forms(
    estimator: Estimator[Any], problem: Problem, params: Any, context: Floats, listed: Floats
) -> None:
    """Compare actions that are shared with actions of their own, and log_prob with prob."""
    actions = problem.space.listing()[None, None]
    own = np.tile(actions, (*context.shape[:2], 1, 1))
    same = np.allclose(estimator.prob(params, context, actions), listed, rtol=1e-9, atol=1e-12)
    require(same, estimator, "prob must be the exponential of log_prob")
    for form in (own, own[:, :1], own[:1]):
        if 0 not in form.shape:
            found = np.exp(estimator.log_prob(params, context, form))
            same = np.allclose(found, listed, rtol=1e-9, atol=1e-12)
            require(same, estimator, "shared actions and own actions must give the same")


def _check_choices(
    estimator: Estimator[Any], problem: Problem, params: Any, context: Floats, listed: Floats
) -> None:
    """Check what is said of each slot's choices; with one slot they are the actions."""
    found = estimator.prob_of_choices(params, context, problem.space)
    shapes = [(*listed.shape[:-1], size) for size in problem.space.choices]
    require([slot.shape for slot in found] == shapes, estimator, f"choices must have {shapes}")
    for slot in found:
        sums = np.allclose(slot.sum(axis=-1), 1, atol=1e-9) and np.all(slot >= 0)
        require(sums, estimator, "the probabilities of a slot's choices must sum to one")
    if len(found) == 1:
        same = np.allclose(found[0], listed, rtol=1e-6, atol=1e-9)
        require(same, estimator, "the choices of one slot must be its actions")
