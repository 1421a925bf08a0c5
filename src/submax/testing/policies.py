"""Conformance suite of policies."""

import dataclasses
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from submax.core.arrays import Actions, Floats, Integers
from submax.core.errors import InputError
from submax.core.policy import (
    Policy,
    TabularPolicy,
    act_among,
    expected_rewards,
    probabilities_among,
    restricted_state,
)
from submax.core.problem import ChosenActions, Feedback, Problem
from submax.core.rewards import Continuous
from submax.core.spaces import Box, Choices, Mixed, RealSpace
from submax.testing.assertions import (
    SMALLEST_P_VALUE,
    copied,
    leaves,
    on_problem,
    p_value_in_steps,
    require,
    require_close,
    require_equal_copy,
    require_instance,
    require_shape,
    unchanged,
)
from submax.testing.problems import (
    REPLICAS,
    accepted,
    cases,
    check_separation,
    clear_feedback,
    problems_of,
    repeated,
    some_contexts,
    some_feedback,
)

FEEDBACK_ROWS = 12
"""Rows of feedback in the state that is checked beside the fresh one."""
DECISION_ROWS = (5, 0, 1, 70)
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
        for rows in DECISION_ROWS:
            _check_state(policy, state, some_contexts(problem, replicas, rows, seed), seed)
    return taught


def _check_state(policy: Policy[Any], state: Any, context: Floats, seed: int) -> None:
    before, listed = copied(state), not state.problem.space.reals
    # Of a listing policy, act and log_prob follow from this table, so that it is checked first.
    first = listed and isinstance(policy, TabularPolicy)
    table = _table(policy, state, context) if first else None
    decision = policy.act(state, context, np.random.default_rng(seed))
    again = policy.act(state, context, np.random.default_rng(seed))
    _check_action(policy, state.problem, context.shape[:2], decision)
    _check_log_prob(policy, state, context, decision)
    same = np.array_equal(decision.action, again.action)
    require(same, policy, "the same seed must give the same decisions")
    if listed:
        table = _table(policy, state, context) if table is None else table
        _check_sum(policy, state, context, table)
        _check_expected(policy, state.problem, state, context)
    require(unchanged(before, state), policy, "act and log_prob must not change the state")


def _check_expected(policy: Policy[Any], problem: Problem, state: Any, context: Floats) -> None:
    """Check what every action is believed to earn, if the policy says so."""
    found = expected_rewards(policy, state, context)
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
        for rows in (1, DECISION_ROWS[-1]):
            context = some_contexts(problem, 1, rows, seed).repeat(replicas, axis=0)
            p_value = _p_value(policy, state, context, np.random.default_rng(seed))
            rule = f"choices must agree with log_prob, and their p-value is {p_value:.1e}"
            require(p_value > SMALLEST_P_VALUE, policy, rule)


def _alike(policy: Policy[Any], problem: Problem, seed: int) -> Iterator[tuple[Any, int]]:
    """Yield a fresh state, and one after the same feedback in all replicas; with their replicas."""
    yield policy.init(problem, MANY, np.random.default_rng(seed)), MANY
    replicas = REPLICAS[-1] if policy.traits.trains_models else MANY
    feedback = repeated(some_feedback(problem, 1, FEEDBACK_ROWS, seed), replicas)
    _, taught = _states(policy, problem, replicas, feedback, seed)
    yield taught, replicas


def _p_value(policy: Policy[Any], state: Any, context: Floats, rng: np.random.Generator) -> float:
    """Compare choices in the last row with their probabilities."""
    # That the probabilities are those of log_prob was checked with the decisions.
    expected = policy.probabilities(state, context)[:, -1].mean(axis=0)

    def choose() -> Integers:
        return state.problem.space.index(policy.act(state, context, rng).action[:, -1])

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
    return np.broadcast_to(listed, shape)


def _check_action(
    policy: Policy[Any], problem: Problem, shape: tuple[int, int], decision: ChosenActions
) -> None:
    action = decision.action
    require_shape(action, "R n S", (*shape, problem.space.slots), policy, "actions")
    kind = problem.space.dtype
    require(action.dtype == kind, policy, f"actions must be of type {kind.__name__}")
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
    few = 0 < context.shape[1] < DECISION_ROWS[-1]
    if few and type(policy).log_prob is not TabularPolicy.log_prob:
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


