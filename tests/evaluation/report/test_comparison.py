from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from refusals import raises_code

from logs import log_of_arrays
from submax.evaluation import Log, evaluator, learn, make_off_policy
from submax.evaluation.comparison import USUAL, compare
from submax.evaluation.evaluator import Evaluator
from submax.evaluation.log import divided
from submax.evaluation.policies import LOGGING_POLICY
from submax.policies.thompson import Thompson
from submax.schema.actions import ActionSpec, Change
from submax.schema.schema import Schema

ARMS, COUNTRIES = ["A", "B", "C"], ["de", "fr", "it", "us"]
CHANCE = np.array([[0.2, 0.5, 0.3], [0.6, 0.2, 0.2], [0.1, 0.4, 0.7], [0.5, 0.5, 0.2]])
LOGGED = np.array([[0.6, 0.2, 0.2], [0.3, 0.4, 0.3], [0.2, 0.2, 0.6], [0.4, 0.4, 0.2]])


def log_of(seed, rows=400, even=False):
    """Countries in which other arms are good, and were likely."""
    rng = np.random.default_rng(seed)
    country = rng.integers(4, size=rows)
    logged = np.full((4, 3), 1 / 3) if even else LOGGED
    action = (rng.random((rows, 1)) > logged[country].cumsum(axis=1)).sum(axis=1).clip(0, 2)
    table = {
        "action": np.array(ARMS)[action],
        "reward": (rng.random(rows) < CHANCE[country, action]) * 1.0,
        "propensity": logged[country, action],
        "context_country": np.array(COUNTRIES)[country],
    }
    return Log.read(table, actions=ARMS, context={"country": COUNTRIES})


def slots_of(seed):
    rng = np.random.default_rng(seed)
    action = rng.integers(2, size=(400, 2))
    return log_of_arrays(action, action.sum(axis=1) * 1.0, propensity=np.full(400, 0.25))


@pytest.fixture(scope="module")
def log():
    return log_of(0)


def test_the_policy_that_wrote_the_log_is_first(log):
    found = compare(log, ["random", "linucb"], interval="normal")
    first = found.estimates[0]
    assert (first.policy, first.estimator, first.cautions) == (LOGGING_POLICY, "mean", ())
    rewards = log.reward[200:]
    assert first.value == pytest.approx(rewards.mean())
    half = 1.959964 * rewards.std(ddof=1) / np.sqrt(200)
    assert first.interval == pytest.approx((first.value - half, first.value + half))
    assert found.policies() == [LOGGING_POLICY, "random", "linucb"]
    assert found.estimators() == ["mean", *USUAL]
    assert found.find("random", "dr").policy == "random"
    with raises_code("invalid-input", "policy"):
        found.find("rand0m", "dr")
    with raises_code("invalid-input"):
        found.find("random", "snip")
    assert [row["policy"] for row in found.rows()] == [one.policy for one in found.estimates]
    assert found.rows()[1]["low"] == found.estimates[1].interval.low


def test_a_policy_is_learned_from_one_part_and_valued_on_the_other(log, mentioned):
    found = compare(log, ["linucb"], by="random", share=0.3, seed=4)
    learning, rest = log.split(0.3, "random", 4)
    evidence = Evaluator(rest, 4).sample.about(learn(learning, "linucb", seed=4))
    for name in USUAL:
        terms = make_off_policy(name).terms(evidence)
        assert found.find("linucb", name).value == pytest.approx(terms.value)
        assert found.find("linucb", name).threshold == terms.threshold
    assert mentioned(found.notes, 280, 120)
    with raises_code("invalid-input", "share"):
        compare(log, ["linucb"], share=1.0)


def looks_too_good(found):
    """Whether dm has another warning than that about its model."""
    return len(found.find("it", "dm").cautions) > 1


def test_what_was_learned_before_is_valued_on_the_rows_it_did_not_see(log, tmp_path, mentioned):
    learned = learn(log, "linucb", share=0.75, by="random", seed=9)
    learned.write(tmp_path / "policy.safetensors")
    for given, others in (
        (learned, {"random": "random"}),
        (tmp_path / "policy.safetensors", {}),
        (str(tmp_path / "policy.safetensors"), {}),
    ):
        rest = divided(log, [0.75, 0.25], "random", 9).part == 1
        # All policies are evaluated on the same rows, from which none of them learned.
        rest[:200] &= not others
        expected = Evaluator(log.rows(rest)).sample.about(learned)
        found = compare(log, {"it": given, **others})
        one = found.find("it", "dr")
        assert {each.diagnostics.rows for each in found.estimates} == {rest.sum()}
        assert one.value == pytest.approx(make_off_policy("dr").terms(expected).value)
        # With so few rows there is a warning about rare rewards.
        assert others or not looks_too_good(found)
        assert mentioned(found.notes, "it", rest.sum())


