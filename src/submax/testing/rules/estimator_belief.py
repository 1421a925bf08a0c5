"""What the suite asks of an estimator's belief."""

from typing import Any

import numpy as np

from submax.core.arrays import Floats
from submax.core.conditioning.belief import Belief
from submax.core.conditioning.estimator import Estimator
from submax.core.contracts.problem import Problem
from submax.strategies.observation_weights import ObservationWeights
from submax.testing.rules.compare import require_close
from submax.testing.rules.examples import some_contexts
from submax.testing.rules.goodness_of_fit import SMALLEST_P_VALUE, goodness_of_fit
from submax.testing.rules.leaves import copied, unchanged
from submax.testing.rules.require import require, require_shape

ROWS = 3
DRAWS = 2000


def check_belief(
    estimator: Estimator[Any], problem: Problem, replicas: int, params: Any, seed: int
) -> None:
    """Check that probabilities and level priors are distributions, in every row."""
    before = copied(params)
    for rows in (ROWS, 0, 1):
        context = some_contexts(problem, replicas, rows, seed)
        belief = estimator.belief(params, context)
        rule = f"belief must return a Belief such as a ListedBelief, not {type(belief).__name__}"
        require(isinstance(belief, Belief), estimator, rule)
        listed = listed_probabilities(belief)
        shape = (replicas, rows, problem.scale.levels, problem.space.size)
        require_shape(listed, "R n L M", shape, estimator, "prob")
        lowest = float(np.min(listed, initial=0.0))
        rule = f"probabilities must be 0 or more, and one is {lowest:.6g}"
        require(lowest >= 0, estimator, rule)
        sums = listed.sum(axis=-1)
        worst = float(sums.flat[np.abs(sums - 1).argmax()]) if sums.size else 1.0
        rule = (
            "the probabilities of all joint actions must sum to one at every level, and they sum "
            f"to {worst:.6g}"
        )
        require_close(sums, 1, estimator, rule, rtol=1e-5, atol=1e-9)
        _check_forms(estimator, belief, listed)
        _check_choices(estimator, belief, listed)
        levels = belief.levels()
        require_shape(levels, "R L", (replicas, shape[2]), estimator, "levels")
        rising = bool(np.all(np.diff(levels, axis=1) >= 0))
        require(rising, estimator, "levels must rise, from the lowest to the highest")
        prior = belief.level_prior()
        require_shape(prior, "R n L", shape[:3], estimator, "level_prior")
        require(np.all(prior >= 0), estimator, "level_prior must not be negative")
        require_close(
            prior.sum(axis=-1), 1, estimator, "level_prior must sum to one", rtol=1e-5, atol=1e-8
        )
        values = belief.values()
        if values is not None:
            expected = (replicas, problem.scale.levels)
            require_shape(values, "R L", expected, estimator, "values, unless they are None,")
        _check_weights(estimator, belief, shape)
    require(unchanged(before, params), estimator, "a belief must not change the parameters")


def check_draws(
    estimator: Estimator[Any], problem: Problem, replicas: int, params: Any, seed: int
) -> None:
    """Compare samples with the probabilities, level by level and row by row."""
    belief = estimator.belief(params, some_contexts(problem, replicas, ROWS, seed))
    listed = listed_probabilities(belief)
    for level in range(problem.scale.levels):
        rngs = (np.random.default_rng(seed) for _ in range(2))
        action, again = (belief.sample(level, DRAWS, rng) for rng in rngs)
        expected = (replicas, ROWS, DRAWS, problem.space.slots)
        require_shape(action, "R n draws S", expected, estimator, "samples")
        require(problem.space.contains(action), estimator, "samples must belong to the space")
        require(np.array_equal(action, again), estimator, "the same seed must sample the same")
        for place in np.ndindex(replicas, ROWS):
            index = problem.space.index(action[place])
            p_value = goodness_of_fit(index, listed[(*place, level)])
            rule = f"samples must agree with prob, and their p-value is {p_value:.1e}"
            require(p_value > SMALLEST_P_VALUE, estimator, rule)
    _check_rows(estimator, belief, listed)


def listed_probabilities(belief: Belief) -> Floats:
    """Return the probability of every joint action at every level: ``[R, n, L, M]``."""
    return belief.prob(belief.space.listing()[None, None])


def _check_forms(estimator: Estimator[Any], belief: Belief, listed: Floats) -> None:
    """Compare actions that rows share with actions of each row, and with the list of all."""
    require_close(belief.prob_of_all(), listed, estimator, "prob_of_all must agree with prob")
    own = np.tile(belief.space.listing()[None, None], (*listed.shape[:2], 1, 1))
    for form in (own, own[:, :1], own[:1]):
        if 0 not in form.shape:
            require_close(
                belief.prob(form),
                listed,
                estimator,
                "shared actions and own actions must give the same",
            )


def _check_rows(estimator: Estimator[Any], belief: Belief, listed: Floats) -> None:
    """Compare the belief in some of the rows with the rows of the belief."""
    replicas, rows = listed.shape[:2]
    row = np.tile([rows - 1, 0], (replicas, 1))
    expected = np.take_along_axis(listed, row[..., None, None], axis=1)
    actions = np.tile(belief.space.listing()[None, None], (replicas, 2, 1, 1))
    require_close(
        belief.rows(row).prob(actions),
        expected,
        estimator,
        "rows must select contexts and change nothing else",
    )


def _check_choices(estimator: Estimator[Any], belief: Belief, listed: Floats) -> None:
    """Check the probabilities of each slot's choices; with one slot they are the actions'."""
    found = belief.prob_of_choices()
    shapes = [(*listed.shape[:-1], size) for size in belief.space.choices]
    require([slot.shape for slot in found] == shapes, estimator, f"choices must have {shapes}")
    for slot in found:
        sums = np.allclose(slot.sum(axis=-1), 1, atol=1e-9) and np.all(slot >= 0)
        require(sums, estimator, "the probabilities of a slot's choices must sum to one")
    if len(found) == 1:
        require_close(
            found[0],
            listed,
            estimator,
            "the choices of one slot must be its actions",
            rtol=1e-6,
            atol=1e-9,
        )


def _check_weights(estimator: Estimator[Any], belief: Belief, shape: tuple[int, ...]) -> None:
    """Check how many observations the belief is worth, if it says so."""
    if not isinstance(belief, ObservationWeights):
        return
    by_slot = belief.observation_weights_by_slot()
    require(len(by_slot) == belief.space.slots, estimator, "every slot must have its weights")
    for weights in (belief.observation_weights(), *by_slot):
        fits = weights.shape == shape[:3] and bool(np.all(weights >= 0))
        require(fits, estimator, f"observation weights must be >= 0 and have shape {shape[:3]}")
