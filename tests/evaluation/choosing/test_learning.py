from dataclasses import dataclass

import numpy as np
import pytest
from refusals import raises_code

from logs import log_of_arrays
from submax.core.problem import Feedback
from submax.evaluation import Log, learn
from submax.evaluation import log as log_module
from submax.evaluation.log import divided
from submax.evaluation.propensities import with_estimated_propensities
from submax.policies import make_policy, presets
from submax.policies.thompson import Thompson

COUNTING = ["rcp-submax", "rcp-optimistic", "thompson-1-1", "ucb1", "epsilon-greedy-0.1"]
REAL_ONLY = {"fourier-thompson", *(name for name in presets() if name.startswith("grid-"))}
CONTEXT = {"x": float, "country": ["de", "fr"]}


def table_of_arms(seed=0, rows=60, propensity=True):
    rng = np.random.default_rng(seed)
    action = rng.integers(3, size=rows)
    table = {
        "action": np.array(["A", "B", "C"])[action],
        "reward": (rng.random(rows) < 0.2 + 0.2 * action).astype(float),
        "context_x": rng.normal(5.0, 2.0, rows),
        "context_country": np.array(["de", "fr"])[rng.integers(2, size=rows)],
    }
    return {**table, "propensity": np.full(rows, 1 / 3)} if propensity else table


def arms(**how):
    return Log.read(table_of_arms(**how), actions=["A", "B", "C"], context=CONTEXT)


def slots(seed=0, rows=60):
    rng = np.random.default_rng(seed)
    action = rng.integers(2, size=(rows, 2))
    reward = (rng.random(rows) < 0.2 + 0.3 * action.sum(axis=1)).astype(float)
    context = rng.normal(size=(rows, 2))
    return log_of_arrays(action, reward, propensity=np.full(rows, 0.25), context=context)


def probabilities(learned, log):
    return learned.probabilities(log.parts[0].context)


def updated(policy, log, context, rng):
    """What a policy says after one update by all rows of a log, with this ``context [N, F]``."""
    feedback = Feedback(
        context[None],
        log.action.astype(np.int64)[None],
        log.reward[None],
        np.log(log.propensity)[None],
        np.ones((1, len(log))),
    )
    state = policy.update(policy.init(log.problem, 1, rng), feedback, rng)
    return policy.probabilities(state, context[None])[0]


@pytest.mark.parametrize("name", COUNTING)
def test_a_policy_learns_what_its_update_learns_from_the_same_feedback(name, seed):
    log = arms(seed=seed)
    expected = updated(make_policy(name), log, np.zeros((60, 3)), np.random.default_rng(seed))
    found = probabilities(learn(log, name), log)
    np.testing.assert_allclose(found[:1], expected[:1], atol=1e-12)


def test_a_linear_policy_sees_standardized_numbers_and_categories_as_they_are(seed):
    log = arms(seed=seed)
    number = log.context[:, 0].astype(np.float64)
    standardized = np.column_stack(
        [(number - number.mean()) / number.std(), np.eye(2)[log.context[:, 1].astype(int)]]
    )
    expected = updated(make_policy("linucb"), log, standardized, np.random.default_rng(seed))
    np.testing.assert_allclose(probabilities(learn(log, "linucb"), log), expected, atol=1e-6)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, one in presets().items()
        if not one.traits.trains_models and not one.traits.needs_pairs and name not in REAL_ONLY
    ],
)
def test_every_preset_without_networks_learns_a_log(name):
    for log in (arms(), slots()):
        learned = learn(log, name)
        found = probabilities(learned, log)
        assert found.shape == (60, log.problem.space.size)
        np.testing.assert_allclose(found.sum(axis=1), 1.0)
        assert learned.origin.rows == len(learned.rows.reward) == 60


@pytest.mark.parametrize("name", sorted(REAL_ONLY))
def test_presets_of_real_valued_actions_learn_them(name, seed):
    rng = np.random.default_rng(seed)
    price = rng.uniform(0, 10, 40)
    table = {"action_price": price, "reward": (rng.random(40) < 0.5) * 1.0}
    log = Log.read({**table, "propensity": np.full(40, 0.1)}, actions={"price": (0, 10)})
    learned = learn(log, name)
    drawn = learned.policy.act(learned.model.state, np.zeros((1, 20, 0)), rng).action
    assert ((drawn >= 0) & (drawn <= 10)).all()


# Policies whose hyper-parameters are fitted as rows come, such as linucb, depend on the parts.
@pytest.mark.parametrize("name", [*COUNTING, "rcp-optimized"])
def test_learning_in_parts_is_learning_at_once(name, monkeypatch, seed):
    log = arms(seed=seed)
    whole = probabilities(learn(log, name), log)
    context = log.parts[0].context
    monkeypatch.setattr(log_module, "MOST_ROWS", 7)
    assert len(log.parts) == 9
    learned = learn(log, name)
    np.testing.assert_allclose(learned.probabilities(context), whole, atol=1e-6)
    assert len(learned.rows.reward) == 60


def test_reward_conditioned_policies_learn_without_propensities():
    log = arms(propensity=False)
    assert np.isnan(log.propensity).all()
    learned = learn(log, "rcp-submax")
    assert learned.origin.estimated_propensities == 0
    np.testing.assert_array_equal(
        probabilities(learned, log), probabilities(learn(arms(), "rcp-submax"), log)
    )


def test_a_policy_that_needs_propensities_gets_estimated_ones_and_says_so():
    log = arms(propensity=False)
    learned = learn(log, "rcp-optimized")
    assert learned.origin.estimated_propensities == 60
    estimated = with_estimated_propensities(log, 0).propensity
    np.testing.assert_allclose(np.exp(learned.rows.log_prob), estimated)
    assert learn(arms(), "rcp-optimized").origin.estimated_propensities == 0


@pytest.mark.parametrize("by", ["time", "random"])
def test_a_share_of_the_rows_is_learned_from(by, seed):
    log = arms(seed=seed)
    learned = learn(log, "linucb", share=0.3, by=by, seed=seed)
    first = divided(log, [0.3, 0.7], by, seed).part == 0
    assert first.sum() == 18
    assert by == "random" or first[:18].all()
    np.testing.assert_array_equal(learned.rows.reward, log.reward[first])
    origin = learned.origin
    assert (origin.rows, origin.share, origin.by, origin.seed) == (18, 0.3, by, seed)
    assert origin.log == log.fingerprint
    expected = probabilities(learn(log.rows(first), "linucb", seed=seed), log)
    np.testing.assert_array_equal(probabilities(learned, log), expected)


@pytest.mark.parametrize(
    ("wrong", "parameter"),
    [
        ({"keep_rows": -1}, "keep_rows"),
        ({"seed": -1}, "seed"),
        ({"share": 0.0}, "share"),
        ({"share": 1.5}, "share"),
        ({"share": 0.5, "by": "luck"}, None),
        ({"policy": "rcp-submaxx"}, "policy"),
    ],
)
def test_what_cannot_be_is_refused(wrong, parameter):
    with raises_code("invalid-input", parameter):
        learn(arms(), **{"policy": "rcp-submax", **wrong})
    with raises_code("invalid-input"):
        learn(Log.read({"action": ["A", "B"], "reward": [0.5, 0.7]}), "thompson-1-1")


def test_an_object_that_no_table_describes_learns_and_cannot_be_written(tmp_path):
    @dataclass(frozen=True)
    class Local(Thompson):
        """A class that cannot be imported."""

    learned = learn(arms(), Local())
    with raises_code("invalid-input"):
        learned.write(tmp_path / "policy.safetensors")
    assert list(tmp_path.iterdir()) == []
