"""What the suite asks of a policy on a space with real-valued parts."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from submax.core.arrays import Actions, Floats, Integers
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.rewards.continuous import Continuous
from submax.core.spaces.box import Box
from submax.core.spaces.mixed import Mixed
from submax.core.spaces.real_space import RealSpace
from submax.testing.rules.compare import require_close
from submax.testing.rules.examples import padded, repeated, rows_of, some_contexts, some_feedback
from submax.testing.rules.goodness_of_fit import SMALLEST_P_VALUE, p_value_in_steps
from submax.testing.rules.leaves import copied, unchanged
from submax.testing.rules.require import require, require_shape

REAL = (
    Problem(Box((-2.0,), (6.0,)), context_width=2, scale=Continuous(low=0.0, high=50.0)),
    Problem(Mixed((2,), (0.0,), (3.0,))),
)
"""Problems that a class may refuse, when it is made for listed actions."""
FEEDBACK_ROWS = 20
"""Rows of feedback that the policy learns from."""
ROWS = (0, 1, 5)
REPLICAS = 4
"""As many as elsewhere in the suite: networks are compiled once for each number of replicas."""
CHOICES = 1000
"""Decisions that are compared with the density, if the first ones do not agree well."""
BINS, MIDPOINTS = 6, 10
LARGEST_ERROR = {True: 0.25, False: 1e-6}
"""How far the integral of a density may be from 1: of networks, whose constant is estimated."""


def check_densities(policy: Policy[Any], problem: Problem, seed: int) -> None:
    """Check decisions, densities and learning on real-valued actions."""
    # Networks are compiled for each number of replicas: a single one is tested on listed actions.
    if not policy.facts.trains_models:
        for state in _states(policy, problem, 1, seed):
            _check_decisions(policy, state, some_contexts(problem, 1, 1, seed), seed)
    for state in _states(policy, problem, REPLICAS, seed):
        for rows in ROWS:
            _check_decisions(policy, state, some_contexts(problem, REPLICAS, rows, seed), seed)
        _check_absence(policy, state, seed)
    _check_frequencies(policy, problem, seed)


def _states(policy: Policy[Any], problem: Problem, replicas: int, seed: int) -> Iterator[Any]:
    feedback = repeated(some_feedback(problem, 1, FEEDBACK_ROWS, seed), replicas)
    rng = np.random.default_rng(seed)
    fresh = policy.init(problem, replicas, rng)
    yield fresh
    yield policy.update(policy.record(fresh, feedback.action), feedback, rng)


def _check_decisions(policy: Policy[Any], state: Any, context: Floats, seed: int) -> None:
    space = state.problem.space
    before = copied(state)
    decision = policy.act(state, context, np.random.default_rng(seed))
    again = policy.act(state, context, np.random.default_rng(seed))
    require(np.array_equal(decision.action, again.action), policy, "the same seed, the same action")
    expected = (*context.shape[:2], space.slots)
    require_shape(decision.action, "R n S", expected, policy, "actions")
    require(decision.action.dtype == np.float64, policy, "such actions must be of type float64")
    require(space.contains(decision.action), policy, "actions must belong to the space")
    found = policy.log_prob(state, context, decision.action)
    require_shape(found, "R n", context.shape[:2], policy, "log_prob")
    require(np.all(np.isfinite(found)), policy, "what was chosen must have a density")
    if decision.log_prob is not None:
        require_close(
            decision.log_prob,
            found,
            policy,
            "the log_prob of a decision must equal that of the policy",
            rtol=1e-9,
            atol=1e-9,
        )
    require(unchanged(before, state), policy, "act and log_prob must not change the state")


def _check_absence(policy: Policy[Any], state: Any, seed: int) -> None:
    """Rows of weight 0 and feedback without rows change nothing, and replicas stay apart."""
    feedback = some_feedback(state.problem, REPLICAS, FEEDBACK_ROWS, seed + 1)
    after = _asked(policy, _updated(policy, state, feedback, seed), seed)
    require_close(
        _asked(policy, _updated(policy, state, padded(feedback), seed), seed),
        after,
        policy,
        "rows of weight 0 must change nothing, whatever they hold",
        rtol=1e-5,
        atol=1e-8,
    )
    nothing = _updated(policy, state, rows_of(feedback, slice(0, 0)), seed)
    require_close(
        _asked(policy, nothing, seed),
        _asked(policy, state, seed),
        policy,
        "feedback without rows must change nothing",
        rtol=1e-5,
        atol=1e-8,
    )
    weight = feedback.weight.copy()
    weight[0] = 0.0
    silent = _updated(policy, state, feedback._replace(weight=weight), seed)
    found = _asked(policy, silent, seed)
    require_close(
        found[1:], after[1:], policy, "replicas must not hear of each other", rtol=1e-5, atol=1e-8
    )
    require_close(
        found[0],
        _asked(policy, state, seed)[0],
        policy,
        "a replica without feedback must stay as it is while others learn",
        rtol=1e-5,
        atol=1e-8,
    )


def _updated(policy: Policy[Any], state: Any, feedback: Feedback, seed: int) -> Any:
    return policy.update(state, feedback, np.random.default_rng(seed))


def _asked(policy: Policy[Any], state: Any, seed: int) -> Floats:
    """The density of some actions in some contexts: ``[R, 6]``."""
    context = some_contexts(state.problem, REPLICAS, 6, seed)
    action = state.problem.space.uniform((REPLICAS, 6), np.random.default_rng(seed))
    return np.exp(policy.log_prob(state, context, action))


def _check_frequencies(policy: Policy[Any], problem: Problem, seed: int) -> None:
    """Compare what is chosen with the density, over replicas that all have the same state."""
    context = some_contexts(problem, 1, 1, seed).repeat(REPLICAS, axis=0)
    for state in _states(policy, problem, REPLICAS, seed):
        mass = _bins_mass(policy, state, context)
        rule = f"the integral of the density must be near 1, and is {mass.sum(axis=1)}"
        allowed = LARGEST_ERROR[policy.facts.trains_models]
        require(np.all(np.abs(mass.sum(axis=1) - 1) < allowed), policy, rule)
        expected = (mass / mass.sum(axis=1, keepdims=True)).mean(axis=0)
        p_value = _p_value(policy, state, context, expected, seed)
        rule = f"choices must agree with the density, and their p-value is {p_value:.1e}"
        require(p_value > SMALLEST_P_VALUE, policy, rule)


def _p_value(
    policy: Policy[Any], state: Any, context: Floats, expected: Floats, seed: int
) -> float:
    """Compare choices with the ``expected`` probabilities of their bins."""
    rng = np.random.default_rng(seed)

    def choose() -> Integers:
        return _bins(state.problem, policy.act(state, context, rng).action[:, 0])

    return p_value_in_steps(choose, expected, CHOICES)


def _bins_mass(policy: Policy[Any], state: Any, context: Floats) -> Floats:
    """The integral of the density over every bin and choice, by midpoints: ``[R, bins]``."""
    space = state.problem.space
    share = (np.arange(BINS * MIDPOINTS) + 0.5) / (BINS * MIDPOINTS)
    place = np.array(space.low) + share[:, None] * (np.array(space.high) - np.array(space.low))
    choices = np.arange(max(1, *space.choices, 1))[:, None, None]
    grid = np.broadcast_to(place, (len(choices), *place.shape))
    if space.choices:
        grid = np.concatenate([np.broadcast_to(choices, grid.shape), grid], axis=-1)
    action = grid.reshape(-1, space.slots).astype(np.float64)
    replicas = len(context)
    density = np.exp(
        policy.log_prob(
            state,
            np.repeat(context, len(action), axis=1),
            np.broadcast_to(action, (replicas, *action.shape)),
        )
    )
    volume = np.exp(space.log_measure) / len(choices) / (BINS * MIDPOINTS)
    mass: Floats = density.reshape(replicas, len(choices) * BINS, MIDPOINTS).sum(axis=-1) * volume
    return mass


def _bins(problem: Problem, action: Actions) -> Integers:
    space = problem.space
    assert isinstance(space, RealSpace)
    place = np.minimum(space.scaled(action)[..., -1] * BINS, BINS - 1).astype(np.int64)
    return place + BINS * action[..., 0].astype(np.int64) if space.choices else place
