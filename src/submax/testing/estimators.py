"""Conformance suite of estimators."""

from typing import Any

import numpy as np

from submax.core.arrays import Floats
from submax.core.conditioning import Belief, Estimator
from submax.core.problem import Feedback, Problem
from submax.testing.assertions import SMALLEST_P_VALUE, Rules, contents, goodness_of_fit
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
FEEDBACK_ROWS = 30
"""Rows of feedback that the estimator learns from."""


def check_estimator(estimator: Estimator[Any], seed: int = 0) -> None:
    """Raise an AssertionError if ``estimator`` breaks its contract.

    The problems are those of `check_policy`, each before and after feedback.
    """
    rules = Rules(estimator, Estimator)
    rules.equal_copy()
    for problem, replicas in cases(estimator):
        with rules.on(problem):
            feedback = some_feedback(problem, replicas, FEEDBACK_ROWS, seed)
            fresh = estimator.init(problem, replicas, np.random.default_rng(seed))
            fitted = estimator.fit(fresh, feedback, np.random.default_rng(seed))
            for params in (fresh, fitted):
                _check_belief(rules, problem, replicas, params, seed)
                _check_draws(rules, problem, replicas, params, seed)
            _check_fit(rules, problem, replicas, seed)


def _check_belief(rules: Rules, problem: Problem, replicas: int, params: Any, seed: int) -> None:
    before = contents(params)
    for rows in (ROWS, 0, 1):
        belief = rules.subject.belief(params, some_contexts(problem, replicas, rows, seed))
        rule = f"belief must return a Belief such as a TabularBelief, not {type(belief).__name__}"
        rules.require(isinstance(belief, Belief), rule)
        listed = _listed(belief)
        shape = (replicas, rows, problem.scale.levels, problem.space.size)
        rules.shape(listed, "R, n, L, M", shape, "prob")
        rules.at_most(0, listed, "probabilities must be 0 or more")
        rule = "the probabilities of all joint actions must sum to one at every level"
        rules.close(listed.sum(axis=-1), 1, rule, rtol=1e-5, atol=1e-9)
        _check_forms(rules, belief, listed)
        levels, prior = belief.levels(), belief.level_prior()
        rules.shape(levels, "R, L", (replicas, shape[2]), "levels")
        rising = np.all(np.diff(levels, axis=1) >= 0)
        rules.require(rising, "levels must rise, from the lowest to the highest")
        rules.shape(prior, "R, n, L", shape[:3], "level_prior")
        rules.require(np.all(prior >= 0), "level_prior must not be negative")
        rule = "level_prior must sum to one"
        rules.close(prior.sum(axis=-1), 1, rule, rtol=1e-5, atol=1e-8)
        values = belief.values()
        if values is not None:
            rules.shape(values, "R, L", (replicas, shape[2]), "values, unless they are None,")
        if belief.observation_weights() is not None:
            by_slot = belief.observation_weights_by_slot()
            rules.require(len(by_slot) == belief.space.slots, "every slot must have its weights")
            for weights in (belief.observation_weights(), *by_slot):
                fits = weights is not None and weights.shape == shape[:3] and np.all(weights >= 0)
                rules.require(fits, f"observation weights must be >= 0 and have shape {shape[:3]}")
    rules.require(before == contents(params), "a belief must not change the parameters")


def _check_draws(rules: Rules, problem: Problem, replicas: int, params: Any, seed: int) -> None:
    belief = rules.subject.belief(params, some_contexts(problem, replicas, ROWS, seed))
    listed = _listed(belief)
    for level in range(problem.scale.levels):
        rngs = (np.random.default_rng(seed) for _ in range(2))
        action, again = (belief.sample(level, DRAWS, rng) for rng in rngs)
        sizes = (replicas, ROWS, DRAWS, problem.space.slots)
        rules.shape(action, "R, n, draws, S", sizes, "samples")
        rules.require(problem.space.contains(action), "samples must belong to the space")
        rules.require(np.array_equal(action, again), "the same seed must sample the same")
        for place in np.ndindex(replicas, ROWS):
            index = problem.space.index(action[place])
            p_value = goodness_of_fit(index, listed[(*place, level)])
            rule = f"samples must agree with prob, and their p-value is {p_value:.1e}"
            rules.require(p_value > SMALLEST_P_VALUE, rule)
    row = np.tile([ROWS - 1, 0], (replicas, 1))
    expected = np.take_along_axis(listed, row[..., None, None], axis=1)
    actions = np.tile(belief.space.listing()[None, None], (replicas, 2, 1, 1))
    rule = "rows must select contexts and change nothing else"
    rules.close(belief.rows(row).prob(actions), expected, rule)


