"""Conformance suite of policies."""

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from submax.core.arrays import Actions, Floats, Integers
from submax.core.errors import InputError
from submax.core.policy import Policy, TabularPolicy, act_among, probabilities_among
from submax.core.problem import Feedback, Problem
from submax.core.rewards import Continuous
from submax.core.spaces import Box, Choices
from submax.testing.assertions import SMALLEST_P_VALUE, Rules, contents, goodness_of_fit, leaves
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
LEARNING_ROWS = 3
MANY = 25
"""Replicas that take them. Networks after feedback, whose training is compiled once for each number
of replicas, have as many as elsewhere in the suite."""
REAL = (
    Problem(Box((-2.0,), (6.0,)), context_width=2, scale=Continuous(low=0.0, high=50.0)),
    Problem(Box((0.0,), (3.0,), (2,))),
)
"""Problems that a class may refuse, when it is made for listed actions."""


def check_policy(policy: Policy[Any], seed: int = 0) -> None:
    """Raise an AssertionError if ``policy`` breaks its contract.

    The problems are arms, slots, arms with a context, all reward scales and real-valued actions,
    each before and after feedback, with one replica and with several. A policy that says it needs
    pairs of the same arms is tested on these instead.
    """
    rules = Rules(policy, Policy)
    rules.require(dataclasses.is_dataclass(policy), "it must be a dataclass")
    frozen = type(policy).__dataclass_params__.frozen  # type: ignore[attr-defined]  # a dataclass has it
    rules.require(frozen, "its dataclass must be frozen")
    rules.equal_copy()
    for problem, replicas in cases(policy):
        with rules.on(problem):
            feedback = some_feedback(problem, replicas, FEEDBACK_ROWS, seed)
            fresh, taught = _states(policy, problem, replicas, feedback, seed)
            for state, rows in itertools.product((fresh, taught), DECISION_ROWS):
                _check_state(rules, state, some_contexts(problem, replicas, rows, seed), seed)
            _check_learning(rules, problem, replicas, seed, taught)
            if replicas > 1 and problem.space.size > 1 and problem in problems_of(policy):
                _check_frequencies(rules, problem, seed)
                _check_eligibility(rules, problem, replicas, seed, taught)
    for problem in accepted(policy, REAL):
        with rules.on(problem):
            _check_densities(rules, problem, seed)
    _check_traits(rules, seed)


def _states(
    policy: Policy[Any], problem: Problem, replicas: int, feedback: Feedback, seed: int
) -> Iterator[Any]:
    rng = np.random.default_rng(seed)
    fresh = policy.init(problem, replicas, rng)
    yield fresh
    yield policy.update(policy.record(fresh, feedback.action), feedback, rng)


def _check_state(rules: Rules, state: Any, context: Floats, seed: int) -> None:
    policy, problem, shape = rules.subject, state.problem, context.shape[:2]
    before, listed = contents(state), not problem.space.reals
    # Of a tabular policy, act and log_prob follow from this table, so it is checked first.
    first = listed and isinstance(policy, TabularPolicy)
    table = _table(rules, state, context) if first else None
    decision = policy.act(state, context, np.random.default_rng(seed))
    again = policy.act(state, context, np.random.default_rng(seed))
    rules.shape(decision.action, "R, n, S", (*shape, problem.space.slots), "actions")
    kind = problem.space.dtype
    rules.require(decision.action.dtype == kind, f"actions must be of type {kind.__name__}")
    rules.require(problem.space.contains(decision.action), "actions must belong to the space")
    expected = policy.log_prob(state, context, decision.action)
    rules.shape(expected, "R, n", shape, "log_prob")
    rules.require(expected.dtype == np.float64, "log_prob must be of type float64")
    rules.require(np.all(np.isfinite(expected)), "what was chosen must have a probability")
    if decision.log_prob is not None:
        rules.shape(decision.log_prob, "R, n", shape, "log_prob of a decision")
        rule = "the log_prob of a decision must equal that of the policy"
        rules.close(decision.log_prob, expected, rule)
    same = np.array_equal(decision.action, again.action)
    rules.require(same, "the same seed must give the same decisions")
    if listed:
        table = _table(rules, state, context) if table is None else table
        _check_table(rules, state, context, table)
        rewards = policy.expected_rewards(state, context)
        if rewards is not None:
            allowed = [(shape[0], count, problem.space.size) for count in (shape[1], 1)]
            rule = f"expected_rewards must have shape {allowed[0]} or {allowed[1]}"
            rules.require(rewards.shape in allowed, f"{rule}, not {rewards.shape}")
            rules.require(not np.isinf(rewards).any(), "expected_rewards must be finite or NaN")
    rules.require(before == contents(state), "act and log_prob must not change the state")


