"""Conformance suites of environments, delays and reward scales."""

from typing import Any

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.environment import Environment
from submax.core.problem import Feedback
from submax.core.rewards import RewardEncoding, Scale
from submax.core.spaces import Space
from submax.simulation.delays import Delay, Step
from submax.simulation.simulate import Pending
from submax.testing.assertions import (
    on_problem,
    require,
    require_at_most,
    require_close,
    require_equal_copy,
    require_instance,
    require_shape,
)
from submax.testing.problems import some_rewards

REPLICAS = 4
ROWS = 3
DRAWS = 1000
ACTIONS_DRAWN = 16
ACTIONS_LISTED = 2**16
LATER = 2
"""Decisions after which the mean rewards of an environment that does not drift are compared."""
ROUNDING_OF_MEANS = 1e-9
"""How far a mean reward may lie beyond the bounds of rewards, because sums are rounded."""
FALSE_ALARM = 1e-9
"""The chance that a right environment fails the comparison of one mean."""


def check_environment(environment: Environment[Any], seed: int = 0) -> None:
    """Raise an AssertionError if ``environment`` breaks its contract."""
    require_instance(environment, Environment)
    _check_record(environment)
    with on_problem(environment, environment.problem):
        _check_shapes(environment, seed)
        _check_means(environment, seed)
        _check_outcome(environment, seed)
        _check_best(environment, seed)
        _check_regret(environment, seed)
        _check_worlds(environment, seed)
        _check_drift(environment, seed)


def _check_record(environment: Environment[Any]) -> None:
    require_equal_copy(environment)
    most = environment.most_decisions
    allowed = most is None or (isinstance(most, int) and most >= 1)
    require(allowed, environment, "most_decisions must be None or at least 1")


def _check_shapes(environment: Environment[Any], seed: int) -> None:
    rng = np.random.default_rng(seed)
    space, scale = environment.problem.space, environment.problem.scale
    for replicas, rows in ((REPLICAS, ROWS), (1, 0), (1, 1)):
        world = environment.reset(replicas, rng)
        context = environment.contexts(world, rows, rng)
        expected = (replicas, rows, environment.problem.context_width)
        require_shape(context, "R n D", expected, environment, "contexts")
        action = space.uniform((replicas, rows), rng)
        reward = environment.reward(world, context, action, rng)
        for name, values in (
            ("reward", reward),
            ("mean_reward", environment.mean_reward(world, context, action)),
            ("best_reward", environment.best_reward(world, context)),
        ):
            require_shape(values, "R n", (replicas, rows), environment, name)
            require(values.dtype == np.float64, environment, f"{name} must be of type float64")
            require(np.all(np.isfinite(values)), environment, f"{name} must be finite")
        require(np.all(scale.contains(reward)), environment, f"rewards must be those of {scale}")


def _met(environment: Environment[Any], seed: int, rows: int) -> tuple[Any, Any, Floats]:
    """Return the generator, the world, and contexts of every replica."""
    rng = np.random.default_rng(seed)
    world = environment.reset(REPLICAS, rng)
    return rng, world, environment.contexts(world, rows, rng)


def _check_means(environment: Environment[Any], seed: int) -> None:
    """Compare the average of many draws with the mean, action by action."""
    rng, world, context = _met(environment, seed, 1)
    context = np.repeat(context, DRAWS, axis=1)
    for one in rng.permutation(_some_actions(environment.problem.space, rng))[:ACTIONS_DRAWN]:
        action = np.tile(one, (REPLICAS, DRAWS, 1))
        mean = environment.mean_reward(world, context, action)
        reward = environment.reward(world, context, action, rng)
        surprise = np.abs(np.sum(reward - mean, axis=1))
        allowed = _allowed(environment, mean, reward)
        rule = (
            f"the average of {DRAWS} rewards of action {one.tolist()} must be near mean_reward; "
            "this is the distance of the average, and what chance allows"
        )
        require_at_most(surprise / DRAWS, allowed / DRAWS, environment, rule)


def _check_outcome(environment: Environment[Any], seed: int) -> None:
    rng, world, context = _met(environment, seed, ROWS)
    action = environment.problem.space.uniform((REPLICAS, ROWS), rng)
    both = environment.outcome(world, context, action, np.random.default_rng(seed))
    reward = environment.reward(world, context, action, np.random.default_rng(seed))
    mean = environment.mean_reward(world, context, action)
    rule = "outcome must be what reward and mean_reward give"
    require_close(both.reward, reward, environment, rule, rtol=0, atol=0)
    require_close(both.mean, mean, environment, rule, rtol=0, atol=0)


