import importlib
import sys

import numpy as np
import pytest
from refusals import raises_code
from sklearn.utils.estimator_checks import check_estimator

import submax
from submax.integrations.scikit_learn import BanditClassifier
from submax.policies import make_policy

NOT_APPLICABLE = {
    "check_array_api_input": "policies compute in numpy alone, whatever arrays they are given"
}
"""The checks of scikit-learn that do not apply, with the reason."""
SMALL = {"kind": "adaptive", "policy": {"kind": "posterior-submax", "features": 24}}
"""The default policy with a smaller model: with the default one the checks take a minute."""


@pytest.fixture
def decisions(seed):
    """Contexts, actions, rewards and propensities: "b" pays in positive contexts, else "a"."""
    rng = np.random.default_rng((seed, 5))
    context = rng.normal(size=(120, 2))
    chance = np.where(rng.random(120) < 0.5, 0.2, 0.8)
    actions = np.where(rng.random(120) < chance, "b", "a")
    propensities = np.where(actions == "b", chance, 1 - chance)
    rewards = ((actions == "b") == (context[:, 0] > 0)) * 1.0
    return context, actions, rewards, propensities


def test_it_passes_the_checks_of_scikit_learn():
    results = check_estimator(
        BanditClassifier(SMALL), expected_failed_checks=NOT_APPLICABLE, on_skip=None
    )
    assert len(results) > 50
    failed = {one["check_name"] for one in results if one["status"] != "passed"}
    assert failed <= set(NOT_APPLICABLE)


def by_hand(policy, problem, pieces, context, seed):
    """What a policy says after feedback, one row after the other."""
    rng = np.random.default_rng(np.random.RandomState(seed).randint(2**31 - 1))
    state = policy.init(problem, 1, rng)
    for piece in pieces:
        columns = [np.array(column)[None] for column in zip(*piece, strict=True)]
        given, action, reward, propensity = columns
        weight = np.ones(reward.shape)
        feedback = submax.Feedback(given, action[..., None], reward, np.log(propensity), weight)
        state = policy.update(state, feedback, rng)
    return policy.probabilities(state, context[None])[0]


@pytest.mark.parametrize("name", ["rcp-adaptive", "rcp-optimized", "linear-thompson"])
def test_decisions_are_the_policys_feedback(name, decisions, seed):
    context, actions, rewards, propensities = decisions
    classifier = BanditClassifier(name, random_state=seed)
    classifier.fit(context, actions, rewards=rewards, propensities=propensities)
    problem = submax.Problem(submax.Arms(2), context_width=2)
    rows = list(zip(context, (actions == "b").astype(int), rewards, propensities, strict=True))
    expected = by_hand(make_policy(name), problem, [rows], context, seed)
    found = classifier.predict_proba(context)
    np.testing.assert_allclose(found, np.broadcast_to(expected, found.shape))
    assert classifier.classes_.tolist() == ["a", "b"]
    best = np.array(["a", "b"])[found.argmax(axis=1)]
    np.testing.assert_array_equal(classifier.predict(context), best)


def test_labels_say_what_every_action_would_have_earned(seed):
    rng = np.random.default_rng(seed)
    context, labels = rng.normal(size=(40, 2)), rng.integers(3, size=40)
    classifier = BanditClassifier(random_state=seed).fit(context, labels + 5)
    rows = [
        (one, action, float(action == label), 1 / 3)
        for one, label in zip(context, labels, strict=True)
        for action in range(3)
    ]
    problem = submax.Problem(submax.Arms(3), context_width=2)
    expected = by_hand(make_policy("rcp-adaptive"), problem, [rows], context, seed)
    np.testing.assert_allclose(classifier.predict_proba(context), expected)
    assert classifier.classes_.tolist() == [5, 6, 7]


def test_it_goes_on_learning(decisions, seed):
    context, actions, rewards, propensities = decisions
    classifier = BanditClassifier(SMALL, random_state=seed)
    pieces = []
    for part in (slice(0, 50), slice(50, None)):
        given, chosen, *rest = (column[part] for column in decisions)
        classifier.partial_fit(given, chosen, ["a", "b", "c"], *rest)
        pieces.append(list(zip(given, (chosen == "b") * 1, *rest, strict=True)))
    problem = submax.Problem(submax.Arms(3), context_width=2)
    expected = by_hand(make_policy(SMALL), problem, pieces, context, seed)
    np.testing.assert_allclose(classifier.predict_proba(context), expected)
    again = classifier.fit(context, actions, rewards, propensities)
    assert again.classes_.tolist() == ["a", "b"]


def test_rewards_that_are_not_0_or_1_are_continuous(decisions):
    context, actions, rewards, propensities = decisions
    classifier = BanditClassifier("rcp-submax").fit(context, actions, 3 * rewards, propensities)
    assert classifier.state_.problem.scale == submax.Continuous()
    scaled = BanditClassifier("rcp-submax", scale=submax.Counts())
    assert scaled.fit(context, actions, rewards).state_.problem.scale == submax.Counts()


@pytest.mark.parametrize(
    ("given", "parameter"),
    [
        ({"rewards": [1.0]}, "rewards"),
        ({"rewards": ["much"] * 120}, "rewards"),
        ({"rewards": [np.nan] * 120}, "rewards"),
        ({"rewards": [1] * 120, "propensities": [0.0] * 120}, "propensities"),
        ({"rewards": [1] * 120, "propensities": [1.5] * 120}, "propensities"),
        ({"propensities": [0.5] * 120}, "propensities"),
    ],
)
def test_columns_that_do_not_fit_are_refused(given, parameter, decisions):
    with raises_code("invalid-input", parameter):
        BanditClassifier("rcp-submax").fit(*decisions[:2], **given)


def test_what_a_policy_cannot_learn_from_is_refused(decisions):
    context, actions, rewards, _ = decisions
    with raises_code("invalid-input", "propensities"):
        BanditClassifier("rcp-optimized").fit(context, actions, rewards)
    classifier = BanditClassifier("rcp-submax")
    with raises_code("invalid-input", "classes"):
        classifier.partial_fit(context, actions)
    classifier.partial_fit(context, actions, ["a", "b"], rewards)
    with raises_code("invalid-input", "y"):
        classifier.partial_fit(context[:1], ["z"], rewards=[1.0])
    with raises_code("invalid-input", "rewards"):
        classifier.partial_fit(context[:1], ["a"], rewards=[2.5])
    with raises_code("invalid-input", "policy"):
        BanditClassifier("rcp-submx").fit(context, actions)


def test_without_scikit_learn_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.delitem(sys.modules, "submax.integrations.scikit_learn")
    with raises_code("missing-extra"):
        importlib.import_module("submax.integrations.scikit_learn")
