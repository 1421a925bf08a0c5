import numpy as np
import pytest

from submax.core.errors import InputError
from submax.environments.arms.few_good import FewGood


def test_so_many_arms_are_good_and_any_may_be():
    chances = FewGood(6, good=2, high=0.4, low=0.1).reset(2000, np.random.default_rng(0))
    good = chances == 0.4
    assert (good.sum(axis=1) == 2).all()
    assert (chances[~good] == 0.1).all()
    # Each arm is good with probability 1/3; six arms, five standard errors.
    assert np.abs(good.mean(axis=0) - 1 / 3).max() < 5 * np.sqrt(2 / 9 / 2000)


def test_rewards_have_the_chance_of_their_arm():
    environment, rng = FewGood(3, high=0.5, low=0.2), np.random.default_rng(1)
    world = environment.reset(1, rng)
    action = np.tile(np.arange(3), 20000)[None, :, None]
    context = environment.contexts(world, 60000, rng)
    reward, mean = environment.outcome(world, context, action, rng)
    for arm in range(3):
        chance = world[0, arm]
        assert (mean[0, arm::3] == chance).all()
        error = np.sqrt(chance * (1 - chance) / 20000)
        assert abs(reward[0, arm::3].mean() - chance) < 5 * error


@pytest.mark.parametrize(
    "wrong",
    [{"arms": 0}, {"arms": 3, "good": 4}, {"arms": 3, "high": 1.5}, {"arms": 3, "low": 0.6}],
)
def test_what_cannot_be_is_refused(wrong):
    with pytest.raises(InputError):
        FewGood(**wrong)
