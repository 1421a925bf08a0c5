import numpy as np
import pytest
from refusals import raises_code

from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.core.rewards.discrete import Discrete
from submax.core.spaces.arms import Arms
from submax.core.spaces.slots import Slots
from submax.estimators.counting import Counting
from submax.testing.rules.examples import fixed_levels, rows_of, some_feedback

PROBLEMS = (
    Problem(Arms(4)),
    Problem(Slots((2, 3))),
    Problem(Arms(3), scale=Discrete((-1.0, 0.0, 2.0))),
)


def values_of(estimator, params):
    nowhere = np.zeros((len(params.counts), 1, params.problem.context_width))
    return estimator.belief(params, nowhere).values()


def slow(problem, feedback, smoothing, replica):
    """Conditioned probabilities, prior and values of one replica, one observation at a time."""
    size, levels = problem.space.size, fixed_levels(problem.scale)
    counts = [[0.0] * size for _ in levels]
    observations = []
    for row in range(feedback.reward.shape[1]):
        weight = feedback.weight[replica, row]
        if weight == 0:
            continue
        reward = feedback.reward[replica, row]
        arm = int(problem.space.index(feedback.action[replica, row]))
        level = min(range(len(levels)), key=lambda place: abs(levels[place] - reward))
        counts[level][arm] += weight
        observations.append((arm, weight * reward, np.exp(feedback.log_prob[replica, row])))
    conditioned = []
    for row in counts:
        total = sum(row) + smoothing * size
        conditioned.append([(c + smoothing) / total if total else 1 / size for c in row])
    seen = sum(map(sum, counts))
    values = [sum(r * policy[a] / q for a, r, q in observations) / seen for policy in conditioned]
    return np.array(conditioned), np.array([sum(row) / seen for row in counts]), np.array(values)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0, 3.0])
@pytest.mark.parametrize("problem", PROBLEMS, ids=repr)
def test_it_counts_as_a_slow_loop_does(problem, smoothing, seed):
    rng = np.random.default_rng(seed)
    feedback = some_feedback(problem, 3, 40, seed)
    weight = rng.choice([0.0, 0.5, 1.0, 2.0], size=(3, 40))
    feedback = feedback._replace(weight=weight)
    estimator = Counting(smoothing)
    params = estimator.fit(estimator.init(problem, 3, rng), feedback, rng)
    context = np.zeros((3, 2, 0))
    found = estimator.belief(params, context).prob(problem.space.listing()[None, None])
    for replica in range(3):
        conditioned, prior, values = slow(problem, feedback, smoothing, replica)
        assert np.allclose(found[replica], conditioned)
        assert np.allclose(estimator.belief(params, context).level_prior()[replica], prior)
        assert np.allclose(values_of(estimator, params)[replica], values)


def test_add_one_by_hand(seed):
    problem = Problem(Arms(3))
    action = np.array([[0, 0, 1, 2, 2, 2]])[..., None]
    reward = np.array([[0.0, 1.0, 0.0, 1.0, 1.0, 0.0]])
    feedback = Feedback(
        np.zeros((1, 6, 0)), action, reward, np.full((1, 6), np.log(0.25)), np.ones((1, 6))
    )
    estimator, rng = Counting(1.0), np.random.default_rng(seed)
    params = estimator.fit(estimator.init(problem, 1, rng), feedback, rng)
    found = estimator.belief(params, np.zeros((1, 1, 0))).prob(problem.space.listing()[None, None])[
        0, 0
    ]
    assert np.allclose(found, [[2 / 6, 2 / 6, 2 / 6], [2 / 6, 1 / 6, 3 / 6]])
    assert np.allclose(estimator.belief(params, np.zeros((1, 1, 0))).level_prior(), [0.5, 0.5])
    # One reward of arm 0 and two of arm 2, each worth 4 / 6.
    assert np.allclose(values_of(estimator, params), [[4 / 18 + 8 / 18, 4 / 18 + 8 / 12]])


def test_values_divide_by_the_weight_however_small(seed):
    problem, rng = Problem(Arms(3)), np.random.default_rng(seed)
    feedback = some_feedback(problem, 2, 6, seed)
    light = feedback._replace(weight=np.full((2, 6), 1e-3))
    estimator = Counting(0.0)
    fresh = estimator.init(problem, 2, rng)
    one, other = (
        values_of(estimator, estimator.fit(fresh, given, rng)) for given in (feedback, light)
    )
    assert np.allclose(one, other)


def test_before_any_data_everything_is_uniform(seed):
    problem = Problem(Arms(4))
    for smoothing in (0.0, 1.0):
        estimator = Counting(smoothing)
        params = estimator.init(problem, 2, np.random.default_rng(seed))
        context = np.zeros((2, 1, 0))
        assert np.allclose(
            estimator.belief(params, context).prob(problem.space.listing()[None, None]), 0.25
        )
        assert np.allclose(estimator.belief(params, context).level_prior(), 0.5)
        assert np.array_equal(values_of(estimator, params), np.zeros((2, 2)))


def test_propensities_missing_once_are_missing_for_good(seed):
    problem, rng = Problem(Arms(2)), np.random.default_rng(seed)
    feedback = some_feedback(problem, 1, 10, seed)._replace(reward=np.ones((1, 10)))
    estimator = Counting()
    params = estimator.init(problem, 1, rng)
    params = estimator.fit(params, rows_of(feedback, slice(0, 5))._replace(log_prob=None), rng)
    params = estimator.fit(params, rows_of(feedback, slice(5, 10)), rng)
    assert np.all(np.isnan(values_of(estimator, params)))


def test_a_space_that_is_too_large_is_refused(seed):
    with raises_code("invalid-input"):
        Counting().init(Problem(Slots((2000, 2000))), 1, np.random.default_rng(seed))


@pytest.mark.parametrize("smoothing", [-0.1, float("nan"), float("inf"), True, "1"])
def test_bad_smoothing_is_refused(smoothing):
    with raises_code("invalid-input", "smoothing"):
        Counting(smoothing)


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_order_and_parts_of_the_feedback_do_not_matter(problem, seed):
    estimator, rng = Counting(0.5), np.random.default_rng(seed)
    feedback = some_feedback(problem, 2, 30, seed)
    fresh = estimator.init(problem, 2, rng)
    whole = estimator.fit(fresh, feedback, rng)
    halves = estimator.fit(fresh, rows_of(feedback, slice(0, 11)), rng)
    halves = estimator.fit(halves, rows_of(feedback, slice(11, None)), rng)
    shuffled = estimator.fit(fresh, rows_of(feedback, rng.permutation(30)), rng)
    for other in (halves, shuffled):
        np.testing.assert_allclose(other.counts, whole.counts)
        np.testing.assert_allclose(values_of(estimator, other), values_of(estimator, whole))
