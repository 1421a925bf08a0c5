"""A bandit in memory: it learns from every reward at once."""

import itertools
import math
import threading
from functools import partial

import numpy as np
import pytest
from refusals import raises_code
from stored import new_store

import submax
from submax.bandit import learning, maturing
from submax.bandit.durable import open_bandit
from submax.bandit.learning import LearningWarning
from submax.core.problem import Feedback
from submax.evaluation.learning import learn
from submax.evaluation.log import Log
from submax.policies import make_policy
from submax.policies.thompson import Thompson
from submax.schema import model

ARMS = ["A", "B", "C"]
THOMPSON = {"kind": "thompson"}
CHANCES = {"A": 0.1, "B": 0.6, "C": 0.3}


def played(bandit, rounds, seed=0, chances=CHANCES):
    """The decisions of so many rounds, each rewarded at once, and their rewards."""
    rng = np.random.default_rng(seed)
    decisions, rewards = [], []
    for _ in range(rounds):
        decisions.append(bandit.decide())
        rewards.append(float(rng.random() < chances[decisions[-1].action]))
        bandit.reward(decisions[-1].id, rewards[-1])
    return decisions, rewards


def test_it_learns_before_the_next_decision_from_every_reward_and_later_from_4_percent():
    bandit = submax.Bandit(ARMS, policy=THOMPSON, seed=0)
    versions = [one.version for one in played(bandit, 160)[0]]
    assert versions[:26] == list(range(26))
    learned = [number for number in range(1, 160) if versions[number] > versions[number - 1]]
    for before, after in itertools.pairwise(learned):
        assert after - before == max(1, math.ceil(0.04 * before))


@pytest.mark.parametrize("policy", ["rcp-adaptive", "rcp-submax", "thompson-1-1", "ucb1"])
def test_it_decides_as_the_policy_does_that_is_updated_by_the_same_rows(policy):
    """The same rows, in the same parts, by the functions that a simulation calls."""
    bandit = submax.Bandit(ARMS, policy=policy, seed=3)
    decisions, rewards = played(bandit, 60)
    made, problem = make_policy(policy), bandit.settings.schema(bandit.menu).problem
    state = made.init(problem, 1, np.random.default_rng(0))
    waiting = []
    for number, decision in enumerate(decisions):
        if number and decision.version > decisions[number - 1].version:
            action, reward, propensity = map(np.array, zip(*waiting, strict=True))
            rows = Feedback(
                np.zeros((1, len(waiting), 0)),
                action[None, :, None],
                reward[None],
                np.log(propensity)[None],
                np.ones((1, len(waiting))),
            )
            state = made.update(state, rows, np.random.default_rng(0))
            waiting = []
        told = made.probabilities(state, np.zeros((1, 1, 0)))[0, 0]
        assert decision.propensity == pytest.approx(told[ARMS.index(decision.action)], rel=1e-9)
        waiting.append((ARMS.index(decision.action), rewards[number], decision.propensity))


def test_with_numbers_in_the_context_the_first_rows_are_fitted_as_a_version_is(clock):
    """After 64 rows it decides as a bandit with a store that is fitted to the same rows."""
    actions, propensities = [], []
    for begin in (submax.Bandit, partial(open_bandit, new_store(clock), background=False)):
        bandit = begin(
            actions=ARMS,
            context={"x": float, "y": float},
            policy="linear-thompson",
            guard_rails={"burn_in": 64},
            reward_wait=0,
            seed=5,
            clock=clock,
            rng=np.random.default_rng(2),
        )
        rng, rewards = np.random.default_rng(1), []
        for number in range(94):
            decision = bandit.decide({"x": 5 + 3 * rng.normal(), "y": rng.normal()})
            actions.append(decision.action)
            propensities.append(decision.propensity)
            value = float(rng.random() < CHANCES[decision.action])
            rewards.append({"id": decision.id, "value": value})
            if number == 63:
                bandit.reward_many(rewards)
                bandit.refit()
    assert actions[:94] == actions[94:]
    assert propensities[:94] == pytest.approx(propensities[94:])
    assert len(set(propensities[64:94])) > 3