def test_what_was_learned_from_all_rows_has_a_caution(log, mentioned):
    assert looks_too_good(compare(log, {"it": learn(log, "linucb")}))
    # Rows are known again whatever their propensities.
    unknown = replace(log, propensity=np.full(len(log), np.nan))
    assert looks_too_good(compare(log, {"it": learn(unknown, "linucb")}))
    other = compare(log, {"it": learn(log_of(1), "linucb")})
    assert {one.diagnostics.rows for one in other.estimates} == {400}
    assert not looks_too_good(other)
    assert mentioned(other.notes, "it")


@pytest.mark.parametrize(("share", "rows"), [(1.0, 100), (0.5, 250)])
def test_a_log_that_has_grown_is_known_again(log, share, rows, mentioned):
    found = compare(log, {"it": learn(log.rows(np.arange(300)), "linucb", share=share)})
    assert found.find("it", "dr").diagnostics.rows == rows
    assert mentioned(found.notes, "it", rows)


def test_estimators_of_one_kind_have_their_parameters_as_labels(log):
    two = [{"kind": "clipped", "threshold": one} for one in (0.5, 2)]
    found = compare(log, ["linucb"], estimators=[*two, "ips"])
    first, second, last = found.estimators()[1:]
    assert [found.find("linucb", one).threshold for one in (first, second)] == [0.5, 2]
    assert last == "ips"


def test_arms_that_were_taken_by_turns_are_predicted_by_models_that_saw_them():
    """A log of three arms in turn, as many are, in which every third row has the same arm."""
    rng = np.random.default_rng(0)
    action = np.arange(6000) % 3
    reward = (rng.random(6000) < np.array([0.1, 0.5, 0.9])[action]) * 1.0
    log = log_of_arrays(action, reward, propensity=np.full(6000, 1 / 3))
    found = compare(log, ["rcp-submax"], estimators=["dm", "dr"])
    for estimator in ("dm", "dr"):
        assert abs(found.find("rcp-submax", estimator).value - 0.9) < 0.05


def test_replay_and_the_pseudo_inverse_are_used_where_they_apply(log):
    assert compare(log, ["random"]).estimators()[1:] == list(USUAL)
    assert compare(log_of(0, even=True), ["random"]).estimators()[1:] == [*USUAL, "replay"]
    assert compare(slots_of(0), ["random"]).estimators()[1:] == [*USUAL, "pseudo-inverse", "replay"]


def test_policies_by_name_table_object_and_file_have_names(log, tmp_path):
    path = tmp_path / "policy.safetensors"
    learn(log, "linucb", share=0.5).write(path)
    given = {
        "random": "random",
        "epsilon-greedy": {"kind": "epsilon-greedy", "epsilon": 0.3},
        "careful": {"kind": "epsilon-greedy", "epsilon": 0.2, "name": "careful"},
        repr(Thompson()): Thompson(),
        "ucb1": learn(log, "ucb1"),
        str(path): path,
    }
    found = compare(log, list(given.values()), estimators=["snips"])
    assert found.policies() == [LOGGING_POLICY, *given]


@pytest.mark.parametrize(
    ("policies", "options", "parameter"),
    [
        (["random", "random"], {}, "policies"),
        ({LOGGING_POLICY: "random"}, {}, "policies"),
        ("random", {}, "policies"),
        (Thompson(), {}, "policies"),
        (["randon"], {}, "policy"),
        ([{"kind": "thompson", "alpha": -1}], {}, None),
        ([Path("none.safetensors")], {}, None),
        (["random"], {"estimators": ["ipss"]}, None),
        (["random"], {"estimators": "ips"}, "estimators"),
        (["random"], {"estimators": ["ips", "ips"]}, "estimators"),
        (["random"], {"estimators": ["pseudo-inverse"]}, "estimators"),
        (["random"], {"interval": "students"}, "interval"),
        (["random"], {"level": 95}, "level"),
        (["random"], {"level": float("nan")}, "level"),
        (["random"], {"by": "luck"}, None),
        (["random"], {"seed": -1}, "seed"),
    ],
)
def test_what_cannot_be_is_refused_before_the_log_is_divided_for_learning(
    log, policies, options, parameter, monkeypatch
):
    monkeypatch.setattr(Log, "rows", None)
    with raises_code("invalid-input", parameter):
        compare(log, policies, **options)


