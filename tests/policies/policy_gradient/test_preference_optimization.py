import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit

from submax import Memory, Problem, Slots
from submax.models.memory import Buffer
from submax.models.nn.designs import Example
from submax.policies import PreferenceOptimization
from submax.research.rivals.designs import PreferenceDesign
from submax.research.rivals.policy_gradient import NearPairs
from submax.testing.problems import some_feedback

pytestmark = pytest.mark.xdist_group("ValueBelief")


@pytest.mark.parametrize("strength", [0.5, 2.0])
def test_the_best_policy_is_the_reference_tilted_by_the_values(strength, seed):
    """At p ∝ q exp(v / β) the expected loss over all pairs has no gradient, and it is convex."""
    rng = np.random.default_rng(seed)
    design = PreferenceDesign((4,), 0, 4, strength)
    values, logged = rng.normal(size=4), rng.dirichlet(np.full(4, 5.0))

    # Every pair of actions a and b, once for each order of preference.
    a, b, first = (part.ravel() for part in np.indices((4, 4, 2)))
    sign = 2.0 * first - 1
    chance = logged[a] * logged[b] * expit(sign * (values[a] - values[b]))
    pairs = jnp.asarray(np.stack([b, np.log(logged[a] / logged[b]), sign], axis=1), jnp.float32)

    def expected_loss(logits):
        def pair_loss(action, columns):
            example = Example(jnp.zeros(0), action, columns)
            return design.pair_loss(logits, logits, example, columns[:1])

        return jnp.asarray(chance, jnp.float32) @ jax.vmap(pair_loss)(
            jnp.asarray(a)[:, None], pairs
        )

    best = jnp.asarray(np.log(logged) + values / strength, dtype=jnp.float32)
    gradient = jax.jit(jax.grad(expected_loss))
    assert np.abs(gradient(best)).max() < 1e-5
    elsewhere = best + jnp.asarray([0.5, 0.0, 0.0, 0.0])
    assert np.abs(gradient(elsewhere)).max() > 1e-4


def test_partners_are_the_nearest_with_another_reward(problem, seed):
    """With very many candidates all rows are among them, so that the nearest of all is found."""
    rng = np.random.default_rng(seed)
    feedback = some_feedback(problem, 3, 9, seed)
    feedback.weight[1, 4:] = 0.0
    feedback.reward[2] = 1.0
    buffer = Buffer.empty(problem, 3).add(feedback, Memory(), rng)
    pairs = NearPairs.drawn(buffer, buffer.context.astype(np.float32), 400, rng)
    for replica, row in np.ndindex(3, 9):
        rows = range(buffer.filled[replica])
        mine, context = buffer.reward[replica], buffer.context[replica]
        others = [other for other in rows if mine[other] != mine[row]]
        if row not in rows or not others:
            assert pairs.sign[replica, row] == 0
            continue
        apart = [np.sum((context[other] - context[row]) ** 2) for other in others]
        assert pairs.partner[replica, row] == others[int(np.argmin(apart))]
        assert pairs.sign[replica, row] == (1 if mine[row] > 0 else -1)


def test_columns_describe_the_partner(seed):
    problem = Problem(Slots((2, 3)), context_width=2)
    policy, rng = PreferenceOptimization(hidden=4), np.random.default_rng(seed)
    feedback = some_feedback(problem, 2, 8, seed)
    state = policy.init(problem, 2, rng)
    state = state._replace(buffer=state.buffer.add(feedback, Memory(), rng))
    columns = policy.columns(state, rng)
    for replica, row in np.argwhere(columns[..., -1]):
        logged = feedback.log_prob[replica]
        partner = np.abs(logged - (logged[row] - columns[replica, row, 4])).argmin()
        expected = feedback.action[replica, partner]
        assert columns[replica, row, 2:4].tolist() == expected.tolist()