def test_numbers_are_standardized_again_only_if_they_have_moved(monkeypatch, seed):
    monkeypatch.setattr(learning, "CONTEXT_LEARN_SHARE", 0.0)
    bandit = submax.Bandit(ARMS, context={"x": float, "y": float}, policy="linear-thompson")
    seen = np.random.default_rng(seed).normal(3, 2, (600, 2))
    seen[300:] += 10
    for rows, few, most in ((300, 0, 150), (600, 300, 600)):
        for x, y in seen[rows - 300 : rows]:
            decision = bandit.decide({"x": float(x), "y": float(y)})
            bandit.reward(decision.id, float(decision.action == "B"))
        bandit.refit()
        model = bandit._learner.model
        assert few < model.fitted_rows <= most
        mean = seen[: model.fitted_rows].mean(axis=0)
        assert np.allclose(model.standardization.mean, mean)


def test_rewards_that_come_together_are_learned_from_together():
    bandit = submax.Bandit(ARMS, seed=0)
    decisions = bandit.decide_many([{} for _ in range(100)])
    bandit.reward_many([{"id": one.id, "value": 1.0} for one in decisions])
    assert bandit.decide().version == 1


def test_the_same_seed_decides_the_same(seed):
    one, other = (played(submax.Bandit(ARMS, seed=seed), 25)[0] for _ in range(2))
    assert [each.action for each in one] == [each.action for each in other]


@pytest.mark.parametrize("rewarded", [True, False])
def test_memory_stays_bounded(monkeypatch, rewarded, tmp_path):
    monkeypatch.setattr(maturing, "DECISIONS_KEPT", 100)
    monkeypatch.setattr(model, "ROWS_KEPT", 50)
    monkeypatch.setattr(learning, "MAX_PARTS", 16)
    bandit = submax.Bandit(ARMS, policy="ucb1", seed=0)
    decisions = []
    for number in range(400):
        decisions.append(bandit.decide())
        if rewarded:
            bandit.reward(decisions[-1].id, 1.0)
        if number == 199:
            bandit.save(tmp_path / "half")
    bandit.save(tmp_path / "whole")
    sizes = [(tmp_path / name).stat().st_size for name in ("half", "whole")]
    assert sizes[1] < 1.2 * sizes[0]
    assert bandit.counts()["decisions"] == 400
    assert bandit.counts().get("learned", 0) == 400 * rewarded
    assert bandit.reward(decisions[-100].id, 1.0).status == "accepted"
    with raises_code("not-found"):
        bandit.reward(decisions[-101].id, 1.0)


def test_a_reward_for_an_id_that_no_decision_has_is_refused_with_all_others():
    bandit = submax.Bandit(ARMS, seed=0)
    decision = bandit.decide(id="mine")
    with raises_code("not-found"):
        bandit.reward_many([{"id": decision.id, "value": 1.0}, {"id": "mime", "value": 1.0}])
    assert bandit.counts() == {"decisions": 1}


def test_threads_may_decide_and_reward_at_once():
    bandit = submax.Bandit(ARMS, policy=THOMPSON)

    def work(number):
        for _ in range(25):
            bandit.reward(bandit.decide().id, float(number % 2))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    bandit.refit()
    assert bandit.counts()["learned"] == 100


def test_a_closed_bandit_refuses_to_decide(tmp_path):
    bandits = [
        submax.Bandit(ARMS),
        open_bandit(":memory:", actions=ARMS),
        open_bandit(tmp_path / "page.db", actions=ARMS),
    ]
    for bandit in bandits:
        decision = bandit.decide()
        bandit.close()
        bandit.close()
        for call in (
            bandit.decide,
            bandit.refit,
            lambda bandit=bandit: bandit.decide_many([{}]),
            lambda bandit=bandit, decision=decision: bandit.reward(decision.id, 1.0),
            lambda bandit=bandit: bandit.add("D"),
        ):
            with raises_code("store-unavailable"):
                call()
        assert "Bandit" in repr(bandit)


