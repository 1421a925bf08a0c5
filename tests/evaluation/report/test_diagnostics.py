from dataclasses import replace

import numpy as np
import pytest

from submax.evaluation.choosing.learning import learn
from submax.evaluation.contracts.evidence import Evidence
from submax.evaluation.logs.log import Log
from submax.evaluation.models import reward_map
from submax.evaluation.off_policy import make_off_policy, off_policy_estimators
from submax.evaluation.report.diagnosis.cautions import Caution, log_cautions, policy_cautions
from submax.evaluation.report.diagnosis.diagnostics import Diagnostics
from submax.evaluation.report.diagnosis.propensity_calibration import worst_calibration
from submax.evaluation.report.evidence.logged_evidence import LoggedEvidence
from submax.evaluation.report.evidence.policy_evidence import PolicyEvidence

ARMS = ["A", "B", "C"]
LOGS = 60


def log_of(rng, rows=2000, chances=(0.5, 0.3, 0.2), **columns):
    action = rng.choice(3, size=rows, p=chances)
    table = {
        "action": np.array(ARMS)[action],
        "reward": (rng.random(rows) < 0.2 + 0.2 * action) * 1.0,
        "propensity": np.array(chances)[action],
    }
    return Log.read({**table, **columns}, actions=ARMS)


def slots_of(rng, chances, rows=2000, logged=True):
    """Two slots, chosen together with these ``chances [3, 2]``."""
    joint = rng.choice(6, size=rows, p=np.ravel(chances))
    action = np.stack(np.unravel_index(joint, (3, 2)), axis=1)
    table = {"action_s": action[:, 0], "action_t": action[:, 1], "reward": rng.random(rows)}
    table["propensity"] = np.ravel(chances)[joint]
    if logged:
        table["propensity_s"] = np.sum(chances, axis=1)[action[:, 0]]
        table["propensity_t"] = np.sum(chances, axis=0)[action[:, 1]]
    return Log.read(table)


def cautions_of(log, policy="random", *, same_rows=False, learned_from=None, logged=None):
    """All cautions about a policy that learned from the log, or from another one."""
    logged = logged or LoggedEvidence(log)
    about_policy = logged.about(learn(learned_from or log, policy))
    found = policy_cautions(about_policy, Diagnostics.of(about_policy), logged, same_rows)
    return [*found, *log_cautions(logged)]


def sentences(cautions):
    return " | ".join(one.sentence for one in cautions)


def evidence_of(weight, reward=None):
    weight = np.asarray(weight, dtype=float)
    reward = np.arange(len(weight)) % 2.0 if reward is None else np.asarray(reward, dtype=float)
    return Evidence(reward, weight, weight, weight, weight)


def of_weights(weight, reward=None):
    """The cautions about weights, on a log of the same length that itself gives none."""
    rng = np.random.default_rng(0)
    weight = np.asarray(weight, dtype=float)
    least = 1.0 / max(weight.max(), 3.0)
    log = log_of(rng, rows=len(weight))
    log = replace(log, propensity=np.full(len(weight), least))
    about_policy = PolicyEvidence(evidence_of(weight, reward), np.zeros(len(weight)))
    return list(
        policy_cautions(
            about_policy, Diagnostics.of(about_policy), LoggedEvidence(log), same_rows=False
        )
    )


# Numbers


def test_diagnostics_are_those_of_the_weights():
    about_policy = PolicyEvidence(
        evidence_of([0.0, 1.0, 3.0, 0.0]), np.array([0.0, 0.5, 0.25, 0.25])
    )
    found = Diagnostics.of(about_policy)
    assert found.rows == 4
    assert found.effective == pytest.approx(16 / 10)
    assert (found.largest, found.largest_share) == (3.0, 0.75)
    assert found.mean_weight == 1.0
    assert found.mean_error == pytest.approx(np.sqrt(6 / 4) / 2)
    assert found.unsupported == 0.25


def test_diagnostics_of_a_policy_without_any_weight():
    found = Diagnostics.of(PolicyEvidence(evidence_of([0.0, 0.0]), np.zeros(2)))
    assert (found.effective, found.largest, found.largest_share) == (0.0, 0.0, 0.0)