def _allowed(environment: Environment[Any], mean: Floats, reward: Floats) -> Floats:
    """Bernstein's bound on the sum of reward − mean where rewards are bounded.

    Where they are not, eight standard errors: tails are fatter than those of a normal.
    """
    bounds = environment.problem.scale.bounds
    if bounds is None:
        return 8 * reward.std(axis=1, ddof=1) * np.sqrt(DRAWS) + 1e-9
    low, high = bounds
    rule = f"mean_reward must lie within the rewards of {environment.problem.scale}"
    require_at_most(low - ROUNDING_OF_MEANS, mean, environment, rule)
    require_at_most(mean, high + ROUNDING_OF_MEANS, environment, rule)
    mean = np.clip(mean, low, high)
    variance = np.sum((mean - low) * (high - mean), axis=1)
    effort = np.log(2 / FALSE_ALARM)
    reach = (high - low) / 3 * effort
    return reach + np.sqrt(reach**2 + 2 * effort * variance)


def _check_best(environment: Environment[Any], seed: int) -> None:
    _, world, contexts = _met(environment, seed, ROWS)
    for context in np.split(contexts, ROWS, axis=1):
        means = _listed_means(environment, world, context)
        eligible = environment.eligible(0)
        if eligible is not None:
            means = means[:, environment.problem.space.indices_of(eligible)]
        best = environment.best_reward(world, context)
        rule = "no action may be better than best_reward"
        require_at_most(means, best + 1e-9, environment, rule)
        if _listable(environment.problem.space):
            rule, highest = "some action must earn best_reward", means.max(axis=1, keepdims=True)
            require_close(highest, best, environment, rule, rtol=0, atol=1e-9)


def _check_regret(environment: Environment[Any], seed: int) -> None:
    rng, world, context = _met(environment, seed, 1)
    actions = _some_actions(environment.problem.space, rng)
    own = type(environment).regret is not Environment.regret
    if not own:
        # It is the distance to best_reward, which was compared with the rewards of all actions.
        actions = rng.permutation(actions)[:ACTIONS_DRAWN]
    for number in range(len(actions)):
        eligible = environment.eligible(number)
        if eligible is not None:
            actions[number] = [rng.choice(slot) for slot in eligible]
    tiled = np.repeat(context, len(actions), axis=1)
    regret = environment.regret(world, tiled, np.tile(actions, (REPLICAS, 1, 1)))
    require_shape(regret, "R n", (REPLICAS, len(actions)), environment, "regret")
    require_at_most(np.zeros(1), regret + 1e-9, environment, "regret must not be negative")
    if own and _listable(environment.problem.space):
        rule = "some action must have no regret"
        require_at_most(regret.min(axis=1), np.full(REPLICAS, 1e-9), environment, rule)


def _check_worlds(environment: Environment[Any], seed: int) -> None:
    """Replicas may share a truth, as those of a data set do, but not all that they meet."""
    met = []
    for _ in range(2):
        _, world, contexts = _met(environment, seed, ROWS)
        # Contexts of every replica, and the mean of every action in the first of them.
        means = _listed_means(environment, world, contexts[:, :1])
        met.append(np.concatenate([contexts.reshape(REPLICAS, -1), means], axis=1))
    rule = "the same seed must give the same world and contexts"
    require(np.array_equal(met[0], met[1]), environment, rule)
    rule = "different replicas must not all meet the same contexts and mean rewards, unless shared"
    differ = environment.shared or np.any(met[0] != met[0][0])
    require(differ, environment, f"{rule} is True")


def _check_drift(environment: Environment[Any], seed: int) -> None:
    """Only an environment that drifts may change its mean rewards as decisions are taken."""
    rng, world, context = _met(environment, seed, 1)
    before = _listed_means(environment, world, context)
    for _ in range(LATER):
        world = environment.advance(world, 1, rng)
    if not environment.drifts:
        rule = "it says that it does not drift, and its mean rewards change: let drifts be true"
        after = _listed_means(environment, world, context)
        require_close(after, before, environment, rule, rtol=0, atol=0)


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
    require(delay.length >= 0, delay, "length must be 0 or more")
    for observations in sorted({1, 2, 7, delay.length, delay.length + 1, 3 * delay.length + 2}):
        if observations > 0:
            _check_amounts(delay, observations)
            _check_order(delay, observations)


def _check_amounts(delay: Delay, observations: int) -> None:
    steps = list(delay.schedule(observations))
    decided = np.cumsum([step.decide for step in steps])
    received = np.cumsum([step.receive for step in steps])
    require(
        all(step.decide >= 1 and step.receive >= 0 for step in steps),
        delay,
        "every step must take at least one decision and give back no fewer than 0 rewards",
    )
    require(decided[-1] == observations, delay, "the decisions must add up to the observations")
    require(
        np.all(received <= decided), delay, "no reward may come back before its decision is taken"
    )
    require(
        steps == list(delay.schedule(observations)), delay, "the schedule must be the same twice"
    )


