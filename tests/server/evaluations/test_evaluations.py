"""Evaluations of other policies on the log of a bandit, in the background, over HTTP."""

import numpy as np
import pytest
from waiting import wait_until

from submax.live.declaring.declare import declare

BROWSER = {"accept": "text/html,*/*;q=0.8"}
CHANCE = {"Plain": 0.1, "Bold <b>": 0.9}
PATH = "/bandits/shop/evaluations"


@pytest.fixture
def http(serving, store, seed):
    """A server of a bandit that decided uniformly."""
    declare(store, "shop", {"actions": [*CHANCE], "reward_wait": 0, "policy": "random"})
    http, rng = serving(store), np.random.default_rng(seed)
    made = http.post("/bandits/shop/decide-many", json={"requests": [{}] * 600}).json()
    rewards = [
        {"id": one["id"], "value": float(rng.random() < CHANCE[one["action"]])}
        for one in made["decisions"]
    ]
    http.post("/bandits/shop/reward-many", json={"rewards": rewards})
    return http


def test_a_better_policy_is_found_to_be_better(http):
    http.post(PATH, json={"policies": ["rcp-submax"]})

    def ended():
        (found,) = http.get(PATH).json()["evaluations"]
        return found if found["status"] != "running" else None

    evaluation = wait_until(ended)
    assert (evaluation["status"], evaluation["error"]) == ("done", "")
    (better,) = evaluation["result"]["differences"]
    # The log was made by uniform choice, and the policy takes the better arm: 0.9 and not 0.5.
    error = (better["high"] - better["low"]) / (2 * 1.96)
    assert abs(better["value"] - 0.4) < 5 * error
    page = http.get(PATH, headers=BROWSER).text
    assert "rcp-submax" in page
    assert "<svg" in page
    assert "<b>" not in page


def test_files_unknown_policies_and_wrong_requests_are_refused(http):
    unknown, files = ["rcp-submx"], ["mine.py:Mine"]
    for policies in ([], unknown, files, [{"kind": "x.py:Y"}], ["random", "random"]):
        answer = http.post(PATH, json={"policies": policies})
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid-input"), policies
    assert http.get(PATH).json()["evaluations"] == []
