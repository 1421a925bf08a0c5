"""Conformance suite of estimators."""

from typing import Any

import numpy as np

from submax.core.conditioning.estimator import Estimator
from submax.core.contracts.problem import Problem
from submax.testing.rules.estimator_belief import check_belief, check_draws
from submax.testing.rules.estimator_fit import check_fit
from submax.testing.rules.examples import cases, some_feedback
from submax.testing.rules.require import on_problem, require_equal_copy, require_instance

FEEDBACK_ROWS = 30
"""Rows of feedback that the estimator learns from before it is checked again."""


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