def _table(rules: Rules, state: Any, context: Floats) -> Floats:
    """Check the shape of ``probabilities``, and return those of every row: ``[R, n, M]``."""
    listed = rules.subject.probabilities(state, context)
    replicas, rows = context.shape[:2]
    shape = (replicas, rows, state.problem.space.size)
    if getattr(listed, "shape", None) != (replicas, 1, shape[2]):
        also = ", unless it is [R, 1, M]," if rows > 1 else ""
        rules.shape(listed, "R, n, M", shape, f"probabilities(state, context){also}")
    return np.broadcast_to(listed, shape)


def _check_table(rules: Rules, state: Any, context: Floats, table: Floats) -> None:
    """Check that probabilities sum to one, and that ``log_prob`` agrees with the ``table`` of them.

    Every action is asked for in every row. Among many rows, and of a policy whose ``log_prob``
    follows from ``probabilities``, every row is asked for one action, in turn.
    """
    policy, sums = rules.subject, "the probabilities of all joint actions must sum to one"
    few = 0 < context.shape[1] < DECISION_ROWS[-1]
    if few and type(policy).log_prob is not TabularPolicy.log_prob:
        found, expected = _all_log_probs(policy, state, context), np.moveaxis(table, -1, 0)
        rules.close(np.exp(found).sum(axis=0), 1, sums, rtol=0, atol=1e-9)
    else:
        index = np.add.outer(*(np.arange(count) for count in context.shape[:2])) % table.shape[2]
        found = policy.log_prob(state, context, state.problem.space.action(index))
        expected = np.take_along_axis(table, index[..., None], axis=-1)[..., 0]
    rules.require(not np.any(np.isnan(found)), "no log_prob may be NaN")
    rules.close(np.exp(found), expected, "probabilities must be those of log_prob")
    rules.close(table.sum(axis=-1), 1, sums, rtol=0, atol=1e-9)


def _all_log_probs(policy: Policy[Any], state: Any, context: Floats) -> Floats:
    """Log-probability of every joint action in every row: ``[M, R, n]``."""
    shape = context.shape[:2]
    listing = state.problem.space.listing()
    return np.stack([policy.log_prob(state, context, np.tile(one, (*shape, 1))) for one in listing])


def _check_frequencies(rules: Rules, problem: Problem, seed: int) -> None:
    """Compare what is chosen with ``log_prob``, over replicas that all have the same state.

    Rows of one call may depend on each other, so only the last of them is counted.
    """
    policy = rules.subject
    replicas = REPLICAS[-1] if policy.traits.trains_models else MANY
    feedback = repeated(some_feedback(problem, 1, FEEDBACK_ROWS, seed), replicas)
    _, taught = _states(policy, problem, replicas, feedback, seed)
    fresh = policy.init(problem, MANY, np.random.default_rng(seed))

    def cell(action: Actions) -> Integers:
        return problem.space.index(action[:, -1])

    for state, alike in ((fresh, MANY), (taught, replicas)):
        for rows in (1, DECISION_ROWS[-1]):
            context = some_contexts(problem, 1, rows, seed).repeat(alike, axis=0)
            # That the probabilities are those of log_prob was checked with the decisions.
            expected = policy.probabilities(state, context)[:, -1].mean(axis=0)
            _check_choices(rules, state, context, cell, expected, 1500, "log_prob", seed)


