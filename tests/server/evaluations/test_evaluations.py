"""Evaluations of other policies on the log of a bandit, in the background, over HTTP."""

import numpy as np
import pytest
from waiting import wait_until

import submax
from submax.live.bandits.open import open_store
from submax.live.declaring.declare import declare

BROWSER = {"accept": "text/html,*/*;q=0.8"}
CHANCE = {"Plain": 0.1, "Bold <b>": 0.9}
PATH = "/bandits/shop/evaluations"


@pytest.fixture
def http(serving, tmp_path, seed):
    """A server of a bandit that decided uniformly."""
    now, rng = [1e9], np.random.default_rng(seed)
    bandit = submax.open(
        tmp_path / "shop.db",
        actions=list(CHANCE),
        reward_wait=60,
        policy="random",
        clock=lambda: now[0],
        rng=rng,
        background=False,
    )
    made = bandit.decide_many([{}] * 600)
    rewards = [{"id": one.id, "value": float(rng.random() < CHANCE[one.action])} for one in made]
    bandit.reward_many(rewards)
    now[0] += 120
    bandit.refit()
    bandit.close()
    return serving(open_store(tmp_path / "shop.db"))


def test_a_better_policy_is_found_to_be_better(http):
    http.post(PATH, json={"policies": ["rcp-submax"]})

    def found():
        (found,) = http.get(PATH).json()["evaluations"]
        return found if found["status"] != "running" else None

    evaluation = wait_until(found)
    assert (evaluation["status"], evaluation["error"]) == ("done", "")
    (better,) = evaluation["result"]["differences"]
    # The log was made by uniform choice, and the policy takes the better arm: 0.9 and not 0.5.
    error = (better["high"] - better["low"]) / (2 * 1.96)
    assert abs(better["value"] - 0.4) < 5 * error
    page = http.get(PATH, headers=BROWSER).text
    assert "rcp-submax" in page
    assert "<svg" in page
    assert "<b>" not in page


def test_one_runs_at_a_time_and_is_cancelled_and_forgotten(http):
    begun = http.post(PATH, json={"policies": ["random"]})
    assert (begun.status_code, begun.json()["status"]) == (202, "running")
    second = http.post(PATH, json={"policies": ["random"]})
    assert (second.status_code, second.json()["code"]) == (429, "too-many-requests")
    address = f"{PATH}/{begun.json()['id']}"
    assert http.delete(address).json()["evaluations"][0]["status"] == "cancelled"
    assert http.delete(address).json()["evaluations"] == []
    assert http.delete(address).status_code == 404


@pytest.mark.parametrize(
    "policies",
    [
        [],
        ["rcp-submx"],
        ["mine.py:Mine"],
        [{"kind": "x.py:Y"}],
        ["random", "random"],
    ],
    ids=str,
)
def test_files_unknown_policies_and_wrong_requests_are_refused(serving, store, policies):
    declare(store, "shop", {"actions": ["A", "B"]})
    http = serving(store)
    answer = http.post(PATH, json={"policies": policies})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid-input")
    assert http.get(PATH).json()["evaluations"] == []
