import warnings
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import raises_code

from submax import (
    BatchedRewards,
    Bernoulli,
    Combinatorial,
    ContextIgnoredWarning,
    Contextual,
    DriftingContextual,
    Geometric,
    Lag,
    make_policy,
    simulate,
)
from submax.core.environment import Environment, Outcome
from submax.core.policy import Policy, WrapperPolicy
from submax.core.problem import ChosenActions, Problem
from submax.core.rewards import Counts
from submax.core.spaces import Arms
from submax.policies.epsilon_greedy import Random
from submax.policies.thompson import Thompson
from submax.simulation.trace import Trace
from submax.testing.assertions import goodness_of_fit

DELAYS = [BatchedRewards(1), BatchedRewards(7), BatchedRewards(100), Lag(0), Lag(5), Lag(100)]


@dataclass(frozen=True)
class Watched(Bernoulli):
    """Bernoulli arms that remember every world they drew."""

    worlds: list = field(default_factory=list)

    def reset(self, replicas, rng):
        self.worlds.append(super().reset(replicas, rng))
        return self.worlds[-1]


@dataclass(frozen=True)
class Numbered(Environment):
    """Contexts that number the decisions, and rewards that tell the number."""

    @property
    def problem(self):
        return Problem(Arms(3), context_width=1, scale=Counts())

    def reset(self, replicas, rng):
        return {"replicas": replicas, "taken": 0}

    def contexts(self, world, count, rng):
        number = np.arange(world["taken"], world["taken"] + count, dtype=np.float64)
        world["taken"] += count
        return np.tile(number[:, None], (world["replicas"], 1, 1))

    def mean_reward(self, world, context, action):
        return context[..., 0]

    def reward(self, world, context, action, rng):
        return context[..., 0]

    def best_reward(self, world, context):
        return context[..., 0] + 1


class SpyState(NamedTuple):
    problem: Problem
    received: int


@dataclass(frozen=True)
class Spy(Policy):
    """Takes arm = number mod 3, and writes down what it receives and what it knew when deciding."""

    received: list = field(default_factory=list)
    known: list = field(default_factory=list)
    recorded: list = field(default_factory=list)

    def init(self, problem, replicas, rng):
        return SpyState(problem, 0)

    def act(self, state, context, rng):
        self.known.extend([state.received] * context.shape[1])
        return ChosenActions((context % 3).astype(np.int64), -context[..., 0])

    def log_prob(self, state, context, action):
        return -context[..., 0]

    def record(self, state, action):
        self.recorded.extend(action[0, :, 0].tolist())
        return state

    def update(self, state, feedback, rng):
        self.received.append(feedback)
        return state._replace(received=state.received + feedback.reward.shape[1])


def run(policy, environment=None, **settings):
    given = {"observations": 60, "replicas": 4, "points": None, **settings}
    return simulate(environment or Bernoulli(3), policy, **given)


def known(delay, observations):
    """How many rewards are back at each decision, and in the end."""
    found, back = [], 0
    for decide, receive in delay.schedule(observations):
        found += [back] * decide
        back += receive
    return found, back


@pytest.mark.parametrize("delay", DELAYS, ids=repr)
@pytest.mark.parametrize("name", ["random", "rcp-submax", "ucb1-pending"])
def test_reward_and_regret_are_those_of_the_actions(name, delay, seed):
    environment = Watched(4)
    trace = run(make_policy(name), environment, delay=delay, seed=seed)
    assert trace.steps.tolist() == list(range(1, 61))
    (world,) = environment.worlds
    for replica in range(4):
        reward, regret = 0.0, 0.0
        for decision in range(60):
            arm = trace.actions[replica, decision, 0]
            reward += trace.rewards[replica, decision]
            regret += world[replica].max() - world[replica, arm]
            assert trace.accumulated_reward[replica, decision] == reward
            assert np.isclose(trace.accumulated_regret[replica, decision], regret)


