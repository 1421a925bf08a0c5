import numpy as np
import pytest
from builtin_examples import SCALES, examples, examples_of

from submax import Policy
from submax.core.serialization import read_state, state_bytes
from submax.environments import ENVIRONMENTS
from submax.estimators import ESTIMATORS, Counting
from submax.policies import (
    POLICIES,
    UCB1,
    Adaptive,
    FourierThompson,
    NeuralEpsilonGreedy,
    NeuralUCB,
    PosteriorSlots,
    PosteriorSubMax,
    RewardConditioned,
    SlotBySlot,
    presets,
)
from submax.simulation import DELAYS
from submax.strategies import STRATEGIES
from submax.testing import (
    check_delay,
    check_environment,
    check_estimator,
    check_policy,
    check_strategy,
)
from submax.testing.problems import problems_of, some_contexts, some_feedback, some_rewards

LONG = (FourierThompson, PosteriorSubMax, PosteriorSlots, Adaptive)
EXAMPLES = list(examples_of(POLICIES))
# Presets that train or take long differ from the examples of their class in size alone.
PRESETS = [
    one
    for one in presets().values()
    if one not in EXAMPLES and not (one.traits.trains_models or isinstance(one, LONG))
]


def together(instances):
    """Instances that compile the same programs, in one process; further ones wait for a soak.

    One instance of every class is tested always, and so are those in ``ALWAYS``. Networks that the
    paper does not have are compiled for minutes: theirs is the soak, too, and ``tests/policies``
    trains each of them.
    """
    found, classes = [], set()
    for one in instances:
        trains = one.traits.trains_models
        # All value networks without an estimator are trained by the same programs.
        group = type(one.estimator).__name__ if hasattr(one, "estimator") else "ValueBelief"
        if not isinstance(one, Policy):
            group = type(one).__name__
        marks = [pytest.mark.xdist_group(group)] if trains else []
        long = trains or isinstance(one, LONG)
        marks += [pytest.mark.slow] if long else []
        beyond = trains and isinstance(one, Policy) and not isinstance(one, PAPER)
        if (type(one) in classes or beyond) and one not in ALWAYS:
            marks.append(pytest.mark.soak)
        classes.add(type(one))
        found.append(pytest.param(one, id=repr(one), marks=marks))
    return found


PAPER = (RewardConditioned, SlotBySlot, NeuralEpsilonGreedy, NeuralUCB)
"""Policies of the paper, and two of its neural rivals."""
ALWAYS = [
    *examples(POLICIES, "greedy-regression"),
    UCB1(pending=True),
    Counting(smoothing="fitted"),
    Counting(smoothing="fitted", memory="fitted"),
]
"""Further instances that take other paths than the first of their class: trees, which take no
compilation, an index with pending counts, and counts as the default policy has them."""


@pytest.mark.parametrize("policy", together([*EXAMPLES, *PRESETS]))
def test_policy_keeps_its_contract(policy, seed):
    check_policy(policy, seed)


@pytest.mark.parametrize(
    "policy", together(next(examples(POLICIES, kind)) for kind in POLICIES.homes)
)
def test_a_stored_state_decides_the_same(policy, seed):
    problem = problems_of(policy)[-1]
    state = policy.init(problem, 4, np.random.default_rng(seed))
    feedback = some_feedback(problem, 4, 12, seed)
    state = policy.update(policy.record(state, feedback.action), feedback, np.random.default_rng(1))
    stored = state_bytes(state, {"name": "it"})
    again, facts = read_state(stored)
    assert facts == {"name": "it"}
    assert state_bytes(again, facts) == stored
    context = some_contexts(problem, 4, 3, seed)
    expected, found = (policy.act(one, context, np.random.default_rng(2)) for one in (state, again))
    np.testing.assert_array_equal(found.action, expected.action)
    np.testing.assert_array_equal(
        policy.log_prob(again, context, found.action),
        policy.log_prob(state, context, found.action),
    )


@pytest.mark.parametrize("strategy", list(examples_of(STRATEGIES)), ids=repr)
def test_strategy_keeps_its_contract(strategy, seed):
    check_strategy(strategy, seed)


@pytest.mark.parametrize("estimator", together(examples_of(ESTIMATORS)))
def test_estimator_keeps_its_contract(estimator, seed):
    check_estimator(estimator, seed)


@pytest.mark.parametrize("environment", list(examples_of(ENVIRONMENTS)), ids=repr)
def test_environment_keeps_its_contract(environment, seed):
    check_environment(environment, seed)


@pytest.mark.parametrize("scale", SCALES, ids=repr)
def test_an_encoding_follows_from_the_rewards_of_its_replica_alone(scale, seed):
    rng = np.random.default_rng(seed)
    reward, once = some_rewards(scale, (4, 30), rng), np.ones((4, 30))
    assert scale.contains(reward).all()
    absent = np.concatenate([reward, np.full_like(reward, np.nan)], axis=1)
    changed = reward.copy()
    changed[0] = changed[0, 0]
    expected = scale.reward_encoding(reward, once)
    for found, first in (
        (scale.reward_encoding(absent, np.concatenate([once, 0 * once], axis=1)), 0),
        (scale.reward_encoding(reward[:, rng.permutation(30)], once), 0),
        (scale.reward_encoding(changed, once), 1),
    ):
        for mine, theirs in zip(found, expected, strict=True):
            np.testing.assert_array_equal(mine[first:], theirs[first:])
    for asked in (scale, *map(scale.with_levels, (2, 3, 7))):
        levels, bin_edges = encoding = asked.reward_encoding(reward, once)
        assert (levels.shape, bin_edges.shape) == ((4, asked.levels), (4, asked.width))
        assert np.all(np.diff(levels, axis=1) >= 0)
        np.testing.assert_allclose(encoding.encoded(levels).sum(axis=-1), 1)


@pytest.mark.parametrize("delay", list(examples_of(DELAYS)), ids=repr)
def test_delay_keeps_its_contract(delay):
    check_delay(delay)
