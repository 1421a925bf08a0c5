import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from submax.core.spaces.mixed import Mixed
from submax.core.spaces.slots import Slots
from submax.simulation.trace import Recorder, kept_steps


@given(
    st.lists(st.integers(1, 7), min_size=1, max_size=8),
    st.one_of(st.none(), st.integers(1, 60)),
    st.sampled_from([Slots((5, 5)), Mixed((5,), (-1.0,), (1.0,))]),
    st.integers(0, 2**32 - 1),
)
def test_blocks_of_any_size_give_the_plain_running_sums(sizes, points, space, seed):
    rng = np.random.default_rng(seed)
    observations = sum(sizes)
    actions = space.uniform((3, observations), rng)
    rewards, regret = rng.random((2, 3, observations))
    recorder, begin = Recorder(observations, points, 3, space), 0
    for size in sizes:
        block = slice(begin, begin + size)
        recorder.add(actions[:, block], rewards[:, block], regret[:, block])
        begin += size
    trace = recorder.trace()
    kept = trace.steps - 1
    assert trace.actions.dtype == space.dtype
    assert np.array_equal(trace.actions, actions[:, kept])
    assert np.array_equal(trace.rewards, rewards[:, kept])
    assert np.allclose(trace.accumulated_reward, np.cumsum(rewards, axis=1)[:, kept])
    assert np.allclose(trace.accumulated_regret, np.cumsum(regret, axis=1)[:, kept])
    assert np.allclose(trace.final_reward, rewards.sum(axis=1))
    assert np.allclose(trace.final_regret, regret.sum(axis=1))


@given(st.integers(1, 2000), st.integers(1, 2000))
def test_kept_steps_are_even_and_end_with_the_last(observations, points):
    steps = kept_steps(observations, points)
    assert len(steps) == min(points, observations)
    assert steps[-1] == observations
    gaps = np.diff(steps, prepend=0)
    assert gaps.min() >= 1
    assert gaps.max() - gaps.min() <= 1


def test_all_steps_are_kept_where_none_are_named():
    assert kept_steps(4, None).tolist() == [1, 2, 3, 4]