FACT_REPLICAS, FACT_ROWS = 4, 120
APART = 1e-9
"""Probabilities in two contexts that differ by more than this are different."""


def check_facts(policy: Policy[Any], seed: int) -> None:
    """Check the facts on a problem in which the context decides which of three arms pays."""
    # Networks were compiled for this problem before.
    contextual = problems_of(policy)[-1]
    feedback = _telling_feedback(contextual, seed)
    _check_context(policy, contextual, feedback, seed)
    if not policy.traits.needs_propensities:
        _check_without_propensities(policy, contextual, feedback, seed)


def _check_context(policy: Policy[Any], problem: Problem, feedback: Feedback, seed: int) -> None:
    state = _taught(policy, problem, feedback, seed)
    # Contexts that were seen: a policy may know nothing about others.
    first = feedback.context[..., 0]
    seen = np.stack([first.argmin(axis=1), first.argmax(axis=1)], axis=1)
    context = np.take_along_axis(feedback.context, seen[..., None], axis=1)
    # Each context has a call of its own, because the rows of one call may depend on each other.
    one, other = (_probabilities(policy, state, context[:, row : row + 1]) for row in range(2))
    differs = bool(np.abs(one - other).max() > APART)
    if policy.traits.uses_context:
        sentence = (
            "it says that it uses the context, and decides the same in all of them: "
            "return PolicyTraits(uses_context=False) as its facts"
        )
    else:
        sentence = "it says that it ignores the context, and decides differently in two of them"
    require(differs == policy.traits.uses_context, policy, sentence)


def _probabilities(policy: Policy[Any], state: Any, context: Floats) -> Floats:
    return np.exp(all_log_probs(policy, state, context))


def _check_without_propensities(
    policy: Policy[Any], problem: Problem, feedback: Feedback, seed: int
) -> None:
    try:
        _taught(policy, problem, feedback._replace(log_prob=None), seed)
    except InputError:
        require(False, policy, "it says that it needs no propensities, and refuses to do without")


def _telling_feedback(problem: Problem, seed: int) -> Feedback:
    """Uniform decisions: the first arm pays if the first number of the context is positive.

    Of a pair, this is the first arm; the second one is the next of three.
    """
    rng = np.random.default_rng(seed)
    shape = (FACT_REPLICAS, FACT_ROWS)
    context, arm = rng.normal(size=(*shape, 2)), rng.integers(3, size=shape)
    reward = (arm == (context[..., 0] < 0)).astype(np.float64)
    action = np.stack([arm, (arm + 1) % 3], axis=-1)[..., : problem.space.slots]
    return Feedback(context, action, reward, np.full(shape, -np.log(3)), np.ones(shape))


