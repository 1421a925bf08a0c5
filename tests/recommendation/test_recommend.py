import json
import shlex
import tomllib

import numpy as np
import pytest

import submax
from submax.recommendation.rule_table import rule_table
from submax.recommendation.snippets import actions_of, context_of

QUESTIONS = [
    {"actions": 3, "rewards": "often"},
    {"actions": 10, "rewards": "ratings", "batch": 1},
    {"actions": 3, "context": True, "rewards": "seldom", "goal": "explain"},
    {"actions": 400, "rewards": "seldom", "batch": 500},
    {"actions": [2, 3], "context": True, "rewards": "numbers"},
    {"actions": "number", "rewards": "numbers"},
    {"actions": 3, "rewards": "sparse-counts"},
]


@pytest.mark.parametrize("given", QUESTIONS, ids=str)
def test_the_python_code_opens_a_bandit_that_decides(given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = submax.recommend(**given)
    names = {}
    exec(found.python, names)
    with names["bandit"] as bandit:
        decision = bandit.decide({"age": 31, "country": "fr"} if found.answers.context else None)
        assert bandit.reward(decision.id, 1.0).status == "accepted"


@pytest.mark.parametrize("given", QUESTIONS, ids=str)
def test_the_body_of_the_request_declares_the_same_bandit(given):
    found = submax.recommend(**given)
    serve, *declare = found.commands.splitlines()
    assert serve.startswith("submax serve bandit.db")
    if found.answers.actions > 20:
        assert not declare
        return
    (declare,) = declare
    body = json.loads(shlex.split(declare)[2])
    assert body == {
        "name": "bandit",
        "actions": actions_of(found.answers),
        **({"context": context_of(found.answers)} if found.answers.context else {}),
        **found.settings,
    }
    with submax.open(":memory:", background=False, **{**body, "name": "b"}) as bandit:
        assert bandit.settings.policy == found.policy


def test_the_toml_has_both_policies():
    for rule in rule_table().rules:
        from submax.recommendation.snippets import policies_toml

        text = policies_toml(rule.policy, rule.runner_up)
        assert tomllib.loads(text) == {"policies": [rule.policy, rule.runner_up]}


def test_what_nobody_said_is_assumed_and_printed():
    found = submax.recommend(actions=5, rewards="often")
    assert len(found.assumed) == 3
    for sentence in found.assumed:
        assert f"Assumed: {sentence}" in str(found)
    assert (
        submax.recommend(actions=5, rewards="often", context=False, batch=100, goal="earn").assumed
        == ()
    )


def test_the_default_is_said_to_be_beaten_where_it_was():
    found = submax.recommend(actions=500, rewards="seldom", batch=500)
    assert found.policy == "bayes-ucb-1-99-pending"
    assert "the default is beaten" in str(found)
    contexts = submax.recommend(actions=4, context=True, rewards="often")
    assert contexts.runner_up == "neural-ucb"
    assert "A rival was ahead" in str(contexts)
    assert "linucb` lost less on texture" in " ".join(contexts.untested)


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"actions": 1, "rewards": "often"}, "invalid-actions"),
        ({"actions": "many", "rewards": "often"}, "invalid-actions"),
        ({"actions": 5, "rewards": "sometimes"}, "invalid-input"),
        ({"actions": 5, "rewards": "often", "goal": "win"}, "invalid-input"),
        ({"actions": 5, "rewards": "often", "batch": 0}, "invalid-input"),
        ({"actions": 5}, "missing-answer"),
        ({"source": "http://127.0.0.1:8000"}, "not-a-log"),
        ({"actions": 5, "rewards": "often", "bandit": "b"}, "unused-option"),
        ({"actions": 5, "rewards": "often", "columns": {"reward": "r"}}, "unused-option"),
        ({"actions": 5, "rewards": "often", "declare": "d.toml"}, "unused-option"),
        ({"source": "log.csv", "bandit": "b"}, "unused-option"),
    ],
    ids=str,
)
def test_wrong_answers_are_refused(wrong, code):
    with pytest.raises(submax.InputError) as caught:
        submax.recommend(**wrong)
    assert caught.value.code == code


def test_a_misspelled_word_is_refused():
    with pytest.raises(TypeError, match="reward"):
        submax.recommend(actions=5, reward="rare")


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ([0, 1, 1, 1], "often"),
        ([0] * 15 + [1], "seldom"),
        ([0] * 99 + [1], "rare"),
        ([1, 2, 5, 4], "ratings"),
        ([0, 3, 12, 4], "counts"),
        ([0] * 9 + [2], "sparse-counts"),
        ([0.5, 2.5, -1, 3], "numbers"),
    ],
    ids=str,
)
def test_rewards_of_a_log_are_recognized(values, word):
    actions = ["A", "B"] * (len(values) // 2 + 1)
    log = submax.evaluation.Log.read({"action": actions[: len(values)], "reward": values})
    found = submax.recommend(log)
    assert found.answers.rewards == word
    assert found.answers.sizes == (2,)


def test_a_log_with_contexts_and_slots_is_recognized(seed):
    rng = np.random.default_rng(seed)
    log = submax.evaluation.Log.from_arrays(
        np.indices((2, 3)).reshape(2, 6).T, rng.integers(2, size=6), context=rng.normal(size=(6, 2))
    )
    answers = submax.recommend(log, goal="explain").answers
    assert (answers.sizes, answers.context, answers.goal) == ((2, 3), True, "explain")


def test_a_log_is_read_and_learned_from(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{'ABC'[n % 3]},{int(n % 3 == 0)}\n" for n in range(60))
    (tmp_path / "log.csv").write_text(f"action,reward\n{rows}", encoding="utf-8")
    found = submax.recommend("log.csv")
    assert (found.answers.sizes, found.answers.rewards) == ((3,), "often")
    assert len(found.assumed) == 2, "a log shows neither batches nor the goal"
    exec(found.python, {})
    assert (tmp_path / "policy.safetensors").exists()
    assert "submax learn log.csv --policy rcp-adaptive" in found.commands


def test_a_bandit_of_a_store_is_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with submax.open("two.db", name="first", actions=["A", "B"], background=False):
        pass
    options = {"actions": ["A", "B", "C"], "reward_wait": 0, "refit_rows": 20, "background": False}
    with submax.open("two.db", name="second", context={"age": float}, **options) as bandit:
        for number in range(40):
            decision = bandit.decide({"age": number})
            bandit.reward(decision.id, float(number % 40 == 0))
        bandit.refit()
    found = submax.recommend("two.db", bandit="second")
    answers = found.answers
    assert (answers.sizes, answers.context, answers.rewards) == ((3,), True, "rare")
    assert answers.batch == 40
    exec(found.python, names := {})
    names["bandit"].close()
    with pytest.raises(submax.InputError) as caught:
        submax.recommend("two.db")
    assert caught.value.code == "bandit-not-named"
    with pytest.raises(submax.InputError) as caught:
        submax.recommend("two.db", bandit="first")
    assert caught.value.code == "missing-answer", "no reward has come yet"