def _listed(belief: Belief) -> Floats:
    """Return the probability of every joint action at every level: ``[R, n, L, M]``."""
    return belief.prob(belief.space.listing()[None, None])


def _check_forms(rules: Rules, belief: Belief, listed: Floats) -> None:
    """Compare what the forms of a question answer: all actions, those of rows, and choices."""
    rules.close(belief.prob_of_all(), listed, "prob_of_all must agree with prob")
    own = np.tile(belief.space.listing()[None, None], (*listed.shape[:2], 1, 1))
    for form in (own, own[:, :1], own[:1]):
        if 0 not in form.shape:
            rule = "shared actions and own actions must give the same"
            rules.close(belief.prob(form), listed, rule)
    found = belief.prob_of_choices()
    for slot, size in zip(found, belief.space.choices, strict=True):
        rules.shape(slot, "R, n, L, choices", (*listed.shape[:-1], size), "prob_of_choices")
        sums = np.allclose(slot.sum(axis=-1), 1, atol=1e-9) and np.all(slot >= 0)
        rules.require(sums, "the probabilities of a slot's choices must sum to one")
    if len(found) == 1:
        rule = "the choices of one slot must be its actions"
        rules.close(found[0], listed, rule, rtol=1e-6, atol=1e-9)


def _check_fit(rules: Rules, problem: Problem, replicas: int, seed: int) -> None:
    """Check what feedback does to the belief and, above all, what it does not."""
    estimator = rules.subject
    fresh = estimator.init(problem, replicas, np.random.default_rng(seed))
    feedback = some_feedback(problem, replicas, FEEDBACK_ROWS, seed + 1)
    before, given = contents(fresh), contents(feedback)

    def after(params: Any, rows: Feedback) -> Any:
        return estimator.fit(params, rows, np.random.default_rng(seed))

    def prior(params: Any) -> Floats:
        return estimator.belief(params, feedback.context[:, :1]).level_prior()

    fitted = after(fresh, feedback)
    rules.require(before == contents(fresh), "fit must not change the parameters it was given")
    rules.require(given == contents(feedback), "fit must not change the feedback")
    for level, reward in enumerate(() if problem.scale.moves else fixed_levels(problem.scale)):
        observed = prior(after(fresh, feedback._replace(reward=0 * feedback.reward + reward)))
        others = np.delete(observed, level, axis=-1)
        rule = "level_prior must be exactly 0 for a level never observed, and only for those"
        rules.require(np.all(others == 0) and np.all(observed[..., level] > 0), rule)
    if not estimator.traits.forgets:
        # The same rows in another order, and in two halves.
        shuffled = feedback.rows(np.random.default_rng(seed).permutation(FEEDBACK_ROWS))
        half = after(fresh, feedback.rows(slice(0, FEEDBACK_ROWS // 2)))
        both = after(half, feedback.rows(slice(FEEDBACK_ROWS // 2, None)))
        rule = "level_prior must count all feedback so far, in whatever order and parts it came"
        rules.close(prior(fitted), [prior(after(fresh, shuffled)), prior(both)], rule)
        _check_values(rules, fitted, feedback)

    def everything(params: Any) -> Floats:
        """Return all that can be asked of a belief, one row for each replica."""
        belief = estimator.belief(params, some_contexts(problem, replicas, ROWS, seed))
        parts = (_listed(belief), belief.level_prior(), belief.levels(), belief.values())
        rows = [part.reshape(replicas, -1) for part in parts if part is not None]
        return np.concatenate(rows, axis=1)

    check_separation(rules, problem, feedback, fitted, estimator.fit, everything, seed)
    rewarded = np.full_like(feedback.reward, low_and_high(problem.scale)[1])
    silent = after(fresh, feedback._replace(reward=rewarded, log_prob=None))
    values = estimator.belief(silent, feedback.context[:, :1]).values()
    rule = "values must be NaN where the probability of a rewarded decision was not logged"
    rules.require(values is None or np.all(np.isnan(values)), rule)


def _check_values(rules: Rules, fitted: Any, feedback: Feedback) -> None:
    """Recompute V_l = (1/N) Σ_i r_i π(a_i | c_i, l) / q_i from the observations."""
    assert feedback.log_prob is not None
    belief = rules.subject.belief(fitted, feedback.context)
    values = belief.values()
    if values is not None:
        conditioned = belief.prob(feedback.action[:, :, None, :])[..., 0]
        ratio = (feedback.reward * np.exp(-feedback.log_prob))[..., None] * conditioned
        rules.close(values, ratio.mean(axis=1), "values must be the importance-sampled sums")
