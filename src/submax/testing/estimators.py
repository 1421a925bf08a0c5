"""Conformance suite of estimators."""

from typing import Any

import numpy as np

from submax.core.arrays import Floats
from submax.core.conditioning import Belief, Estimator
from submax.core.problem import Feedback, Problem
from submax.testing.assertions import (
    SMALLEST_P_VALUE,
    copied,
    goodness_of_fit,
    on_problem,
    require,
    require_close,
    require_equal_copy,
    require_instance,
    require_shape,
    unchanged,
)
from submax.testing.problems import (
    cases,
    check_separation,
    fixed_levels,
    low_and_high,
    some_contexts,
    some_feedback,
)

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
        rule = f"belief must return a Belief such as a TabularBelief, not {type(belief).__name__}"
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
    if belief.observation_weights() is None:
        return
    by_slot = belief.observation_weights_by_slot()
    require(len(by_slot) == belief.space.slots, estimator, "every slot must have its weights")
    for weights in (belief.observation_weights(), *by_slot):
        fits = weights is not None and weights.shape == shape[:3] and np.all(weights >= 0)
        require(fits, estimator, f"observation weights must be >= 0 and have shape {shape[:3]}")


FEEDBACK_ROWS = 30
"""Rows of feedback that the estimator learns from."""


def check_fit(estimator: Estimator[Any], problem: Problem, replicas: int, seed: int) -> None:
    """Check what feedback does to the belief and, above all, what it does not."""
    fresh = estimator.init(problem, replicas, np.random.default_rng(seed))
    feedback = some_feedback(problem, replicas, FEEDBACK_ROWS, seed + 1)
    before, given = copied(fresh), copied(feedback)
    fitted = estimator.fit(fresh, feedback, np.random.default_rng(seed))
    require(unchanged(before, fresh), estimator, "fit must not change the parameters it was given")
    require(unchanged(given, feedback), estimator, "fit must not change the feedback")
    if not problem.scale.moves:
        _check_prior(estimator, problem, fresh, feedback, seed)
    if not estimator.traits.forgets:
        _check_memory(estimator, fresh, feedback, fitted, seed)
        _check_values(estimator, fitted, feedback)

    def learned(given: Feedback) -> Floats:
        params = estimator.fit(fitted, given, np.random.default_rng(seed))
        return _everything(estimator, problem, params, replicas, seed)

    known = _everything(estimator, problem, fitted, replicas, seed)
    check_separation(estimator, problem, feedback, learned, known)
    _check_missing_propensities(estimator, problem, fresh, feedback, seed)


def _check_prior(
    estimator: Estimator[Any], problem: Problem, fresh: Any, feedback: Feedback, seed: int
) -> None:
    """Fit to rewards of one level only, and check that the prior of the others is exactly 0."""
    for level, reward in enumerate(fixed_levels(problem.scale)):
        observed = feedback._replace(reward=np.full_like(feedback.reward, reward))
        params = estimator.fit(fresh, observed, np.random.default_rng(seed))
        prior = estimator.belief(params, feedback.context[:, :1]).level_prior()
        others = np.delete(prior, level, axis=-1)
        rule = "level_prior must be exactly 0 for a level never observed, and only for those"
        require(np.all(others == 0) and np.all(prior[..., level] > 0), estimator, rule)


def _check_memory(
    estimator: Estimator[Any], fresh: Any, feedback: Feedback, fitted: Any, seed: int
) -> None:
    """Give the rows that were ``fitted`` at once in another order, and in two halves."""
    rows = feedback.reward.shape[1]
    shuffled = feedback.rows(np.random.default_rng(seed).permutation(rows))
    halves = (feedback.rows(slice(0, rows // 2)), feedback.rows(slice(rows // 2, None)))
    priors = [estimator.belief(fitted, feedback.context[:, :1]).level_prior()]
    for pieces in ((shuffled,), halves):
        params = fresh
        for piece in pieces:
            params = estimator.fit(params, piece, np.random.default_rng(seed))
        priors.append(estimator.belief(params, feedback.context[:, :1]).level_prior())
    rule = "level_prior must count all feedback so far, in whatever order and parts it came"
    require_close(priors[0], priors[1:], estimator, rule)


def _check_values(estimator: Estimator[Any], fitted: Any, feedback: Feedback) -> None:
    """Recompute V_l = (1/N) Σ_i r_i π(a_i | c_i, l) / q_i from the observations."""
    assert feedback.log_prob is not None
    belief = estimator.belief(fitted, feedback.context)
    values = belief.values()
    if values is None:
        return
    conditioned = belief.prob(feedback.action[:, :, None, :])[..., 0]
    ratio = (feedback.reward * np.exp(-feedback.log_prob))[..., None] * conditioned
    require_close(
        values, ratio.mean(axis=1), estimator, "values must be the importance-sampled sums"
    )


def _check_missing_propensities(
    estimator: Estimator[Any], problem: Problem, fresh: Any, feedback: Feedback, seed: int
) -> None:
    rewarded = np.full_like(feedback.reward, low_and_high(problem.scale)[1])
    silent = feedback._replace(reward=rewarded, log_prob=None)
    params = estimator.fit(fresh, silent, np.random.default_rng(seed))
    values = estimator.belief(params, feedback.context[:, :1]).values()
    if values is None:
        return
    rule = "values must be NaN where the probability of a rewarded decision was not logged"
    require(np.all(np.isnan(values)), estimator, rule)


def _everything(
    estimator: Estimator[Any], problem: Problem, params: Any, replicas: int, seed: int
) -> Floats:
    """Return all that can be asked of a belief, one row for each replica."""
    context = some_contexts(problem, replicas, 3, seed)
    belief = estimator.belief(params, context)
    values = belief.values()
    parts = [listed_probabilities(belief), belief.level_prior(), belief.levels()]
    if values is not None:
        parts.append(values)
    return np.concatenate([part.reshape(replicas, -1) for part in parts], axis=1)


def check_estimator(estimator: Estimator[Any], seed: int = 0) -> None:
    """Raise an AssertionError if ``estimator`` breaks its contract.

    The problems are arms, slots, arms with a context and all reward scales, each before and after
    feedback, with one replica and with several.
    """
    require_instance(estimator, Estimator)
    require_equal_copy(estimator)
    for problem, replicas in cases(estimator):
        with on_problem(estimator, problem):
            _check_problem(estimator, problem, replicas, seed)


def _check_problem(estimator: Estimator[Any], problem: Problem, replicas: int, seed: int) -> None:
    feedback = some_feedback(problem, replicas, FEEDBACK_ROWS, seed)
    fresh = estimator.init(problem, replicas, np.random.default_rng(seed))
    fitted = estimator.fit(fresh, feedback, np.random.default_rng(seed))
    for params in (fresh, fitted):
        check_belief(estimator, problem, replicas, params, seed)
        check_draws(estimator, problem, replicas, params, seed)
    check_fit(estimator, problem, replicas, seed)
