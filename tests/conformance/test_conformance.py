import re

import pytest

from submax.core.contracts.policy import Policy
from submax.core.rewards.binary import Binary
from submax.core.rewards.continuous import Continuous
from submax.core.rewards.counts import Counts
from submax.core.rewards.discrete import Discrete
from submax.environments import ENVIRONMENTS
from submax.estimators import ESTIMATORS
from submax.policies import POLICIES, presets
from submax.policies.adaptive.adaptive import Adaptive
from submax.policies.adaptive.posterior_slots import PosteriorSlots
from submax.policies.adaptive.posterior_submax import PosteriorSubMax
from submax.policies.real_valued.fourier_thompson import FourierThompson
from submax.simulation import DELAYS
from submax.strategies import STRATEGIES
from submax.testing import (
    check_delay,
    check_environment,
    check_estimator,
    check_policy,
    check_scale,
    check_strategy,
)


def examples(folder):
    return [example for kind in folder.classes() for example in kind.examples()]


LONG = (FourierThompson, PosteriorSubMax, PosteriorSlots, Adaptive)


def quick(policy):
    """Not presets that differ from the examples of their class in size alone, and take long."""
    return not (policy.facts.trains_models or isinstance(policy, LONG))


def without_numbers(policy):
    return re.sub(r"\d+(\.\d+)?", "#", repr(policy))


EXAMPLES = examples(POLICIES)
KNOWN = {without_numbers(one) for one in EXAMPLES}
# Presets that differ in a number alone run the same code: one of them is enough.
PRESETS = {
    without_numbers(one): one for one in filter(quick, presets().values()) if one not in EXAMPLES
}
POLICIES_ONCE = [*EXAMPLES, *(one for form, one in PRESETS.items() if form not in KNOWN)]


def together(instances):
    """Instances that compile the same programs, in one process; presets are slow, being many."""
    found = []
    for one in instances:
        trains = one.facts.trains_models
        # All value networks without an estimator are trained by the same programs.
        group = type(one.estimator).__name__ if hasattr(one, "estimator") else "ValueBelief"
        if not isinstance(one, Policy):
            group = type(one).__name__
        marks = [pytest.mark.xdist_group(group)] if trains else []
        preset = isinstance(one, Policy) and one not in EXAMPLES
        marks += [pytest.mark.slow] if preset or trains or isinstance(one, LONG) else []
        found.append(pytest.param(one, id=repr(one), marks=marks))
    return found


@pytest.mark.parametrize("policy", together(POLICIES_ONCE))
def test_policy_keeps_its_contract(policy, seed):
    check_policy(policy, seed)


@pytest.mark.parametrize("strategy", examples(STRATEGIES), ids=repr)
def test_strategy_keeps_its_contract(strategy, seed):
    check_strategy(strategy, seed)


@pytest.mark.parametrize("estimator", together(examples(ESTIMATORS)))
def test_estimator_keeps_its_contract(estimator, seed):
    check_estimator(estimator, seed)


@pytest.mark.parametrize("environment", examples(ENVIRONMENTS), ids=repr)
def test_environment_keeps_its_contract(environment, seed):
    check_environment(environment, seed)


@pytest.mark.parametrize(
    "scale",
    [one for kind in (Binary, Discrete, Continuous, Counts) for one in kind.examples()],
    ids=repr,
)
def test_scale_keeps_its_contract(scale, seed):
    check_scale(scale, seed)


@pytest.mark.parametrize("delay", examples(DELAYS), ids=repr)
def test_delay_keeps_its_contract(delay):
    check_delay(delay)


@pytest.mark.parametrize(
    "folder",
    [POLICIES, STRATEGIES, ESTIMATORS, ENVIRONMENTS, DELAYS],
    ids=lambda folder: folder.word,
)
def test_every_class_of_a_folder_gives_examples_of_itself(folder):
    kinds = list(folder.classes())
    assert kinds
    for kind in kinds:
        instances = list(kind.examples())
        assert instances
        assert all(type(instance) is kind for instance in instances)