@pytest.mark.parametrize(
    ("arguments", "parameter"),
    [
        ({}, "actions"),
        ({"refit_rows": 5}, "refit_rows"),
        ({"combine": "sum", "rewards": "counts"}, "combine"),
        ({"no_reward_after": 0}, "no_reward_after"),
        ({"rng": 3}, "rng"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, parameter):
    given = {"actions": ARMS, **arguments} if arguments else {}
    with raises_code("invalid-input", parameter):
        submax.Bandit(**given)


def test_a_policy_that_fails_to_learn_says_so_and_loses_nothing():
    class Moody(Thompson):
        fails = True

        def update(self, state, feedback, rng):
            if self.fails:
                raise ValueError("not today")
            return super().update(state, feedback, rng)

    bandit = submax.Bandit(ARMS, policy=Moody())
    bandit.reward(bandit.decide().id, 1.0)
    with pytest.warns(LearningWarning, match="not today"):
        decision = bandit.decide()
    assert decision.version == 0
    # The warning comes once, and the last version goes on deciding.
    for _ in range(5):
        assert bandit.decide().version == 0
        bandit.reward(decision.id, 1.0)
        decision = bandit.decide()
    assert not bandit.refit()
    assert any(bandit.failures.values())
    Moody.fails = False
    assert bandit.refit().rows == 6
    assert bandit.decide().version == 1


def test_a_bandit_in_memory_starts_from_a_learned_policy(tmp_path):
    table = {"action": ARMS * 40, "reward": [0.0, 1.0, 0.0] * 40, "propensity": [1 / 3] * 120}
    learned = learn(Log.read(table), "thompson-1-1")
    learned.write(tmp_path / "policy.safetensors")
    bandit = submax.Bandit(learned=tmp_path / "policy.safetensors", seed=1)
    assert (bandit.version, bandit.settings.policy) == (1, "thompson-1-1")
    assert bandit.arms()[1].probability > 0.99
    for _ in range(20):
        bandit.reward(bandit.decide().id, 1.0)
    assert bandit.refit() or bandit.version > 1
    bandit.save(tmp_path / "bandit.safetensors")
    assert submax.Bandit.load(tmp_path / "bandit.safetensors").version == bandit.version


def test_a_bandit_with_a_policy_in_a_text_is_saved_and_decides_the_same(tmp_path):
    text = "epsilon-greedy-0.1,epsilon=0.3@temperature=0.5"
    bandit = submax.Bandit(ARMS, policy=text, seed=1)
    played(bandit, 40)
    assert "epsilon=0.3" in str(bandit)
    tempered = [arm.probability for arm in bandit.arms()]
    assert tempered == pytest.approx(np.array([0.01, 0.64, 0.01]) / 0.66)
    bandit.save(tmp_path / "bandit.safetensors")
    again = submax.Bandit.load(tmp_path / "bandit.safetensors")
    assert again.settings == bandit.settings
    assert [arm.probability for arm in again.arms()] == tempered
    opened = {"actions": ARMS, "policy": text, "background": False}
    for _ in range(2):
        # The second time the bandit exists.
        with submax.open(tmp_path / "bandits.db", **opened) as durable:
            assert durable.settings.policy == bandit.settings.policy
            durable.set(policy="ucb1@greedy")
            assert durable.settings.policy["name"] == "ucb1@greedy"
            for wrong in ("ucb1@gredy", "ucb1,pending=maybe", "ucb1,x=1"):
                with raises_code("invalid-input"):
                    durable.set(policy=wrong)
                with raises_code("invalid-input"):
                    submax.Bandit(ARMS, policy=wrong)


class Faulty(Thompson):
    """Returns whatever the test wants."""

    returned = None

    def probabilities(self, state, context):
        return self.returned


@pytest.mark.parametrize(
    "returned",
    [
        np.array([[[-1 / 3, 1 / 3, 1.0]]]),
        np.array([[[0.5, 0.5, 0.5]]]),
        np.array([[[np.nan, 0.5, 0.5]]]),
        np.array([[0.2, 0.3, 0.5]]),
        [0.2, 0.3, 0.5],
        None,
    ],
)
def test_probabilities_that_are_none_are_never_served(returned, monkeypatch):
    monkeypatch.setattr(Faulty, "returned", returned)
    bandit = submax.Bandit(ARMS, policy=Faulty())
    assert bandit.decide().propensity == pytest.approx(1 / 3)
    assert sum(bandit.failures.values()) == 1