def _check_order(delay: Delay, observations: int) -> None:
    pending, taken, back = Pending(), 0, []
    for step in delay.schedule(observations):
        pending.put(_numbered(taken, step))
        taken += step.decide
        if step.receive:
            feedback = pending.take(step.receive)
            assert feedback is not None
            back.extend(feedback.reward[0].tolist())
    require(back == list(range(len(back))), delay, "rewards must come back first in, first out")


def _numbered(first: int, step: Step) -> Feedback:
    reward = np.arange(first, first + step.decide, dtype=np.float64)[None]
    shape = reward.shape
    nothing = np.zeros((*shape, 0))
    return Feedback(nothing, np.zeros((*shape, 1), np.int64), reward, None, np.ones(shape))


SCALE_REPLICAS, SCALE_ROWS = 4, 30


def check_scale(scale: Scale, seed: int = 0) -> None:
    """Raise an AssertionError where ``scale`` breaks its contract."""
    require_instance(scale, Scale)
    require_equal_copy(scale)
    require(scale.levels >= 2, scale, "there must be two levels or more")
    rng = np.random.default_rng(seed)
    reward = some_rewards(scale, (SCALE_REPLICAS, SCALE_ROWS), rng)
    require(np.all(scale.contains(reward)), scale, "it must contain its own rewards")
    strange = np.array([np.nan, np.inf, -np.inf])
    require(not scale.contains(strange).any(), scale, "it must contain finite numbers alone")
    for rows in (0, 1, SCALE_ROWS):
        _check_encoding(scale, reward[:, :rows])
    _check_absence(scale, reward, rng)
    for levels in (2, 3, 7):
        asked = scale.with_levels(levels)
        require(
            2 <= asked.levels <= levels, scale, "with_levels must give this many levels, or fewer"
        )
        _check_encoding(asked, reward)


def _check_encoding(scale: Scale, reward: Floats) -> None:
    encoding = _encoding(scale, reward)
    shapes = (encoding.levels.shape[1], encoding.bin_edges.shape[1])
    require(
        shapes == (scale.levels, scale.width),
        scale,
        "an encoding must have its levels and bin edges",
    )
    for places in encoding:
        require(np.all(np.isfinite(places)), scale, "levels and bin edges must be finite")
        require(np.all(np.diff(places, axis=1) >= 0), scale, "levels and bin edges must rise")
    encoded = encoding.encoded(encoding.levels)
    require(np.allclose(encoded.sum(axis=-1), 1), scale, "an encoded reward must sum to one")
    apart = encoding.levels[:, 0] < encoding.levels[:, -1]
    encoded_apart = (encoded[:, 0] != encoded[:, -1]).any(axis=-1)
    require(
        np.array_equal(apart, encoded_apart), scale, "different levels must be encoded differently"
    )
    if scale.moves and reward.shape[1]:
        varied = reward.min(axis=1) < reward.max(axis=1)
        rule = "the first and the last level must differ where two rewards do"
        require(np.array_equal(apart, varied), scale, rule)
        seen = [np.unique(row) for row in encoding.nearest(reward)]
        ends = all({0, scale.levels - 1} <= set(row) for row in np.array(seen, object)[varied])
        require(ends, scale, "the first and the last level must both have been observed")


def _check_absence(scale: Scale, reward: Floats, rng: np.random.Generator) -> None:
    """Rows of weight 0, the order of rows and other replicas must not matter."""
    expected = _encoding(scale, reward)
    absent = np.concatenate([reward, np.full_like(reward, np.nan)], axis=1)
    weight = np.concatenate([np.ones_like(reward), np.zeros_like(reward)], axis=1)
    found = scale.reward_encoding(absent, weight)
    require(_same(found, expected), scale, "rows of weight 0 must change nothing")
    shuffled = _encoding(scale, reward[:, rng.permutation(SCALE_ROWS)])
    require(_same(shuffled, expected), scale, "the order of rewards must not matter")
    changed = reward.copy()
    changed[0] = changed[0, 0]
    others = RewardEncoding(*(part[1:] for part in _encoding(scale, changed)))
    rule = "the rewards of one replica must not reach another"
    require(_same(others, RewardEncoding(*(part[1:] for part in expected))), scale, rule)


def _encoding(scale: Scale, reward: Floats) -> RewardEncoding:
    return scale.reward_encoding(reward, np.ones_like(reward))


def _same(one: RewardEncoding, other: RewardEncoding) -> bool:
    return np.array_equal(one.levels, other.levels) and np.array_equal(
        one.bin_edges, other.bin_edges
    )