def test_the_inverse_propensities_of_a_choice_add_up_to_the_rows(seed):
    log = log_of(np.random.default_rng(seed))
    found = worst_calibration(log)
    number = ARMS.index(found.choice)
    taken = log.action[:, 0] == number
    assert found.ratio == pytest.approx((1 / log.propensity[taken]).sum() / len(log))
    assert found.plausible


def test_calibration_counts_the_rows_in_which_a_choice_was_eligible(seed):
    rng, rows = np.random.default_rng(seed), 3000
    both = rng.random(rows) < 0.5
    action = np.where(both, rng.integers(2, size=rows), 0)
    table = {
        "action": np.array(["A", "B"])[action],
        "reward": rng.integers(2, size=rows),
        "propensity": np.where(both, 0.5, 1.0),
        "eligible": [["A", "B"] if one else ["A"] for one in both],
    }
    log = Log.read(table)
    found = worst_calibration(log)
    assert found.plausible
    taken = (action == ARMS.index(found.choice)) * np.where(both, 2.0, 1.0)
    eligible = rows if found.choice == "A" else both.sum()
    assert found.ratio == pytest.approx(taken.sum() / eligible)


def test_calibration_of_slots_counts_joint_actions(seed):
    chances = np.array([[0.1, 0.2], [0.15, 0.15], [0.3, 0.1]])
    log = slots_of(np.random.default_rng(seed), chances)
    found = worst_calibration(log)
    assert found.plausible
    assert found.ratio == pytest.approx(1.0, abs=0.25)


def test_calibration_of_densities_counts_the_width(seed):
    rng, rows = np.random.default_rng(seed), 2000
    title = rng.integers(2, size=rows)
    table = {"action_title": np.array(["A", "B"])[title], "reward": rng.random(rows)}
    table |= {"action_price": rng.uniform(2, 10, rows), "propensity": np.full(rows, 0.5 / 8)}
    log = Log.read(table, actions={"title": ["A", "B"], "price": (2, 10)})
    assert worst_calibration(log).plausible
    assert not worst_calibration(replace(log, propensity=log.propensity * 2)).plausible


def test_there_is_nothing_to_compare_in_one_arm():
    assert (
        worst_calibration(Log.read({"action": ["A"] * 9, "reward": [1] * 9, "propensity": [1] * 9}))
        is None
    )


# Cautions


def test_a_good_log_gives_no_caution(seed):
    log = log_of(np.random.default_rng(seed))
    (one,) = [one for one in cautions_of(log) if one.about != "replay"]
    assert one == Caution(
        "model", "the interval of dm does not include the error of its model of rewards"
    )


@pytest.mark.slow
def test_correct_logs_are_hardly_ever_doubted(seed, monkeypatch):
    """Propensities that depend on the context, down to 0.03; fewer than 2 in 100 are doubted."""
    # What is asked here does not depend on the model of rewards, which takes most of the time.
    monkeypatch.setattr(reward_map, "KERNELS", 0)
    policies, doubted = ("random", "rcp-submax"), np.zeros(2)
    for number in range(LOGS):
        rng = np.random.default_rng([seed, number])
        x = rng.normal(size=(2000, 2))
        score = np.exp(x @ rng.normal(size=(2, 3)))
        chances = 0.9 * score / score.sum(axis=1, keepdims=True) + 0.1 / 3
        action = (rng.random((2000, 1)) > chances.cumsum(axis=1)).sum(axis=1).clip(0, 2)
        log = Log.from_arrays(
            np.array(ARMS)[action],
            (rng.random(2000) < 0.3 + 0.2 * (action == 1)) * 1.0,
            propensity=chances[np.arange(2000), action],
            context=x,
            actions=ARMS,
        )
        logged = LoggedEvidence(log)
        for place, policy in enumerate(policies):
            about = {one.about for one in cautions_of(log, policy, logged=logged)}
            doubted[place] += bool(about - {"replay", "model"})
    assert np.all(doubted < 0.02 * LOGS + 3 * np.sqrt(0.02 * LOGS)), doubted


