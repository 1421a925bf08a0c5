"""Settings, feedback and problems that estimators refuse."""

import numpy as np
import pytest
from refusals import raises_code

from submax.core import optional as extras
from submax.core.problem import Problem
from submax.core.spaces import Arms, Box, Slots
from submax.estimators.classifier import Classifier
from submax.estimators.counting import Counting
from submax.estimators.network import CVAE, Softmax
from submax.policies.reward_conditioned import RewardConditioned
from submax.strategies.weighted import Optimized

LARGE, BOX, MIXED = Slots((2000, 2000)), Box((0.0,), (1.0,)), Box((-2.0,), (6.0,), (2,))
CLASSIFIER = Classifier("sklearn.naive_bayes.GaussianNB")


@pytest.mark.parametrize(
    ("estimator", "problem"),
    [
        (Counting(), Problem(LARGE)),
        (Counting(), Problem(MIXED)),
        (CLASSIFIER, Problem(LARGE)),
        (CLASSIFIER, Problem(BOX)),
        (Softmax(), Problem(BOX)),
        (Softmax(), Problem(MIXED)),
        (RewardConditioned(CVAE(), Optimized()), Problem(BOX)),
    ],
    ids=repr,
)
def test_problems_that_it_is_not_made_for_are_refused(estimator, problem, seed):
    with raises_code("invalid-input"):
        estimator.init(problem, 1, np.random.default_rng(seed))


@pytest.mark.parametrize("estimator", [Softmax(), CVAE()], ids=repr)
def test_without_jax_the_extra_is_named(estimator, monkeypatch, seed):
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with raises_code("missing-extra") as refused:
        estimator.init(Problem(Arms(2)), 1, np.random.default_rng(seed))
    assert "submax[neural]" in str(refused.value)


@pytest.mark.parametrize("estimator", [Counting(0.0), Counting(1.0), Softmax(), CVAE()], ids=repr)
def test_before_the_first_feedback_everything_is_uniform(estimator, seed):
    problem = Problem(Slots((2, 3)), context_width=1)
    params = estimator.init(problem, 2, np.random.default_rng(seed))
    belief = estimator.belief(params, np.zeros((2, 4, 1)))
    np.testing.assert_allclose(belief.prob_of_all(), 1 / 6)
    assert np.array_equal(belief.level_prior(), np.full((2, 4, 2), 0.5))
    assert np.array_equal(belief.values(), np.zeros((2, 2)))