def _check_choices(
    rules: Rules,
    state: Any,
    context: Floats,
    cell: Callable[[Actions], Integers],
    expected: Floats,
    draws: int,
    what: str,
    seed: int,
) -> None:
    """Compare how often each cell of the actions is chosen with what is expected."""
    rng, calls = np.random.default_rng(seed), -(-draws // len(context))
    drawn = [cell(rules.subject.act(state, context, rng).action) for _ in range(calls)]
    p_value = goodness_of_fit(np.concatenate(drawn), expected)
    rule = f"choices must agree with {what}, and their p-value is {p_value:.1e}"
    rules.require(p_value > SMALLEST_P_VALUE, rule)


TRAIT_REPLICAS, TRAIT_ROWS = 4, 120


def _check_traits(rules: Rules, seed: int) -> None:
    """Check the traits on a problem in which the context decides which of three arms pays."""
    policy, rng = rules.subject, np.random.default_rng(seed)
    # Networks were compiled for this problem before.
    problem = problems_of(policy)[-1]
    shape = (TRAIT_REPLICAS, TRAIT_ROWS)
    # The first arm pays if the first number of the context is positive, else the second one. Of a
    # pair, this is the first arm; the second one is the next of three.
    context, arm = rng.normal(size=(*shape, 2)), rng.integers(3, size=shape)
    reward = (arm == (context[..., 0] < 0)).astype(np.float64)
    action = np.stack([arm, (arm + 1) % 3], axis=-1)[..., : problem.space.slots]
    feedback = Feedback(context, action, reward, np.full(shape, -np.log(3)), np.ones(shape))

    def taught(feedback: Feedback) -> Any:
        rng = np.random.default_rng(seed)
        return policy.update(policy.init(problem, TRAIT_REPLICAS, rng), feedback, rng)

    state = taught(feedback)
    # Contexts that were seen: a policy may know nothing about others. Each has a call of its own,
    # because the rows of one call may depend on each other.
    first = context[..., 0]
    one, other = (
        np.exp(_all_log_probs(policy, state, context[np.arange(TRAIT_REPLICAS), row][:, None]))
        for row in (first.argmin(axis=1), first.argmax(axis=1))
    )
    rule = "it says that it ignores the context, and decides differently in two of them"
    if policy.traits.uses_context:
        rule = (
            "it says that it uses the context, and decides the same in all of them: "
            "return PolicyTraits(uses_context=False) as its traits"
        )
    rules.require(bool(np.abs(one - other).max() > 1e-9) == policy.traits.uses_context, rule)
    if not policy.traits.needs_propensities:
        try:
            taught(feedback._replace(log_prob=None))
        except InputError:
            rules.require(False, "it says that it needs no propensities, and refuses to do without")


DENSITY_FEEDBACK_ROWS = 20
"""Rows of feedback that the policy learns from."""
DENSITY_ROWS = (0, 1, 5)
DENSITY_REPLICAS = 4
"""As many as elsewhere in the suite: networks are compiled once for each number of replicas."""
BINS, MIDPOINTS = 6, 10
LARGEST_ERROR = {True: 0.25, False: 1e-6}
"""How far the integral of a density may be from 1: of networks, whose constant is estimated."""


def _check_densities(rules: Rules, problem: Problem, seed: int) -> None:
    policy, space = rules.subject, problem.space
    assert isinstance(space, Box)

    def states(replicas: int) -> Iterator[Any]:
        feedback = repeated(some_feedback(problem, 1, DENSITY_FEEDBACK_ROWS, seed), replicas)
        return _states(policy, problem, replicas, feedback, seed)

    # Networks are compiled for each number of replicas: a single one is tested on listed actions.
    for state in () if policy.traits.trains_models else states(1):
        _check_state(rules, state, some_contexts(problem, 1, 1, seed), seed)
    asked = some_contexts(problem, DENSITY_REPLICAS, 6, seed)
    action = space.uniform((DENSITY_REPLICAS, 6), np.random.default_rng(seed))

    def density(state: Any) -> Floats:
        return np.exp(policy.log_prob(state, asked, action))

    news = some_feedback(problem, DENSITY_REPLICAS, DENSITY_FEEDBACK_ROWS, seed + 1)
    context = some_contexts(problem, 1, 1, seed).repeat(DENSITY_REPLICAS, axis=0)
    for state in states(DENSITY_REPLICAS):
        for rows in DENSITY_ROWS:
            _check_state(rules, state, some_contexts(problem, DENSITY_REPLICAS, rows, seed), seed)
        tolerance = {"rtol": 1e-5, "atol": 1e-8}
        check_separation(rules, problem, news, state, policy.update, density, seed, **tolerance)
        mass = _bins_mass(policy, state, space, context)
        total = mass.sum(axis=1, keepdims=True)
        rule = f"the integral of the density must be near 1, and is {total[:, 0]}"
        largest = LARGEST_ERROR[policy.traits.trains_models]
        rules.require(np.all(np.abs(total - 1) < largest), rule)
        expected = (mass / total).mean(axis=0)

        def cell(chosen: Actions) -> Integers:
            last = np.minimum(space.scaled(chosen[:, 0])[..., -1] * BINS, BINS - 1)
            choice = chosen[:, 0, 0].astype(np.int64) if space.choices else 0
            return last.astype(np.int64) + BINS * choice

        _check_choices(rules, state, context, cell, expected, 1000, "the density", seed)


def _bins_mass(policy: Policy[Any], state: Any, space: Box, context: Floats) -> Floats:
    """The integral of the density over every bin and choice, by midpoints: ``[R, bins]``."""
    share = (np.arange(BINS * MIDPOINTS) + 0.5) / (BINS * MIDPOINTS)
    place = np.array(space.low) + share[:, None] * (np.array(space.high) - np.array(space.low))
    choices = np.arange(max(1, *space.choices, 1))[:, None, None]
    grid = np.broadcast_to(place, (len(choices), *place.shape))
    if space.choices:
        grid = np.concatenate([np.broadcast_to(choices, grid.shape), grid], axis=-1)
    action = grid.reshape(-1, space.slots).astype(np.float64)
    replicas = len(context)
    every = np.broadcast_to(action, (replicas, *action.shape))
    density = np.exp(policy.log_prob(state, np.repeat(context, len(action), axis=1), every))
    volume = np.exp(space.log_measure) / len(choices) / (BINS * MIDPOINTS)
    return density.reshape(replicas, len(choices) * BINS, MIDPOINTS).sum(axis=-1) * volume


def _check_learning(rules: Rules, problem: Problem, replicas: int, seed: int, state: Any) -> None:
    """Check what feedback does to a ``state`` after some feedback and, above all, what not."""
    policy = rules.subject
    feedback = some_feedback(problem, replicas, FEEDBACK_ROWS, seed + 1)
    context = some_contexts(problem, replicas, LEARNING_ROWS, seed)

    def ask(state: Any) -> Floats:
        """The probability of every joint action, which was checked against log_prob."""
        listed = policy.probabilities(state, context)
        return np.broadcast_to(listed, (*context.shape[:2], listed.shape[2]))

    before, given = contents(state), contents(feedback)
    policy.record(state, feedback.action)
    rules.require(before == contents(state), "record must not change the state it was given")
    once = policy.update(state, feedback, np.random.default_rng(seed))
    rules.require(before == contents(state), "update must not change the state it was given")
    rules.require(given == contents(feedback), "update must not change the feedback")
    again = policy.update(state, feedback, np.random.default_rng(seed))
    rules.require(contents(once) == contents(again), "the same seed must give the same state")
    check_separation(rules, problem, feedback, state, policy.update, ask, seed)
    for clear in clear_feedback(problem, replicas, 10 * problem.space.size):
        _, taught = _states(policy, problem, replicas, clear, seed)
        arrays = [*leaves(taught), ask(taught)]
        clean = not any(np.isnan(array).any() for array in arrays if array.dtype.kind == "f")
        rules.require(clean, "clear feedback must not lead to NaN")
    _check_refusals(rules, state, feedback)


def _check_refusals(rules: Rules, state: Any, feedback: Feedback) -> None:
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
        before = contents(state)
        try:
            after = rules.subject.update(state, given, np.random.default_rng(0))
        except InputError:
            continue
        rules.require(before == contents(after), f"{what} must be refused by InputError")


def _check_eligibility(
    rules: Rules, problem: Problem, replicas: int, seed: int, taught: Any
) -> None:
    """Check decisions among some of the actions, before feedback and in the state ``taught``.

    One eligible action is certain; if all are eligible, the policy decides as always; otherwise
    the probabilities are those of the actions that can be drawn, and the problem of the restricted
    state has these alone.
    """
    policy = rules.subject
    fresh = policy.init(problem, replicas, np.random.default_rng(seed))
    context = some_contexts(problem, replicas, LEARNING_ROWS, seed)
    every = tuple(tuple(range(size)) for size in problem.space.choices)
    last: Choices = tuple(slot[-1:] for slot in every)
    some: Choices = tuple(slot[-2:] for slot in every)
    for state in (fresh, taught):
        alone = probabilities_among(policy, state, context, last)
        rules.close(alone, np.ones_like(alone), "the only eligible action must be certain")
        whole = probabilities_among(policy, state, context, every)
        rule = "if all actions are eligible, nothing must change"
        rules.close(whole, policy.probabilities(state, context), rule)
        listed = probabilities_among(policy, state, context, some)
        size = problem.space.restricted(some).size
        sizes = {(replicas, rows, size) for rows in (1, LEARNING_ROWS)}
        rule = "the probabilities of eligible actions must have shape [R, n, m] or [R, 1, m]"
        rules.require(listed.shape in sizes, rule)
        rules.require(listed.min() >= 0, "probabilities must be 0 or more")
        rule = "the probabilities of the eligible actions must sum to 1"
        rules.close(listed.sum(axis=-1), np.ones(listed.shape[:2]), rule)
        action, log_prob = act_among(policy, state, context, some, np.random.default_rng(seed))
        inside = all(np.isin(action[..., slot], kept).all() for slot, kept in enumerate(some))
        rules.require(inside, "only eligible actions must be taken")
        known = log_prob is not None and np.isfinite(log_prob).all()
        rules.require(known, "what was taken must have a probability")
        smaller = policy.restricted(state, some)
        named = smaller is None or smaller.problem == state.problem.restricted(some)
        rule = "a restricted state must name the problem with the eligible choices alone"
        rules.require(named, rule)