def _taught(policy: Policy[Any], problem: Problem, feedback: Feedback, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return policy.update(policy.init(problem, FACT_REPLICAS, rng), feedback, rng)


REAL = (
    Problem(Box((-2.0,), (6.0,)), context_width=2, scale=Continuous(low=0.0, high=50.0)),
    Problem(Mixed((2,), (0.0,), (3.0,))),
)
"""Problems that a class may refuse, when it is made for listed actions."""
DENSITY_FEEDBACK_ROWS = 20
"""Rows of feedback that the policy learns from."""
DENSITY_ROWS = (0, 1, 5)
DENSITY_REPLICAS = 4
"""As many as elsewhere in the suite: networks are compiled once for each number of replicas."""
DENSITY_CHOICES = 1000
"""Decisions that are compared with the density, if the first ones do not agree well."""
BINS, MIDPOINTS = 6, 10
LARGEST_ERROR = {True: 0.25, False: 1e-6}
"""How far the integral of a density may be from 1: of networks, whose constant is estimated."""


def check_densities(policy: Policy[Any], problem: Problem, seed: int) -> None:
    """Check decisions, densities and learning on real-valued actions."""
    # Networks are compiled for each number of replicas: a single one is tested on listed actions.
    if not policy.traits.trains_models:
        for state in _density_states(policy, problem, 1, seed):
            _check_state(policy, state, some_contexts(problem, 1, 1, seed), seed)
    for state in _density_states(policy, problem, DENSITY_REPLICAS, seed):
        for rows in DENSITY_ROWS:
            _check_state(policy, state, some_contexts(problem, DENSITY_REPLICAS, rows, seed), seed)
        feedback = some_feedback(problem, DENSITY_REPLICAS, DENSITY_FEEDBACK_ROWS, seed + 1)
        learned, before = _asking(policy, state, partial(_asked, policy, seed=seed), seed)
        check_separation(policy, problem, feedback, learned, before, rtol=1e-5, atol=1e-8)
    _check_frequencies(policy, problem, seed)


def _density_states(
    policy: Policy[Any], problem: Problem, replicas: int, seed: int
) -> Iterator[Any]:
    feedback = repeated(some_feedback(problem, 1, DENSITY_FEEDBACK_ROWS, seed), replicas)
    return _states(policy, problem, replicas, feedback, seed)


def _asked(policy: Policy[Any], state: Any, seed: int) -> Floats:
    """The density of some actions in some contexts: ``[R, 6]``."""
    context = some_contexts(state.problem, DENSITY_REPLICAS, 6, seed)
    action = state.problem.space.uniform((DENSITY_REPLICAS, 6), np.random.default_rng(seed))
    return np.exp(policy.log_prob(state, context, action))


def _check_frequencies(policy: Policy[Any], problem: Problem, seed: int) -> None:
    """Compare what is chosen with the density, over replicas that all have the same state."""
    context = some_contexts(problem, 1, 1, seed).repeat(DENSITY_REPLICAS, axis=0)
    for state in _density_states(policy, problem, DENSITY_REPLICAS, seed):
        mass = _bins_mass(policy, state, context)
        rule = f"the integral of the density must be near 1, and is {mass.sum(axis=1)}"
        allowed = LARGEST_ERROR[policy.traits.trains_models]
        require(np.all(np.abs(mass.sum(axis=1) - 1) < allowed), policy, rule)
        expected = (mass / mass.sum(axis=1, keepdims=True)).mean(axis=0)
        rng = np.random.default_rng(seed)

        def choose(state: Any = state, rng: np.random.Generator = rng) -> Integers:
            return _bins(state.problem, policy.act(state, context, rng).action[:, 0])

        p_value = p_value_in_steps(choose, expected, DENSITY_CHOICES)
        rule = f"choices must agree with the density, and their p-value is {p_value:.1e}"
        require(p_value > SMALLEST_P_VALUE, policy, rule)


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
    return density.reshape(replicas, len(choices) * BINS, MIDPOINTS).sum(axis=-1) * volume


def _bins(problem: Problem, action: Actions) -> Integers:
    space = problem.space
    assert isinstance(space, RealSpace)
    place = np.minimum(space.scaled(action)[..., -1] * BINS, BINS - 1).astype(np.int64)
    return place + BINS * action[..., 0].astype(np.int64) if space.choices else place


LEARNING_ROWS = 3


def check_learning(
    policy: Policy[Any], problem: Problem, replicas: int, seed: int, state: Any
) -> None:
    """Check what feedback does to a ``state`` after some feedback and, above all, what not."""
    feedback = some_feedback(problem, replicas, FEEDBACK_ROWS, seed + 1)
    context = some_contexts(problem, replicas, LEARNING_ROWS, seed)
    _check_purity(policy, state, feedback, seed)
    ask = partial(_decisions, policy, context=context)
    check_separation(policy, problem, feedback, *_asking(policy, state, ask, seed))
    _check_clear_feedback(policy, problem, replicas, seed)
    _check_refusals(policy, state, feedback)


def _asking(
    policy: Policy[Any], state: Any, ask: Callable[[Any], Floats], seed: int
) -> tuple[Callable[[Feedback], Floats], Floats]:
    """Return the function that asks the state after feedback, and what it says before."""

    def learned(feedback: Feedback) -> Floats:
        return ask(policy.update(state, feedback, np.random.default_rng(seed)))

    return learned, ask(state)


def _check_purity(policy: Policy[Any], state: Any, feedback: Feedback, seed: int) -> None:
    before, given = copied(state), copied(feedback)
    policy.record(state, feedback.action)
    require(unchanged(before, state), policy, "record must not change the state it was given")
    once = policy.update(state, feedback, np.random.default_rng(seed))
    require(unchanged(before, state), policy, "update must not change the state it was given")
    require(unchanged(given, feedback), policy, "update must not change the feedback")
    again = policy.update(state, feedback, np.random.default_rng(seed))
    require(unchanged(copied(once), again), policy, "the same seed must give the same state")


def _check_clear_feedback(policy: Policy[Any], problem: Problem, replicas: int, seed: int) -> None:
    context = some_contexts(problem, replicas, LEARNING_ROWS, seed)
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
    return np.broadcast_to(listed, (*context.shape[:2], listed.shape[2]))


def check_eligibility(
    policy: Policy[Any], problem: Problem, replicas: int, seed: int, taught: Any
) -> None:
    """Check decisions among some of the actions, before feedback and in the state ``taught``.

    One eligible action is certain; if all are eligible, the policy decides as always; otherwise
    the probabilities are those of the actions that can be drawn, and the problem of the restricted
    state has these alone.
    """
    fresh = policy.init(problem, replicas, np.random.default_rng(seed))
    context = some_contexts(problem, replicas, LEARNING_ROWS, seed)
    every = tuple(tuple(range(size)) for size in problem.space.choices)
    last: Choices = tuple((size - 1,) for size in problem.space.choices)
    some: Choices = tuple(tuple(range(size))[-2:] for size in problem.space.choices)
    for state in (fresh, taught):
        alone = probabilities_among(policy, state, context, last)
        rule = "the only eligible action must be certain"
        require_close(alone, np.ones_like(alone), policy, rule)
        whole = probabilities_among(policy, state, context, every)
        rule = "if all actions are eligible, nothing must change"
        require_close(whole, policy.probabilities(state, context), policy, rule)
        listed = probabilities_among(policy, state, context, some)
        sizes = {
            (replicas, rows, problem.space.restricted(some).size) for rows in (1, LEARNING_ROWS)
        }
        rule = "the probabilities of eligible actions must have shape [R, n, m] or [R, 1, m]"
        require(listed.shape in sizes, policy, rule)
        require(bool(listed.min() >= 0), policy, "probabilities must be 0 or more")
        rule = "the probabilities of the eligible actions must sum to 1"
        require_close(listed.sum(axis=-1), np.ones(listed.shape[:2]), policy, rule)
        action, log_prob = act_among(policy, state, context, some, np.random.default_rng(seed))
        inside = all(np.isin(action[..., slot], kept).all() for slot, kept in enumerate(some))
        require(inside, policy, "only eligible actions must be taken")
        assert log_prob is not None, "act_among always returns it"
        require(bool(np.isfinite(log_prob).all()), policy, "what was taken must have a probability")
        smaller = restricted_state(policy, state, some)
        if smaller is not None:
            rule = "a restricted state must name the problem with the eligible choices alone"
            require(smaller.problem == state.problem.restricted(some), policy, rule)


def check_policy(policy: Policy[Any], seed: int = 0) -> None:
    """Raise an AssertionError if ``policy`` breaks its contract.

    The problems are arms, slots, arms with a context, all reward scales and real-valued actions,
    each before and after feedback, with one replica and with several. A policy that says it needs
    pairs of the same arms is tested on these instead.
    """
    _check_record(policy)
    for problem, replicas in cases(policy):
        with on_problem(policy, problem):
            taught = check_decisions(policy, problem, replicas, seed)
            check_learning(policy, problem, replicas, seed, taught)
            if replicas > 1 and problem.space.size > 1 and problem in problems_of(policy):
                check_frequencies(policy, problem, seed)
                check_eligibility(policy, problem, replicas, seed, taught)
    for problem in accepted(policy, REAL):
        with on_problem(policy, problem):
            check_densities(policy, problem, seed)
    check_facts(policy, seed)


def _check_record(policy: Policy[Any]) -> None:
    require_instance(policy, Policy)
    require(dataclasses.is_dataclass(policy), policy, "it must be a dataclass")
    frozen = type(policy).__dataclass_params__.frozen  # type: ignore[attr-defined]  # a dataclass has it
    require(frozen, policy, "its dataclass must be frozen")
    require_equal_copy(policy)
