"""What all estimators do before the first feedback, and networks without JAX."""

import numpy as np
import pytest
from refusals import raises_code

from submax.core import optional as extras
from submax.core.problem import Problem
from submax.core.spaces import Arms, Slots
from submax.estimators.counting import Counting
from submax.estimators.network import CVAE, Softmax


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
