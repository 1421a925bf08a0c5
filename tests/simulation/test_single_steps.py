"""Single decisions by steppers, and the checks that are made for many of them together."""

from dataclasses import dataclass

import numpy as np
import pytest
from refusals import raises_code

from submax.core.contracts.look_ahead_stepper import MOST_REPLICAS, LookAheadStepper
from submax.core.contracts.success_draws import SuccessDraws
from submax.core.contracts.wrapper_policy import WrapperPolicy
from submax.environments.arms.bernoulli import Bernoulli
from submax.environments.networks.contextual import Contextual
from submax.environments.networks.drifting_contextual import DriftingContextual
from submax.policies import make_policy
from submax.policies.classic.thompson import Thompson
from submax.policies.steppers.submax_stepper import SubMaxStepper
from submax.policies.steppers.thompson_stepper import ThompsonStepper
from submax.policies.steppers.tracking_stepper import TrackingStepper
from submax.simulation.lag import Lag
from submax.simulation.running.single_steps import stepper_of
from submax.simulation.running.timed import Timed
from submax.simulation.simulate import simulate

STEPPING = ("thompson-1-9", "rcp-submax", "ucb1", "kl-ucb", "moss", "epsilon-greedy-0.1")


@dataclass(frozen=True)
class WithoutStepper(WrapperPolicy):
    policy: object = None

    def stepper(self, problem, replicas, rng):
        return None


@dataclass(frozen=True)
class Doubtful(Thompson):
    """Overrides ``update``, so that the inherited stepper would learn something else."""

    def update(self, state, feedback, rng):
        return state


def trace_of(policy, environment=None, **settings):
    given = {"observations": 150, "replicas": 5, "seed": 4, "points": None, **settings}
    return simulate(environment or Bernoulli(6, 1, 4), policy, **given)


@pytest.mark.parametrize("name", STEPPING)
@pytest.mark.parametrize("replicas", [1, 5])
def test_steps_are_the_decisions_of_the_contract_to_the_last_bit(name, replicas, seed):
    policy = make_policy(name)
    assert stepper_of(policy, Bernoulli(3).problem, 2, np.random.default_rng(0)) is not None
    fast = trace_of(policy, replicas=replicas, seed=seed)
    for other in (WithoutStepper(policy), Timed(policy)):
        slow = trace_of(other, replicas=replicas, seed=seed)
        for one, two in zip(fast, slow, strict=True):
            assert np.array_equal(one, two)
    again = trace_of(policy, replicas=replicas, seed=seed, delay=Lag(0))
    assert np.array_equal(again.actions, fast.actions)


def test_a_subclass_that_learns_differently_does_not_use_the_inherited_stepper():
    problem = Bernoulli(3).problem
    assert stepper_of(Doubtful(), problem, 2, np.random.default_rng(0)) is None
    assert stepper_of(Thompson(), Contextual().problem, 2, np.random.default_rng(0)) is None
    assert np.array_equal(
        trace_of(Doubtful()).actions, trace_of(WithoutStepper(Doubtful())).actions
    )


def test_the_time_of_steps_is_measured():
    policy = Timed(make_policy("rcp-submax"))
    trace_of(policy)
    assert policy.deciding > 0
    assert policy.learning > 0


def test_measured_steps_are_taken_in_the_blocks_of_their_stepper(monkeypatch):
    blocks, take = [], ThompsonStepper.take
    monkeypatch.setattr(
        ThompsonStepper, "take", lambda self, *given: blocks.append(1) or take(self, *given)
    )
    policy = Timed(make_policy("thompson-1-1"))
    trace_of(policy)
    assert blocks
    assert policy.deciding > 0


@dataclass(frozen=True)
class PaysTooMuch(Bernoulli):
    """A reward of 3, which the scale does not contain, in every tenth decision or so."""

    def outcome(self, world, context, action, rng):
        reward, mean = Bernoulli.outcome(self, world, context, action, rng)
        return type(Bernoulli.outcome(self, world, context, action, rng))(
            np.where(rng.random(reward.shape) < 0.1, 3.0, reward), mean
        )


@pytest.mark.parametrize("name", ["thompson-1-1", "rcp-optimistic"])
def test_a_reward_outside_the_scale_is_refused_in_single_decisions_too(name):
    with raises_code("invalid-input"):
        trace_of(make_policy(name), PaysTooMuch(3))


