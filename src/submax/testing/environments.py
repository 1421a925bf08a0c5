"""Conformance suites of environments, delays and reward scales."""

from typing import Any

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.environment import Environment
from submax.core.spaces import Space
from submax.simulation.delays import Delay
from submax.testing.assertions import Rules

REPLICAS = 4
ROWS = 3
DRAWS = 1000
ACTIONS_DRAWN = 16
ACTIONS_LISTED = 2**16
ROUNDING_OF_MEANS = 1e-9
"""How far a mean reward may lie beyond the bounds of rewards, because sums are rounded."""
FALSE_ALARM = 1e-9
"""The chance that a right environment fails the comparison of one mean."""


def check_environment(environment: Environment[Any], seed: int = 0) -> None:
    """Raise an AssertionError if ``environment`` breaks its contract."""
    rules = Rules(environment, Environment)
    rules.equal_copy()
    most = environment.most_decisions
    allowed = most is None or (isinstance(most, int) and most >= 1)
    rules.require(allowed, "most_decisions must be None or at least 1")
    with rules.on(environment.problem):
        for check in (_shapes, _means, _outcome, _best, _regret, _worlds, _drift):
            check(rules, seed)


def _shapes(rules: Rules, seed: int) -> None:
    environment, rng = rules.subject, np.random.default_rng(seed)
    scale = environment.problem.scale
    for replicas, rows in ((REPLICAS, ROWS), (1, 0), (1, 1)):
        world = environment.reset(replicas, rng)
        context = environment.contexts(world, rows, rng)
        sizes = (replicas, rows, environment.problem.context_width)
        rules.shape(context, "R, n, D", sizes, "contexts")
        action = environment.problem.space.uniform((replicas, rows), rng)
        reward = environment.reward(world, context, action, rng)
        for name, values in (
            ("reward", reward),
            ("mean_reward", environment.mean_reward(world, context, action)),
            ("best_reward", environment.best_reward(world, context)),
        ):
            rules.shape(values, "R, n", (replicas, rows), name)
            rules.require(values.dtype == np.float64, f"{name} must be of type float64")
            rules.require(np.all(np.isfinite(values)), f"{name} must be finite")
        rules.require(np.all(scale.contains(reward)), f"rewards must be those of {scale}")


def _met(rules: Rules, seed: int, rows: int) -> tuple[np.random.Generator, Any, Floats]:
    rng = np.random.default_rng(seed)
    world = rules.subject.reset(REPLICAS, rng)
    return rng, world, rules.subject.contexts(world, rows, rng)


def _means(rules: Rules, seed: int) -> None:
    environment, (rng, world, context) = rules.subject, _met(rules, seed, 1)
    context = np.repeat(context, DRAWS, axis=1)
    for one in rng.permutation(_some_actions(environment.problem.space, rng))[:ACTIONS_DRAWN]:
        action = np.tile(one, (REPLICAS, DRAWS, 1))
        mean = environment.mean_reward(world, context, action)
        reward = environment.reward(world, context, action, rng)
        surprise = np.abs(np.sum(reward - mean, axis=1))
        rule = (
            f"the average of {DRAWS} rewards of action {one.tolist()} must be near mean_reward; "
            "this is the distance of the average, and what chance allows"
        )
        rules.at_most(surprise / DRAWS, _allowed(rules, mean, reward) / DRAWS, rule)


def _allowed(rules: Rules, mean: Floats, reward: Floats) -> Floats:
    """Bernstein's bound on the sum of reward − mean where rewards are bounded.

    Where they are not, eight standard errors: tails are fatter than those of a normal.
    """
    scale = rules.subject.problem.scale
    if scale.bounds is None:
        return 8 * reward.std(axis=1, ddof=1) * np.sqrt(DRAWS) + 1e-9
    low, high = scale.bounds
    rule = f"mean_reward must lie within the rewards of {scale}"
    rules.at_most(low - ROUNDING_OF_MEANS, mean, rule)
    rules.at_most(mean, high + ROUNDING_OF_MEANS, rule)
    mean = np.clip(mean, low, high)
    variance = np.sum((mean - low) * (high - mean), axis=1)
    effort = np.log(2 / FALSE_ALARM)
    reach = (high - low) / 3 * effort
    return reach + np.sqrt(reach**2 + 2 * effort * variance)


def _outcome(rules: Rules, seed: int) -> None:
    environment, (rng, world, context) = rules.subject, _met(rules, seed, ROWS)
    action = environment.problem.space.uniform((REPLICAS, ROWS), rng)
    both = environment.outcome(world, context, action, np.random.default_rng(seed))
    reward = environment.reward(world, context, action, np.random.default_rng(seed))
    expected = (reward, environment.mean_reward(world, context, action))
    rules.close(both, expected, "outcome must be what reward and mean_reward give", rtol=0, atol=0)


