import numpy as np

from submax import RetiringBernoulli, SwitchingBernoulli


def test_probabilities_switch_after_every_period_and_only_then(seed):
    environment, rng = SwitchingBernoulli(3, period=4), np.random.default_rng(seed)
    world, seen = environment.reset(2, rng), []
    for _ in range(12):
        seen.append(world.probability)
        world = environment.advance(world, 1, rng)
    changed = [not np.array_equal(seen[t], seen[t - 1]) for t in range(1, 12)]
    assert [t for t in range(1, 12) if changed[t - 1]] == [4, 8]


def test_a_long_step_is_many_short_ones(seed):
    for environment in (SwitchingBernoulli(3, period=4), RetiringBernoulli(3, lifetime=5.0)):
        rngs = [np.random.default_rng(seed) for _ in range(2)]
        long, short = (environment.reset(2, rng) for rng in rngs)
        long = environment.advance(long, 9, rngs[0])
        for _ in range(9):
            short = environment.advance(short, 1, rngs[1])
        assert np.array_equal(environment.arm_means(long), environment.arm_means(short))


def test_an_arm_is_there_for_its_lifetime_on_average(seed):
    """After n decisions an arm is still there with probability (1 − 1/L)^n."""
    lifetime, decisions, arms = 20.0, 15, 20000
    environment, rng = RetiringBernoulli(arms, lifetime), np.random.default_rng(seed)
    world = environment.reset(1, rng)
    later = environment.advance(world, decisions, rng)
    expected = (1 - 1 / lifetime) ** decisions
    error = np.sqrt(expected * (1 - expected) / arms)
    assert abs((later == world).mean() - expected) < 5 * error