def test_actions_that_the_log_never_has(seed):
    rng = np.random.default_rng(seed)
    log = log_of(rng, chances=(0.6, 0.4, 0.0))
    cautions = cautions_of(log, "random")
    (first,) = [one for one in cautions if one.about == "all"]
    assert "33% of its decisions" in first.sentence
    assert "(C)" in first.sentence
    assert "the weights average 0.6" in sentences(cautions)
    learned_elsewhere = log_of(rng, chances=(0.6, 0.4, 0.0))
    assert "none of the evaluated rows took" not in sentences(
        cautions_of(log, "rcp-submax", learned_from=learned_elsewhere)
    )


def test_actions_without_a_chance_in_some_contexts(seed):
    rng, rows = np.random.default_rng(seed), 2000
    forced = rng.random(rows) < 0.3
    action = np.where(forced, 0, rng.integers(3, size=rows))
    log = Log.from_arrays(
        np.array(ARMS)[action],
        rng.integers(2, size=rows),
        propensity=np.where(forced, 1.0, 1 / 3),
        context=forced[:, None] * 1.0,
        actions=ARMS,
    )
    (one,) = [one for one in cautions_of(log) if one.about == "weights"]
    assert "the log could not take some of its actions" in one.sentence
    assert "none of the evaluated rows took" not in sentences(cautions_of(log))


def test_wrong_propensities(seed):
    rng = np.random.default_rng(seed)
    log = log_of(rng)
    for wrong in (np.full(2000, 1 / 3), log.propensity / 2, np.sqrt(log.propensity)):
        cautions = list(log_cautions(LoggedEvidence(replace(log, propensity=wrong))))
        (found,) = [one for one in cautions if one.about == "propensities"]
        assert "do not agree with how often it was taken" in found.sentence


def test_weights_that_average_too_much(seed):
    log = log_of(np.random.default_rng(seed))
    halved = replace(log, propensity=log.propensity / 2)
    assert "does not explain the difference: the propensities are wrong" in sentences(
        cautions_of(halved)
    )


def test_rare_rows_that_did_not_come_are_no_proof():
    """With a propensity of 0.001 two of 2000 rows are expected, and none occurred."""
    rng = np.random.default_rng(0)
    log = log_of(rng, chances=(0.998, 0.001, 0.001))
    rare = log.rows(log.action[:, 0] == 0)
    rare.propensity[0] = 0.001
    about_policy = PolicyEvidence(evidence_of(np.zeros(len(rare))), np.zeros(len(rare)))
    cautions = list(
        policy_cautions(
            about_policy, Diagnostics.of(about_policy), LoggedEvidence(rare), same_rows=False
        )
    )
    assert "average" not in sentences(cautions)
    assert "are worth 0 rows" in sentences(cautions)


@pytest.mark.parametrize(("rows", "effective"), [(90, True), (110, False)])
def test_few_effective_rows(rows, effective):
    cautions = of_weights(np.ones(rows))
    assert ("too few" in sentences(cautions)) is effective


def test_few_effective_rows_of_many():
    weight = np.zeros(40_000)
    weight[:300] = 40_000 / 300
    assert "the 40000 rows are worth 300 rows" in sentences(of_weights(weight))
    weight[:500] = 40_000 / 500
    assert "are worth" not in sentences(of_weights(weight))


@pytest.mark.parametrize(("largest", "expected"), [(30.0, True), (10.0, False)])
def test_one_large_weight(largest, expected):
    weight = np.full(500, (500 - largest) / 499)
    weight[0] = largest
    assert ("of the sum of all weights" in sentences(of_weights(weight))) is expected


@pytest.mark.parametrize(("earning", "expected"), [(9, True), (10, False)])
def test_few_rewards(earning, expected):
    reward = np.zeros(500)
    reward[:earning] = 1.0
    assert ("with another reward" in sentences(of_weights(np.ones(500), reward))) is expected


def test_estimated_propensities(seed):
    log = log_of(np.random.default_rng(seed))
    unknown = replace(log, propensity=np.full(2000, np.nan)).with_estimated_propensities(seed)
    (found,) = [one for one in cautions_of(unknown) if one.about == "propensities"]
    assert found.sentence.startswith("2000 of 2000 propensities are estimated")
    assert "estimated" not in sentences(cautions_of(log))