def _best(rules: Rules, seed: int) -> None:
    environment, (_, world, contexts) = rules.subject, _met(rules, seed, ROWS)
    for context in np.split(contexts, ROWS, axis=1):
        means = _listed_means(environment, world, context)
        eligible = environment.eligible(0)
        if eligible is not None:
            means = means[:, environment.problem.space.indices_of(eligible)]
        best = environment.best_reward(world, context)
        rules.at_most(means, best + 1e-9, "no action may be better than best_reward")
        if _listable(environment.problem.space):
            rule, highest = "some action must earn best_reward", means.max(axis=1, keepdims=True)
            rules.close(highest, best, rule, rtol=0, atol=1e-9)


def _regret(rules: Rules, seed: int) -> None:
    environment, (rng, world, context) = rules.subject, _met(rules, seed, 1)
    actions = _some_actions(environment.problem.space, rng)
    own = type(environment).regret is not Environment.regret
    if not own:
        # It is the distance to best_reward, which was compared with the rewards of all actions.
        actions = rng.permutation(actions)[:ACTIONS_DRAWN]
    for number, eligible in enumerate(map(environment.eligible, range(len(actions)))):
        if eligible is not None:
            actions[number] = [rng.choice(slot) for slot in eligible]
    tiled = np.repeat(context, len(actions), axis=1)
    regret = environment.regret(world, tiled, np.tile(actions, (REPLICAS, 1, 1)))
    rules.shape(regret, "R, n", (REPLICAS, len(actions)), "regret")
    rules.at_most(np.zeros(1), regret + 1e-9, "regret must not be negative")
    if own and _listable(environment.problem.space):
        rule = "some action must have no regret"
        rules.at_most(regret.min(axis=1), np.full(REPLICAS, 1e-9), rule)


def _worlds(rules: Rules, seed: int) -> None:
    """Replicas may share a truth, as those of a data set do, but not all that they meet."""
    met = []
    for _ in range(2):
        _, world, contexts = _met(rules, seed, ROWS)
        # Contexts of every replica, and the mean of every action in the first of them.
        means = _listed_means(rules.subject, world, contexts[:, :1])
        met.append(np.concatenate([contexts.reshape(REPLICAS, -1), means], axis=1))
    same = np.array_equal(met[0], met[1])
    rules.require(same, "the same seed must give the same world and contexts")
    rule = "different replicas must not all meet the same contexts and mean rewards, unless shared"
    rules.require(rules.subject.shared or np.any(met[0] != met[0][0]), f"{rule} is True")


def _drift(rules: Rules, seed: int) -> None:
    """Only an environment that drifts may change its mean rewards as decisions are taken."""
    environment, (rng, world, context) = rules.subject, _met(rules, seed, 1)
    before = _listed_means(environment, world, context)
    for _ in range(2):
        world = environment.advance(world, 1, rng)
    if not environment.drifts:
        rule = "it says that it does not drift, and its mean rewards change: let drifts be true"
        after = _listed_means(environment, world, context)
        rules.close(after, before, rule, rtol=0, atol=0)


def _listed_means(environment: Environment[Any], world: Any, context: Floats) -> Floats:
    """Mean reward of every action that can be listed, in the one context of each replica."""
    actions = _some_actions(environment.problem.space, np.random.default_rng(0))
    tiled = np.repeat(context, len(actions), axis=1)
    return environment.mean_reward(world, tiled, np.tile(actions, (REPLICAS, 1, 1)))


def _some_actions(space: Space, rng: np.random.Generator) -> Actions:
    """All actions where they can be listed, else many of them: ``[M, S]``."""
    return space.listing() if _listable(space) else space.uniform((ACTIONS_LISTED,), rng)


def _listable(space: Space) -> bool:
    return not space.reals and space.size <= ACTIONS_LISTED


def check_delay(delay: Delay) -> None:
    """Raise an AssertionError where ``delay`` breaks its contract."""
    rules, length = Rules(delay), delay.length
    rules.require(length >= 0, "length must be 0 or more")
    for observations in sorted({1, 2, 7, max(length, 1), length + 1, 3 * length + 2}):
        steps = list(delay.schedule(observations))
        decided, received = np.cumsum(steps, axis=0).T
        rule = "every step must take at least one decision and give back no fewer than 0 rewards"
        rules.require(np.all(np.array(steps) >= (1, 0)), rule)
        rule = "the decisions must add up to the observations"
        rules.require(decided[-1] == observations, rule)
        rule = "no reward may come back before its decision is taken"
        rules.require(np.all(received <= decided), rule)
        same = steps == list(delay.schedule(observations))
        rules.require(same, "the schedule must be the same twice")