def test_a_million_decisions_may_be_written_as_a_float():
    assert trace_of(make_policy("random"), observations=1e2).steps[-1] == 100
    with raises_code("invalid-input", "observations"):
        trace_of(make_policy("random"), observations=1.5)


@pytest.mark.parametrize("environment", [Contextual(3, 2), DriftingContextual(3, 2)])
def test_a_policy_that_ignores_the_context_is_warned_about(environment):
    with pytest.warns(UserWarning, match="Thompson.* does not look at the context of"):
        trace_of(Thompson(), environment, observations=3)
    trace_of(make_policy("random"), environment, observations=3)


@pytest.mark.parametrize(
    ("environment", "replicas"),
    [(Bernoulli(6, 1, 4), 1), (Bernoulli(6, 1, 4), 5), (Bernoulli.of([0.5] * 3), 4)],
)
def test_decisions_that_are_computed_together_are_those_of_single_steps(
    environment, replicas, seed, monkeypatch
):
    """Long enough for blocks of all lengths, and with arms that are guessed wrong for ever."""
    settings = {"observations": 1500, "replicas": replicas, "seed": seed}
    together = []
    learn_all = SubMaxStepper.learn_all
    monkeypatch.setattr(
        SubMaxStepper,
        "learn_all",
        lambda self, index, reward: (together.append(len(index)), learn_all(self, index, reward)),
    )
    fast = trace_of(make_policy("rcp-submax"), environment, **settings)
    assert sum(together) > 500, "most decisions are not computed one by one"
    for other in (WithoutStepper(make_policy("rcp-submax")), Timed(make_policy("rcp-submax"))):
        slow = trace_of(other, environment, **settings)
        for one, two in zip(fast, slow, strict=True):
            assert np.array_equal(one, two)


@pytest.mark.parametrize("policy", [Thompson(), Thompson(2.0, 3.0)])
def test_blocks_of_thompson_sampling_are_its_single_steps(policy, seed):
    """The first block is short enough for a second one, in which all posteriors are known well."""
    settings = {"observations": 1000, "replicas": 100, "seed": seed}
    fast = trace_of(policy, Bernoulli(3), **settings)
    slow = trace_of(WithoutStepper(policy), Bernoulli(3), **settings)
    for one, two in zip(fast, slow, strict=True):
        assert np.array_equal(one, two)


def test_many_replicas_step_one_by_one(monkeypatch):
    monkeypatch.setattr(SubMaxStepper, "replay", None)
    trace = trace_of(make_policy("rcp-submax"), replicas=MOST_REPLICAS + 1, observations=400)
    assert trace.steps[-1] == 400


def test_a_measured_policy_looks_as_far_ahead_as_one_that_is_not(monkeypatch):
    """How far the default looks ahead changes its decisions, within the tolerance of a search."""
    lengths, learn_all = [], TrackingStepper.learn_all
    monkeypatch.setattr(
        TrackingStepper,
        "learn_all",
        lambda self, index, reward: (lengths.append(len(index)), learn_all(self, index, reward)),
    )
    settings = {"observations": 600, "replicas": 2}
    plain = trace_of(make_policy("rcp-adaptive"), **settings)
    expected, lengths[:] = [*lengths], []
    measured = trace_of(Timed(make_policy("rcp-adaptive")), **settings)
    assert lengths == expected != []
    assert np.array_equal(measured.actions, plain.actions)


class Undecided(LookAheadStepper):
    """A stepper whose replays never agree with each other."""

    settled = True

    def __init__(self):
        super().__init__(1)
        self.learned = 0

    def decide(self, uniform):
        return np.zeros(uniform.shape, dtype=np.int64)

    def replay(self, index, reward, uniform, replicas):
        return 1 - index

    def learn(self, index, reward, rng):
        self.learned += 1

    def learn_all(self, index, reward):
        raise AssertionError("no guess was right")


def test_guesses_that_never_settle_are_given_up():
    stepper, rng = Undecided(), np.random.default_rng(0)
    index, _ = stepper.take(SuccessDraws(np.full((1, 2), 0.5), rng.random((100, 1))), rng)
    assert stepper.learned == len(index) == 100
