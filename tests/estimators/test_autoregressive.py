import jax
import numpy as np
import pytest

from submax.core.problem import Feedback, Problem
from submax.core.spaces import Slots
from submax.estimators.network import Softmax
from submax.models.networks.choices import INJECTION_FORMS
from submax.models.nn.designs import Example
from submax.models.nn.training import restored, unpacked
from submax.models.training_settings import Training
from submax.research.rivals.estimators import Autoregressive

pytestmark = pytest.mark.xdist_group("Autoregressive")

PROBLEM = Problem(Slots((2, 3, 2)), context_width=2)
LISTING = PROBLEM.space.listing()


def some_network(estimator, rng):
    """A design, parameters of three replicas, and parameters of the estimator with both levels."""
    design = estimator.design(PROBLEM)
    size = sum(np.size(leaf) for leaf in jax.tree.leaves(design.drawn(rng)))
    vector = rng.normal(scale=0.7, size=(3, size)).astype(np.float32)
    parameters = unpacked(design, vector)
    levels = np.tile(np.eye(2, dtype=np.float32), (3, 1, 1))
    network = design.exported(restored(design, parameters), levels, None)
    return design, parameters, estimator.init(PROBLEM, 3, rng)._replace(network=network)


@pytest.mark.parametrize("injection", INJECTION_FORMS)
def test_numpy_and_jax_agree_and_probabilities_sum_to_one(injection, seed):
    """Compare every joint action in every context at both levels, and list in two ways."""
    rng = np.random.default_rng(seed)
    estimator = Autoregressive(hidden=5, injection=injection)
    design, parameters, params = some_network(estimator, rng)
    context = rng.normal(size=(3, 2, 2))
    belief = estimator.belief(params, context)
    listed = belief.prob_of_all()
    np.testing.assert_allclose(belief.prob(LISTING[None, None]), listed, rtol=1e-9)
    np.testing.assert_allclose(listed.sum(axis=-1), 1.0)

    @jax.jit
    def log_prob(model, context, action, reward):
        return design.log_prob(model, Example(context, action, None), reward)

    for replica, row, level, action in np.ndindex(3, 2, 2, 12):
        model = restored(design, {name: value[replica] for name, value in parameters.items()})
        reward = np.eye(2, dtype=np.float32)[level]
        given = context[replica, row].astype(np.float32), LISTING[action], reward
        found = np.log(listed[replica, row, level, action])
        assert found == pytest.approx(float(log_prob(model, *given)), abs=1e-4)


def feedback_of(rng, rows):
    """Reward 1 if both slots have the same choice: neither slot alone tells anything."""
    problem = Problem(Slots((2, 2)))
    action = problem.space.uniform((2, rows), rng)
    reward = (action[..., 0] == action[..., 1]).astype(float)
    given = Feedback(np.zeros((2, rows, 0)), action, reward, None, np.ones((2, rows)))
    return problem, given


def test_slots_may_depend_on_each_other(seed):
    """Actions (0, 0) and (1, 1) have probability 1/2 at reward 1; independent slots have 1/4."""
    training = Training(steps=300, batch=64, learning_rate=0.02)
    rng = np.random.default_rng(seed)
    problem, feedback = feedback_of(rng, 400)
    found = []
    for estimator in (Autoregressive(hidden=8, training=training), Softmax(8, training=training)):
        params = estimator.fit(estimator.init(problem, 2, rng), feedback, rng)
        found.append(estimator.belief(params, np.zeros((2, 1, 0))).prob_of_all()[:, 0, 1])
    # 200 rows at reward 1: the standard error of a half is 0.035, and training adds as much.
    assert np.abs(found[0] - [0.5, 0.0, 0.0, 0.5]).max() < 0.25
    assert found[1][:, [1, 2]].sum(axis=1).min() > 0.3