@pytest.mark.parametrize("delay", DELAYS, ids=repr)
def test_rewards_come_back_first_in_first_out_with_all_that_belongs_to_them(delay):
    spy = Spy()
    run(spy, Numbered(), delay=delay)
    numbers = np.concatenate([one.reward for one in spy.received] or [np.empty((4, 0))], 1)
    assert np.array_equal(numbers, np.tile(np.arange(numbers.shape[1]), (4, 1)))
    # At its decision the policy knew what had come back before.
    assert spy.known == known(delay, 60)[0]
    for feedback in spy.received:
        feedback.check(Numbered().problem)
        assert np.array_equal(feedback.context[..., 0], feedback.reward)
        assert np.array_equal(feedback.action[..., 0], feedback.reward % 3)
        assert np.array_equal(feedback.log_prob, -feedback.reward)
        assert np.all(feedback.weight == 1)
    assert spy.recorded == [number % 3 for number in range(60)]


@pytest.mark.parametrize("points", [1, 7, 59, 60, 500])
def test_thinning_keeps_the_exact_values(points, seed):
    settings = {"delay": BatchedRewards(8), "seed": seed}
    full, thin = (run(Thompson(), points=kept, **settings) for kept in (None, points))
    kept = thin.steps - 1
    assert len(kept) == min(points, 60)
    assert thin.steps[-1] == 60
    gaps = np.diff(thin.steps, prepend=0)
    assert gaps.min() >= 1
    assert gaps.max() - gaps.min() <= 1
    assert np.array_equal(thin.actions, full.actions[:, kept])
    assert np.array_equal(thin.rewards, full.rewards[:, kept])
    assert np.array_equal(thin.accumulated_reward, full.accumulated_reward[:, kept])
    assert np.allclose(thin.accumulated_regret, full.accumulated_regret[:, kept], rtol=1e-12)


@dataclass(frozen=True)
class Outside(Random):
    action: tuple

    def act(self, state, context, rng):
        return ChosenActions(np.tile(np.array(self.action), (*context.shape[:2], 1)), None)


@pytest.mark.parametrize("action", [(2,), (-1,), (0.0,), (0, 0)])
def test_a_policy_that_chooses_what_does_not_exist_is_refused(action):
    with raises_code("invalid-input", "policy"):
        run(Outside(action), Bernoulli(2))


@dataclass(frozen=True)
class PaysWrongly(Bernoulli):
    """A reward that the scale does not contain, in every tenth decision or so."""

    wrong: float = 3.0

    def outcome(self, world, context, action, rng):
        reward, mean = Bernoulli.outcome(self, world, context, action, rng)
        return Outcome(np.where(rng.random(reward.shape) < 0.1, self.wrong, reward), mean)


@pytest.mark.parametrize("wrong", [3.0, np.nan])
@pytest.mark.parametrize("delay", [BatchedRewards(1), BatchedRewards(7)], ids=repr)
def test_an_environment_that_pays_what_it_does_not_declare_is_refused(wrong, delay):
    with raises_code("invalid-input", "environment"):
        run(Thompson(), PaysWrongly(3, wrong=wrong), observations=150, delay=delay)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("observations", 0),
        ("observations", 10.5),
        ("replicas", "2"),
        ("points", False),
        ("policy", "random"),
        ("seed", None),
        ("seed", -1),
        ("seed", (1, -2)),
    ],
)
def test_bad_settings_are_refused(name, value):
    with raises_code("invalid-input", name):
        run(**{"policy": Random(), name: value})


@pytest.mark.parametrize("environment", [Contextual(3, 2), DriftingContextual(3, 2)])
def test_a_policy_that_ignores_the_context_is_warned_about(environment):
    with pytest.warns(ContextIgnoredWarning):
        run(Thompson(), environment)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(Random(), environment)


@pytest.mark.parametrize("delay", [BatchedRewards(1), BatchedRewards(31), Lag(5)], ids=repr)
def test_progress_is_called_with_every_decision(delay):
    taken = []
    reported = run(Random(), delay=delay, progress=taken.append)
    assert sum(taken) == 60 * 4
    assert min(taken) > 0
    assert np.array_equal(run(Random(), delay=delay).actions, reported.actions)


# When rewards come back: after a batch, after a lag, or after delays that are drawn


