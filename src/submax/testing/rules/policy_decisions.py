"""What the suite asks of a policy's decisions."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.listing_policy import ListingPolicy
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.testing.rules.compare import require_close
from submax.testing.rules.examples import REPLICAS, repeated, some_contexts, some_feedback
from submax.testing.rules.goodness_of_fit import SMALLEST_P_VALUE, p_value_in_steps
from submax.testing.rules.leaves import copied, unchanged
from submax.testing.rules.require import require, require_shape

FEEDBACK_ROWS = 12
"""Rows of feedback in the state that is checked beside the fresh one."""
ROWS = (5, 0, 1, 70)
"""Decisions of a call; 5 come first, because a message about them is easier to understand than one
about none."""
CHOICES = 1500
"""Decisions that are compared with their probabilities, if the first ones do not agree well."""
MANY = 25
"""Replicas that take them. Networks after feedback, whose training is compiled once for each number
of replicas, have as many as elsewhere in the suite."""


def check_decisions(policy: Policy[Any], problem: Problem, replicas: int, seed: int) -> Any:
    """Check shapes, probabilities and repeatability of decisions, fresh and after feedback.

    Return the state after feedback.
    """
    feedback = some_feedback(problem, replicas, FEEDBACK_ROWS, seed)
    fresh, taught = _states(policy, problem, replicas, feedback, seed)
    for state in (fresh, taught):
        before = copied(state)
        for rows in ROWS:
            context = some_contexts(problem, replicas, rows, seed)
            _check_state(policy, state, context, seed)
            rule = "act and log_prob must not change the state"
            require(unchanged(before, state), policy, rule)
    return taught


def _check_state(policy: Policy[Any], state: Any, context: Floats, seed: int) -> None:
    # Of a listing policy, act and log_prob follow from this table, so that it is checked first.
    table = _table(policy, state, context) if isinstance(policy, ListingPolicy) else None
    decision = policy.act(state, context, np.random.default_rng(seed))
    again = policy.act(state, context, np.random.default_rng(seed))
    _check_action(policy, state.problem, context.shape[:2], decision)
    _check_log_prob(policy, state, context, decision)
    same = np.array_equal(decision.action, again.action)
    require(same, policy, "the same seed must give the same decisions")
    _check_sum(policy, state, context, _table(policy, state, context) if table is None else table)
    _check_expected(policy, state.problem, state, context)


def _check_expected(policy: Policy[Any], problem: Problem, state: Any, context: Floats) -> None:
    """Check what every action is believed to earn, if the policy says so."""
    found = policy.expected_rewards(state, context)
    if found is None:
        return
    replicas, rows = context.shape[:2]
    allowed = [(replicas, count, problem.space.size) for count in (rows, 1)]
    rule = f"expected_rewards must have shape {allowed[0]} or {allowed[1]}, not {found.shape}"
    require(found.shape in allowed, policy, rule)
    require(not np.isinf(found).any(), policy, "expected_rewards must be finite or NaN")


def check_frequencies(policy: Policy[Any], problem: Problem, seed: int) -> None:
    """Compare what is chosen with ``log_prob``, over replicas that all have the same state.

    Rows of one call may depend on each other, so that only the last of them is counted.
    """
    for state, replicas in _alike(policy, problem, seed):
        for rows in (1, ROWS[-1]):
            context = some_contexts(problem, 1, rows, seed).repeat(replicas, axis=0)
            p_value = _p_value(policy, state, context, np.random.default_rng(seed))
            rule = f"choices must agree with log_prob, and their p-value is {p_value:.1e}"
            require(p_value > SMALLEST_P_VALUE, policy, rule)


def _alike(policy: Policy[Any], problem: Problem, seed: int) -> Iterator[tuple[Any, int]]:
    """Yield a fresh state, and one after the same feedback in all replicas; with their replicas."""
    yield policy.init(problem, MANY, np.random.default_rng(seed)), MANY
    replicas = REPLICAS[-1] if policy.facts.trains_models else MANY
    feedback = repeated(some_feedback(problem, 1, FEEDBACK_ROWS, seed), replicas)
    _, taught = _states(policy, problem, replicas, feedback, seed)
    yield taught, replicas


def _p_value(policy: Policy[Any], state: Any, context: Floats, rng: np.random.Generator) -> float:
    """Compare choices in the last row with their probabilities."""
    # That the probabilities are those of log_prob was checked with the decisions.
    expected = policy.probabilities(state, context)[:, -1].mean(axis=0)

    def choose() -> Integers:
        index: Integers = state.problem.space.index(policy.act(state, context, rng).action[:, -1])
        return index

    return p_value_in_steps(choose, expected, CHOICES)


def all_log_probs(policy: Policy[Any], state: Any, context: Floats) -> Floats:
    """Log-probability of every joint action in every row: ``[M, R, n]``."""
    shape = context.shape[:2]
    rows = [
        policy.log_prob(state, context, np.tile(action, (*shape, 1)))
        for action in state.problem.space.listing()
    ]
    return np.stack(rows)


def _states(
    policy: Policy[Any], problem: Problem, replicas: int, feedback: Feedback, seed: int
) -> Iterator[Any]:
    rng = np.random.default_rng(seed)
    fresh = policy.init(problem, replicas, rng)
    yield fresh
    yield policy.update(policy.record(fresh, feedback.action), feedback, rng)


def _table(policy: Policy[Any], state: Any, context: Floats) -> Floats:
    """Check the shape of ``probabilities``, and return those of every row: ``[R, n, M]``."""
    listed = policy.probabilities(state, context)
    replicas, rows = context.shape[:2]
    shape = (replicas, rows, state.problem.space.size)
    if getattr(listed, "shape", None) != (replicas, 1, shape[2]):
        what = "probabilities(state, context)"
        if rows > 1:
            what += ", unless it is [R, 1, M],"
        require_shape(listed, "R n M", shape, policy, what)
    found: Floats = np.broadcast_to(listed, shape)
    return found


def _check_action(
    policy: Policy[Any], problem: Problem, shape: tuple[int, int], decision: ChosenActions
) -> None:
    action: Integers = decision.action
    require_shape(action, "R n S", (*shape, problem.space.slots), policy, "actions")
    require(action.dtype == np.int64, policy, "actions must be of type int64")
    require(problem.space.contains(action), policy, "actions must belong to the space")


def _check_log_prob(
    policy: Policy[Any], state: Any, context: Floats, decision: ChosenActions
) -> None:
    expected = policy.log_prob(state, context, decision.action)
    require_shape(expected, "R n", context.shape[:2], policy, "log_prob")
    require(expected.dtype == np.float64, policy, "log_prob must be of type float64")
    require(np.all(np.isfinite(expected)), policy, "what was chosen must have a probability")
    if decision.log_prob is not None:
        require_shape(decision.log_prob, "R n", expected.shape, policy, "log_prob of a decision")
        rule = "the log_prob of a decision must equal that of the policy"
        require_close(decision.log_prob, expected, policy, rule)


def _check_sum(policy: Policy[Any], state: Any, context: Floats, table: Floats) -> None:
    """Check that probabilities sum to one, and that ``log_prob`` agrees with the ``table`` of them.

    A policy that computes ``log_prob`` itself is asked for every action in every row if there are
    few rows. Among many rows, and of a policy whose ``log_prob`` follows from ``probabilities``,
    every row is asked for one action, in turn.
    """
    few = 0 < context.shape[1] < ROWS[-1]
    if few and type(policy).log_prob is not ListingPolicy.log_prob:
        _check_every_action(policy, state, context, table)
    else:
        _check_actions_in_turn(policy, state, context, table)
    rule = "the probabilities of all joint actions must sum to one in every row"
    require_close(table.sum(axis=-1), 1, policy, rule, rtol=0, atol=1e-9)


def _check_every_action(policy: Policy[Any], state: Any, context: Floats, table: Floats) -> None:
    listed = all_log_probs(policy, state, context)
    require(not np.any(np.isnan(listed)), policy, "no log_prob may be NaN")
    rule = "the probabilities of all joint actions must sum to one in every row"
    require_close(np.exp(listed).sum(axis=0), 1, policy, rule, rtol=0, atol=1e-9)
    rule = "probabilities must be those of log_prob"
    require_close(np.moveaxis(table, -1, 0), np.exp(listed), policy, rule)


def _check_actions_in_turn(policy: Policy[Any], state: Any, context: Floats, table: Floats) -> None:
    index = np.add.outer(*(np.arange(count) for count in context.shape[:2])) % table.shape[2]
    found = policy.log_prob(state, context, state.problem.space.action(index))
    require(not np.any(np.isnan(found)), policy, "no log_prob may be NaN")
    expected = np.take_along_axis(table, index[..., None], axis=-1)[..., 0]
    require_close(np.exp(found), expected, policy, "probabilities must be those of log_prob")
