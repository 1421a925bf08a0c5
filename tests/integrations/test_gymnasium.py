import numpy as np
import pytest
from refusals import raises_code

from submax import Bernoulli, Binary, Combinatorial, Contextual, DriftingBernoulli, make_policy
from submax.research import SmoothReward

gymnasium = pytest.importorskip("gymnasium")
from gymnasium.utils.env_checker import check_env  # noqa: E402 - if it is installed

from submax.integrations.gymnasium import BanditEnv, play  # noqa: E402 - the test is skipped first


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "environment",
    [Contextual(3, 2), Combinatorial((2, 3), dimension=2), DriftingBernoulli(3, memory=2.0),
     SmoothReward()],
)  # fmt: skip
def test_gymnasium_accepts_the_environments(environment):
    check_env(BanditEnv(environment, horizon=5), skip_render_check=True)


def test_steps_are_the_draws_of_the_environment(seed):
    environment = Contextual(3, 2)
    env = BanditEnv(environment, horizon=4)
    observation, _ = env.reset(seed=seed)
    # Gymnasium makes its generator from the seed in the same way.
    rng, _ = gymnasium.utils.seeding.np_random(seed)
    world = environment.reset(1, rng)
    context = environment.contexts(world, 1, rng)
    for step in range(4):
        np.testing.assert_array_equal(observation, context[0, 0])
        action = np.full((1, 1, 1), step % 3)
        reward, mean = environment.outcome(world, context, action, rng)
        best = environment.best_reward(world, context)
        observation, got, terminated, truncated, info = env.step(step % 3)
        assert got == reward[0, 0]
        assert info["regret"] == best[0, 0] - mean[0, 0]
        assert (terminated, truncated) == (False, step == 3)
        if step < 3:
            context = environment.contexts(world, 1, rng)


class Light(gymnasium.Env):
    """One step: the light is on or off, and to press the right button pays 1."""

    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.light = int(self.np_random.integers(2))
        return self.light, {}

    def step(self, action):
        return self.light, float(action == self.light), True, False, {}


def test_a_policy_learns_in_an_environment_of_one_step():
    run = play(Light(), make_policy("linucb"), observations=300, scale=Binary(), seed=1)
    assert run.contexts.shape == (300, 2)
    np.testing.assert_array_equal(run.rewards, run.contexts[np.arange(300), run.actions[:, 0]])
    assert run.rewards[-50:].mean() == 1.0


def test_a_policy_plays_an_environment_of_ours():
    env = BanditEnv(Bernoulli.of([0.0, 1.0]), horizon=40)
    run = play(env, make_policy("ucb1"), observations=40, scale=Binary())
    np.testing.assert_array_equal(run.rewards, run.actions[:, 0])


class Two(Light):
    def step(self, action):
        return self.light, 1.0, False, False, {}


@pytest.mark.parametrize(
    ("env", "parameter"), [(Two(), "env"), (Light, "env"), (BanditEnv(SmoothReward()), None)]
)
def test_longer_episodes_classes_and_other_actions_are_refused(env, parameter):
    with raises_code("invalid-input", parameter):
        play(env, make_policy("random"), observations=2)
    run = play(gymnasium.wrappers.TimeLimit(Two(), 1), make_policy("random"), observations=2)
    assert run.rewards.tolist() == [1.0, 1.0]