@given(st.integers(1, 60), st.integers(0, 60))
def test_full_batches_come_back_and_every_reward_after_its_lag(observations, steps):
    *expected, last = [max(decision - steps, 0) for decision in range(observations + 1)]
    assert known(Lag(steps), observations) == (expected, last)
    size = max(steps, 1)
    *expected, last = [decision // size * size for decision in range(observations + 1)]
    assert known(BatchedRewards(size), observations) == (expected, last)


@dataclass(frozen=True)
class Noted(WrapperPolicy):
    """Another policy, with the decisions and the weights that come back written down."""

    policy: object
    decided: list = field(default_factory=list)
    back: list = field(default_factory=list)

    def record(self, state, action=None, *, upcoming=None):
        self.decided.append(action[:, 0, 0])
        return self.policy.record(state, action)

    def update(self, state, feedback, rng):
        self.back.append((len(self.decided), feedback))
        return self.policy.update(state, feedback, rng)


@pytest.mark.parametrize("delay", [Geometric(0.0), Lag(0)], ids=repr)
@pytest.mark.parametrize("name", ["thompson-1-1", "rcp-submax", "ucb1-pending"])
def test_without_a_delay_it_is_the_simulation_of_single_decisions(delay, name, seed):
    policy = make_policy(name)
    found = run(policy, delay=delay, seed=seed)
    assert np.array_equal(found.actions, run(policy, seed=seed).actions)


def test_every_reward_comes_back_once_and_after_its_decision(seed):
    policy = Noted(make_policy("random"))
    trace = run(policy, delay=Geometric(5.0), seed=seed, observations=200)
    for now, feedback in policy.back:
        assert now <= 200
        assert set(np.unique(feedback.weight)) <= {0.0, 1.0}
        assert (feedback.weight.sum(axis=0) > 0).all()
    total = sum(feedback.weight.sum(axis=1) for _, feedback in policy.back)
    # A reward is still out at the end with the tail probability of a geometric distribution.
    assert (total <= 200).all()
    assert total.mean() > 150
    paid = sum((feedback.weight * feedback.reward).sum(axis=1) for _, feedback in policy.back)
    assert (paid <= trace.final_reward + 1e-9).all()


def test_geometric_delays_have_their_distribution(seed):
    rng = np.random.default_rng(seed)
    waits = Geometric(3.0).waits(20000, rng)
    shares = 0.25 * 0.75 ** np.arange(30)
    table = np.append(shares, 1 - shares.sum())
    assert goodness_of_fit(np.minimum(waits, 30), table) > 1e-9


def test_rewards_that_are_missing_forever_are_never_learned(seed):
    policy = Noted(make_policy("thompson-1-1"))
    run(policy, delay=Geometric(1.0, missing=1.0), seed=seed)
    assert policy.back == []


# Traces as files and tables


@pytest.fixture(scope="module")
def trace():
    return run(make_policy("epsilon-greedy-0.2"), Bernoulli.of([0.8, 0.5, 0.2]), observations=100)


def test_a_saved_trace_is_loaded_as_it_was(trace, tmp_path):
    trace.save(tmp_path / "trace.npz")
    for one, two in zip(trace, Trace.load(tmp_path / "trace.npz"), strict=True):
        assert np.array_equal(one, two)
        assert one.dtype == two.dtype
    (tmp_path / "other.npz").write_bytes(b"no trace")
    with raises_code("invalid-input"):
        Trace.load(tmp_path / "other.npz")


def test_a_table_of_pandas_has_every_number(trace):
    table = trace.to_pandas()
    assert len(table) == 400
    row = table[(table["replica"] == 2) & (table["step"] == 37)].iloc[0]
    assert row["action"] == trace.actions[2, 36, 0]
    assert row["accumulated_regret"] == trace.accumulated_regret[2, 36]
    policy = make_policy("random")
    slots = simulate(Combinatorial((2, 3), dimension=2), policy, observations=4, replicas=2)
    assert {"action_0", "action_1"} <= set(slots.to_pandas().columns)


def test_a_data_set_of_xarray_has_the_numbers_of_the_trace(trace):
    pytest.importorskip("xarray")
    found = trace.to_xarray()
    assert dict(found.sizes) == {"replica": 4, "step": 100, "slot": 1}
    one = found.sel(replica=2, step=37)
    assert float(one.accumulated_regret) == trace.accumulated_regret[2, 36]
    assert float(one.accumulated_reward) == trace.accumulated_reward[2, 36]
    assert float(one.reward) == trace.rewards[2, 36]
    assert int(one.action.item()) == trace.actions[2, 36, 0]
    mean = found.accumulated_regret.mean("replica").values
    np.testing.assert_allclose(mean, trace.accumulated_regret.mean(axis=0))