def test_a_policy_for_other_actions_or_rewards_is_refused(log, monkeypatch):
    with raises_code("invalid-input", "policies"):
        compare(log, [learn(slots_of(0), "rcp-submax")])
    monkeypatch.setattr(Log, "rows", None)
    with raises_code("invalid-input"):
        compare(slots_of(0), ["random", "thompson-1-1"])


def test_the_same_seed_gives_the_same_numbers(log):
    few = log.rows(np.arange(60))
    one, two = (compare(few, ["linear-thompson"], seed=3) for _ in range(2))
    assert one.estimates == two.estimates


@pytest.mark.parametrize("most_listed", [4096, 1])
def test_choices_that_are_no_longer_active_are_not_taken(most_listed, seed, monkeypatch, mentioned):
    """A bandit has retired its arm C, which earns 0.9; B earns 0.5."""
    monkeypatch.setattr(evaluator, "MOST_LISTED", most_listed)
    rng, rows = np.random.default_rng(seed), 3000
    action = rng.integers(3, size=rows)
    reward = (rng.random(rows) < np.array([0.1, 0.5, 0.9])[action]) * 1.0
    schema = Schema(menu=ActionSpec.of(ARMS).changed(Change("retire", "C")))
    propensity = np.full(rows, 1 / 3)
    log = log_of_arrays(np.array(ARMS)[action], reward, propensity=propensity, schema=schema)
    found = compare(log, ["rcp-submax"], estimators=["ips", "snips", "dm", "dr"])
    for one in found.estimates[1:]:
        # Half of the rows with weights of 3 or 0: the standard error of ips is √(1.25 / 1500).
        assert abs(one.value - 0.5) < 5 * np.sqrt(1.25 / 1500)
        assert one.diagnostics.mean_weight == pytest.approx(1, abs=0.2)
    assert mentioned(found.notes, "C")


def test_an_arm_with_a_few_lucky_rows_is_not_the_best():
    # The mean of arm B is 1 in four rows; that of A is 0.5 in two thousand.
    rows = 4000
    action = np.where(np.arange(rows) % 2 == 0, "A", "C")
    action[:4] = "B"
    reward = (np.arange(rows) % 4 == 0) * 1.0
    reward[:4] = 1.0
    propensity = np.where(action == "B", 0.001, 0.4995)
    log = log_of_arrays(action, reward, propensity=propensity, actions=ARMS)
    found = compare(log, ["always=*"], baseline="best", estimators=["snips"])
    lucky = next(one for one in found.recommended() if one.policy == "always=B")
    assert (lucky.value, lucky.judged) == (1.0, False)
    # C earns less than the log.
    assert found.ranked() == ["always=A", "always=B", "always=C"]
    assert {one.baseline for one in found.differences} == {"always=A"}
    assert "always=A is the best of 2 policies" in found.answer


@pytest.mark.parametrize("baseline", ["always=0", "always=1", "best"])
def test_a_paired_difference_decides_between_two_policies(baseline):
    """0.500 and 0.408 of 500 rows each: 2.95 standard errors, and intervals that overlap."""
    reward = np.concatenate([np.arange(500) < 250, np.arange(500) < 204]) * 1.0
    log = log_of_arrays(np.repeat([0, 1], 500), reward, propensity=np.full(1000, 0.5))
    found = compare(log, ["always=0", "always=1"], baseline=baseline, estimators=["snips"])
    assert "always=0 is the best of 2 policies" in found.answer


def test_if_rewards_are_too_rare_for_every_arm_none_is_left_out(seed):
    rng = np.random.default_rng(seed)
    action, reward = rng.integers(40, size=4000), rng.random(4000) < 0.005
    log = log_of_arrays(action, reward, propensity=np.full(4000, 1 / 40))
    found = compare(log, ["always=*"], estimators=["snips"])
    best = max(found.recommended()[1:], key=lambda one: one.value)
    assert found.answer.startswith("This log cannot tell which of 40 policies is best")
    assert best.policy in found.answer
    assert not best.judged


def test_a_single_policy_is_compared_with_the_log_by_their_paired_difference():
    """0.50 and 0.44 of 1,000 rows each: the intervals of A and of the log overlap."""
    reward = np.concatenate([np.arange(1000) < 500, np.arange(1000) < 440]) * 1.0
    log = log_of_arrays(np.repeat([0, 1], 1000), reward, propensity=np.full(2000, 0.5))
    found = compare(log, ["always=0"], estimators=["snips"])
    assert found.find("always=0", "snips").interval.low < found.estimates[0].interval.high
    assert found.difference("always=0").interval.low > 0
    assert "more than the log earned" in found.answer
