"""What the suite asks of an estimator's learning."""

from typing import Any

import numpy as np

from submax.core.arrays import Floats
from submax.core.conditioning.estimator import Estimator
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.testing.rules.compare import require_close
from submax.testing.rules.estimator_belief import listed_probabilities
from submax.testing.rules.examples import (
    first_replica_changed,
    fixed_levels,
    low_and_high,
    padded,
    rows_of,
    some_contexts,
    some_feedback,
)
from submax.testing.rules.leaves import copied, unchanged
from submax.testing.rules.require import require

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
    _check_same_data(estimator, problem, fresh, feedback, fitted, seed)
    if replicas > 1:
        _check_replicas(estimator, problem, fresh, feedback, fitted, seed)
    if not problem.scale.moves:
        _check_prior(estimator, problem, fresh, feedback, seed)
    if not estimator.facts.forgets:
        _check_memory(estimator, fresh, feedback, fitted, seed)
        _check_values(estimator, fitted, feedback)
    _check_missing_propensities(estimator, problem, fresh, feedback, seed)


def _check_same_data(
    estimator: Estimator[Any],
    problem: Problem,
    fresh: Any,
    feedback: Feedback,
    fitted: Any,
    seed: int,
) -> None:
    nothing = rows_of(feedback, slice(0, 0))
    ways = {
        "rows of weight 0 must change nothing, whatever they hold": (fresh, padded(feedback)),
        "feedback without rows must change nothing": (fitted, nothing),
    }
    expected = _everything(estimator, problem, fitted, len(feedback.weight), seed)
    for rule, (start, given) in ways.items():
        params = estimator.fit(start, given, np.random.default_rng(seed))
        found = _everything(estimator, problem, params, len(feedback.weight), seed)
        require_close(found, expected, estimator, rule)


def _check_replicas(
    estimator: Estimator[Any],
    problem: Problem,
    fresh: Any,
    feedback: Feedback,
    fitted: Any,
    seed: int,
) -> None:
    others = _everything(estimator, problem, fitted, len(feedback.weight), seed)[1:]
    for changed in first_replica_changed(problem, feedback):
        params = estimator.fit(fresh, changed, np.random.default_rng(seed))
        found = _everything(estimator, problem, params, len(feedback.weight), seed)[1:]
        require_close(
            found,
            others,
            estimator,
            "the feedback of one replica must not reach another",
            rtol=1e-12,
            atol=1e-12,
        )


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
    shuffled = rows_of(feedback, np.random.default_rng(seed).permutation(rows))
    halves = (rows_of(feedback, slice(0, rows // 2)), rows_of(feedback, slice(rows // 2, None)))
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
