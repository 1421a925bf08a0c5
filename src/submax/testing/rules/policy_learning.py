"""What the suite asks of a policy's learning."""

from typing import Any

import numpy as np

from submax.core.arrays import Floats
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.testing.rules.compare import require_close
from submax.testing.rules.examples import (
    clear_feedback,
    first_replica_changed,
    padded,
    rows_of,
    some_contexts,
    some_feedback,
)
from submax.testing.rules.leaves import copied, leaves, unchanged
from submax.testing.rules.require import require

FEEDBACK_ROWS = 12
"""Rows of feedback that the policy learns from."""
ROWS = 3


def check_learning(
    policy: Policy[Any], problem: Problem, replicas: int, seed: int, state: Any
) -> None:
    """Check what feedback does to a ``state`` after some feedback and, above all, what not."""
    feedback = some_feedback(problem, replicas, FEEDBACK_ROWS, seed + 1)
    context = some_contexts(problem, replicas, ROWS, seed)
    learned = _check_purity(policy, state, feedback, seed)
    before, after = (_decisions(policy, one, context) for one in (state, learned))
    _check_absent_rows(policy, state, feedback, context, after, seed)
    _check_empty_feedback(policy, state, feedback, context, before, seed)
    if replicas > 1:
        _check_replicas(policy, state, feedback, context, after, seed)
    _check_silent_replica(policy, state, feedback, context, before, seed)
    _check_clear_feedback(policy, problem, replicas, seed)
    _check_refusals(policy, state, feedback)


def _check_purity(policy: Policy[Any], state: Any, feedback: Feedback, seed: int) -> Any:
    """Return the state after ``feedback``."""
    before, given = copied(state), copied(feedback)
    policy.record(state, feedback.action)
    require(unchanged(before, state), policy, "record must not change the state it was given")
    once = policy.update(state, feedback, np.random.default_rng(seed))
    require(unchanged(before, state), policy, "update must not change the state it was given")
    require(unchanged(given, feedback), policy, "update must not change the feedback")
    again = policy.update(state, feedback, np.random.default_rng(seed))
    require(unchanged(copied(once), again), policy, "the same seed must give the same state")
    return once


def _check_absent_rows(
    policy: Policy[Any],
    state: Any,
    feedback: Feedback,
    context: Floats,
    expected: Floats,
    seed: int,
) -> None:
    mixed = policy.update(state, padded(feedback), np.random.default_rng(seed))
    rule = "rows of weight 0 must change nothing, whatever they hold"
    require_close(_decisions(policy, mixed, context), expected, policy, rule)


def _check_empty_feedback(
    policy: Policy[Any],
    state: Any,
    feedback: Feedback,
    context: Floats,
    expected: Floats,
    seed: int,
) -> None:
    nothing = rows_of(feedback, slice(0, 0))
    after = policy.update(state, nothing, np.random.default_rng(seed))
    rule = "feedback without rows must change nothing"
    require_close(_decisions(policy, after, context), expected, policy, rule)


def _check_replicas(
    policy: Policy[Any],
    state: Any,
    feedback: Feedback,
    context: Floats,
    expected: Floats,
    seed: int,
) -> None:
    for changed in first_replica_changed(state.problem, feedback):
        after = policy.update(state, changed, np.random.default_rng(seed))
        require_close(
            _decisions(policy, after, context)[1:],
            expected[1:],
            policy,
            "the feedback of one replica must not reach another",
            rtol=1e-12,
            atol=1e-12,
        )


def _check_silent_replica(
    policy: Policy[Any],
    state: Any,
    feedback: Feedback,
    context: Floats,
    expected: Floats,
    seed: int,
) -> None:
    """Let the first replica alone hear nothing."""
    weight = feedback.weight.copy()
    weight[0] = 0.0
    after = policy.update(state, feedback._replace(weight=weight), np.random.default_rng(seed))
    rule = "a replica without feedback must stay as it is while others learn"
    require_close(expected[0], _decisions(policy, after, context)[0], policy, rule)


def _check_clear_feedback(policy: Policy[Any], problem: Problem, replicas: int, seed: int) -> None:
    context = some_contexts(problem, replicas, ROWS, seed)
    for feedback in clear_feedback(problem, replicas, 10 * problem.space.size):
        state = policy.init(problem, replicas, np.random.default_rng(seed))
        state = policy.record(state, feedback.action)
        state = policy.update(state, feedback, np.random.default_rng(seed))
        arrays = [*leaves(state), _decisions(policy, state, context)]
        clean = not any(np.isnan(array).any() for array in arrays if array.dtype.kind == "f")
        require(clean, policy, "clear feedback must not lead to NaN")


def _check_refusals(policy: Policy[Any], state: Any, feedback: Feedback) -> None:
    """Feedback that does not fit the problem must be refused, or change nothing."""
    size = state.problem.space.size
    wrong = {
        "a reward that is not finite": feedback._replace(reward=feedback.reward + np.nan),
        "a weight that is not finite": feedback._replace(weight=feedback.weight + np.nan),
        "a negative weight": feedback._replace(weight=-feedback.weight),
        "an action beyond the space": feedback._replace(action=feedback.action + size),
        "a reward for each action's slot": feedback._replace(reward=feedback.reward[..., None]),
    }
    if not state.problem.scale.moves:
        wrong["a reward outside the scale"] = feedback._replace(reward=feedback.reward + 0.123)
    for what, given in wrong.items():
        before = copied(state)
        try:
            after = policy.update(state, given, np.random.default_rng(0))
        except InputError:
            continue
        require(unchanged(before, after), policy, f"{what} must be refused by InputError")


def _decisions(policy: Policy[Any], state: Any, context: Floats) -> Floats:
    """The probability of every joint action, which was checked against log_prob: ``[R, n, M]``."""
    listed = policy.probabilities(state, context)
    found: Floats = np.broadcast_to(listed, (*context.shape[:2], listed.shape[2]))
    return found