def test_replay_of_an_uneven_log(seed):
    rng = np.random.default_rng(seed)
    assert "replay" in [one.about for one in cautions_of(log_of(rng))]
    assert "replay" not in [one.about for one in cautions_of(log_of(rng, chances=(1 / 3,) * 3))]


def test_slots_that_were_not_chosen_independently(seed):
    rng = np.random.default_rng(seed)
    together = np.array([[0.3, 0.05], [0.05, 0.3], [0.15, 0.15]])
    apart = np.outer([0.5, 0.3, 0.2], [0.6, 0.4])
    (found,) = [one for one in cautions_of(slots_of(rng, together)) if one.about == "slots"]
    assert "independently" in found.sentence
    assert "slots" not in [one.about for one in cautions_of(slots_of(rng, apart))]
    even = slots_of(rng, np.full((3, 2), 1 / 6), logged=False)
    assert "slots" not in [one.about for one in cautions_of(even)]


def test_propensities_of_slots_that_are_estimated(seed):
    log = slots_of(np.random.default_rng(seed), np.outer([0.5, 0.3, 0.2], [0.6, 0.4]), logged=False)
    (found,) = [one for one in cautions_of(log) if one.about == "slots"]
    assert "log them in columns propensity_SLOT" in found.sentence


def test_a_policy_learned_from_the_same_rows(seed):
    log = log_of(np.random.default_rng(seed))
    (found,) = [one for one in cautions_of(log, same_rows=True) if one.about == "all"]
    assert "looks too good" in found.sentence
    assert "looks too good" not in sentences(cautions_of(log))


def test_a_caution_concerns_the_estimators_that_rely_on_it():
    concerned = {
        about: {
            short
            for short in off_policy_estimators()
            if Caution(about, "").concerns(make_off_policy(short))
        }
        for about in ("weights", "propensities", "slots", "sessions", "replay", "all")
    }
    weighted = {"ips", "snips", "clipped", "dr", "sndr", "switch-dr", "dr-shrinkage"}
    assert concerned["weights"] == weighted | {"replay"}
    of_sessions = {"per-decision", "trajectory"}
    assert concerned["propensities"] == weighted | {"pseudo-inverse", "mips"} | of_sessions
    assert concerned["sessions"] == of_sessions
    assert concerned["slots"] == {"pseudo-inverse"}
    assert concerned["replay"] == {"replay"}
    assert concerned["all"] == set(off_policy_estimators())


def test_rewards_that_contradict_the_model(seed):
    """A model that predicts 0 for all rewards, on rows with other rewards."""
    rng = np.random.default_rng(seed)
    reward = (rng.random(1000) < 0.5) * 1.0
    zero = np.zeros(1000)
    about_policy = PolicyEvidence(Evidence(reward, np.ones(1000), np.ones(1000), zero, zero), zero)
    log = log_of(rng, rows=1000)
    cautions = list(
        policy_cautions(
            about_policy, Diagnostics.of(about_policy), LoggedEvidence(log), same_rows=False
        )
    )
    (one,) = [one for one in cautions if one.about == "model"]
    assert "off by +0.5" in one.sentence or "off by +0.4" in one.sentence
    assert one.concerns(make_off_policy("dm"))
    assert not one.concerns(make_off_policy("dr"))


def test_one_tiny_propensity_gives_a_caution(seed):
    rng = np.random.default_rng(seed)
    log = log_of(rng)
    propensity = log.propensity.copy()
    propensity[0] = 1e-5
    cautions = list(log_cautions(LoggedEvidence(replace(log, propensity=propensity))))
    assert "a propensity is as small as 1e-05" in sentences(cautions)


def test_slots_with_wild_weights_warn_the_pseudo_inverse(seed):
    rng = np.random.default_rng(seed)
    slots = rng.pareto(0.6, (2000, 2))
    one = np.ones(2000)
    about_policy = PolicyEvidence(Evidence(one, one, one, one, one, slots), np.zeros(2000))
    log = log_of(rng)
    cautions = list(
        policy_cautions(
            about_policy, Diagnostics.of(about_policy), LoggedEvidence(log), same_rows=False
        )
    )
    about = [caution for caution in cautions if caution.about == "slots"]
    assert about
    assert all(caution.concerns(make_off_policy("pseudo-inverse")) for caution in about)
