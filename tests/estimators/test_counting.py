import numpy as np
import pytest

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
    belief = estimator.belief(params, context)
    found = belief.prob(problem.space.listing()[None, None])
    for replica in range(3):
        conditioned, prior, values = slow(problem, feedback, smoothing, replica)
        assert np.allclose(found[replica], conditioned)
        assert np.allclose(belief.level_prior()[replica], prior)
        assert np.allclose(belief.values()[replica], values)


def test_propensities_missing_once_are_missing_for_good(seed):
    problem, rng = Problem(Arms(2)), np.random.default_rng(seed)
    feedback = some_feedback(problem, 1, 10, seed)._replace(reward=np.ones((1, 10)))
    estimator = Counting()
    params = estimator.init(problem, 1, rng)
    params = estimator.fit(params, rows_of(feedback, slice(0, 5))._replace(log_prob=None), rng)
    params = estimator.fit(params, rows_of(feedback, slice(5, 10)), rng)
    assert np.all(np.isnan(estimator.belief(params, np.zeros((1, 1, 0))).values()))
