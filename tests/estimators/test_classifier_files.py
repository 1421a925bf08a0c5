"""The classifier estimator where policies are plain data: in files, in logs, in a bandit."""

import re
from pathlib import Path

import numpy as np
import pytest
from refusals import raises_code

import submax
from submax.evaluation.learning import learn
from submax.evaluation.log import Log
from submax.schema.trained_policy import TrainedPolicy
from submax.server.service import check_over_http
from submax.simulation.experiment import cells, parse
from submax.simulation.runner import run_cell

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "any-classifier.md"
TREE = {
    "kind": "classifier",
    "classifier": "sklearn.tree.DecisionTreeClassifier",
    "parameters": {"max_depth": 3},
}
POLICY = {"kind": "reward-conditioned", "estimator": TREE}


@pytest.fixture
def log(seed):
    rng = np.random.default_rng(seed)
    context, action = rng.normal(size=(80, 2)), rng.integers(3, size=80)
    reward = (rng.random(80) < 0.2 + 0.5 * (action == 1)) * 1.0
    return Log.from_arrays(action, reward, context=context, propensity=np.full(80, 1 / 3))


def test_a_classifier_of_someones_own_needs_trust(log, tmp_path, monkeypatch):
    (tmp_path / "own_classifiers.py").write_text(
        "from sklearn.naive_bayes import GaussianNB\n\n\nclass Own(GaussianNB):\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    policy = {**POLICY, "estimator": {"kind": "classifier", "classifier": "own_classifiers.Own"}}
    learn(log, policy).write(tmp_path / "policy.safetensors")
    with raises_code("invalid-input"):
        TrainedPolicy.read(tmp_path / "policy.safetensors")
    assert TrainedPolicy.read(tmp_path / "policy.safetensors", trust=True).specification == policy
    with raises_code("invalid-input"):
        check_over_http({"policy": policy})
    check_over_http({"policy": POLICY})


def test_the_experiment_of_the_guide_runs():
    (text,) = re.findall(r"```toml\n(.*?)```", GUIDE.read_text(encoding="utf-8"), flags=re.DOTALL)
    small = {"observations": 20, "replicas": 2, "delay": {"kind": "batched-rewards", "size": 10}}
    found = {cell.policy_name: cell for cell in cells(parse(text, "boosting").changed(**small))}
    assert set(found) == {"random", "boosting"}
    assert np.isfinite(run_cell(found["boosting"]).final_regret).all()


def test_a_bandit_decides_by_it_among_eligible_actions(tmp_path):
    clock = submax.testing.ManualClock()
    bandit = submax.open(
        tmp_path / "page.db",
        actions=["A", "B", "C"],
        context={"age": float},
        policy=POLICY,
        reward_wait=10.0,
        background=False,
        clock=clock,
    )
    for number in range(42):
        # Each action as often as the others, so that nothing here depends on chance.
        decision = bandit.decide({"age": number % 7}, eligible=["ABC"[number % 3]])
        bandit.reward(decision.id, float(decision.action == "B"))
        clock.now += 1.0
    clock.now += 20.0
    bandit.refit()
    free = [bandit.decide({"age": 3.0}) for _ in range(20)]
    assert {decision.action for decision in free} == {"B"}
    bound = [bandit.decide({"age": 3.0}, eligible=["A", "C"]) for _ in range(20)]
    assert {decision.action for decision in bound} <= {"A", "C"}
    bandit.close()
