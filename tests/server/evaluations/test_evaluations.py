"""Evaluations of other policies on the log of a bandit, in the background."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import raises_code

import submax
from submax.live.bandits.open import open_store
from submax.live.declaring.declare import declare
from submax.live.log.export import Export
from submax.web.server.access.key_registry import KeyRegistry
from submax.web.server.evaluations.evaluation import Evaluations
from submax.web.server.evaluations.evaluation_job import EvaluationJob, newest_rows
from submax.web.server.evaluations.evaluation_runner import MOST_REMEMBERED, EvaluationRunner
from submax.web.server.interface.evaluation_handlers import check_policies

BROWSER = {"accept": "text/html,*/*;q=0.8"}
CHANCE = {"Plain": 0.1, "Bold <b>": 0.9}


def fill(place, seed, decisions=600):
    now, rng = [1e9], np.random.default_rng(seed)
    bandit = submax.open(
        place,
        name="shop",
        actions=list(CHANCE),
        reward_wait=60,
        policy="random",
        clock=lambda: now[0],
        rng=rng,
        background=False,
    )
    made = bandit.decide_many([{}] * decisions)
    rewards = [{"id": one.id, "value": float(rng.random() < CHANCE[one.action])} for one in made]
    bandit.reward_many(rewards)
    now[0] += 120
    bandit.refit()
    bandit.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory, seed):
    file = tmp_path_factory.mktemp("evaluations") / "shop.db"
    fill(file, seed)
    return str(file)


@pytest.fixture
def exported(place, tmp_path):
    store = open_store(place, read_only=True)
    Export(store, "shop").write(tmp_path / "log.parquet")
    store.close()
    return str(tmp_path / "log.parquet")


class TestTheJob:
    def test_a_better_policy_is_said_to_be_better(self, exported, capfdbinary):
        found = EvaluationJob(None, "shop", ["rcp-submax"], exported).run()
        assert found.sentences[0].startswith("rcp-submax would have earned")
        assert "more per decision" in found.sentences[0]
        (difference,) = found.differences
        # The log was made by uniform choice, and the policy takes the better arm: 0.9 and not 0.5.
        error = (difference.high - difference.low) / (2 * 1.96)
        assert abs(difference.value - 0.4) < 5 * error
        assert {one.policy for one in found.estimates} == {"logging policy", "rcp-submax"}
        assert b'"step":3' in capfdbinary.readouterr().out

    def test_a_policy_like_that_of_the_log_is_undecided(self, exported):
        found = EvaluationJob(None, "shop", ["random"], exported).run()
        assert "cannot be said" in found.sentences[0]

    def test_an_empty_log_and_a_wrong_parameter_are_explained(self, tmp_path):
        empty = pa.table(
            {"action": pa.array([], pa.string()), "reward": pa.array([], pa.float64())}
        )
        pq.write_table(empty, tmp_path / "empty.parquet")
        with raises_code("invalid-input"):
            EvaluationJob(None, "shop", ["random"], str(tmp_path / "empty.parquet")).run()
        with raises_code("invalid-input", "key of policy"):
            EvaluationJob(None, "shop", [{"kind": "thompson", "nonsense": 1}], "none").run()

    def test_the_newest_rows_are_taken(self, tmp_path):
        pq.write_table(pa.table({"row": range(100)}), tmp_path / "x.parquet", row_group_size=30)
        table, total = newest_rows(tmp_path / "x.parquet", 45)
        assert table["row"].to_pylist() == list(range(55, 100))
        assert total == 100


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("rcp-submx", "did you mean 'rcp-submax'"),
        ("mine.py:Mine", "over HTTP only built-in policies"),
        ("/tmp/policy.safetensors", "unknown policy"),
        ({"kind": "x.py:Y"}, "over HTTP only built-in policies"),
    ],
)
def test_files_and_unknown_policies_are_refused(policy, words):
    with raises_code("invalid-input"):
        check_policies([policy])


def test_the_same_policy_twice_is_refused():
    with raises_code("invalid-input"):
        check_policies(["random", "random"])
    check_policies(["random", "linucb@greedy", "reward-model"])


class TestOverHttp:
    PATH = "/bandits/shop/evaluations"

    @pytest.fixture
    def http(self, serving, tmp_path, seed):
        fill(tmp_path / "shop.db", seed, 300)
        return serving(open_store(tmp_path / "shop.db"))

    def test_one_runs_at_a_time_and_is_cancelled_and_forgotten(self, http):
        begun = http.post(self.PATH, json={"policies": ["random"]})
        assert (begun.status_code, begun.json()["status"]) == (202, "running")
        second = http.post(self.PATH, json={"policies": ["random"]})
        assert (second.status_code, second.json()["code"]) == (429, "too-many-requests")
        address = f"{self.PATH}/{begun.json()['id']}"
        assert http.delete(address).json()["evaluations"][0]["status"] == "cancelled"
        assert http.get(self.PATH).json()["evaluations"][0]["status"] == "cancelled"
        assert http.delete(address).json()["evaluations"] == []
        assert http.delete(address).status_code == 404

    def test_a_result_is_there_when_the_page_is_loaded_again(self, http, eventually):
        http.post(self.PATH, json={"policies": ["rcp-submax"]})
        assert "Step" in http.get(self.PATH, headers=BROWSER).text

        def ended():
            return http.get(self.PATH).json()["evaluations"][0]["status"] != "running"

        eventually(ended, seconds=60)
        (found,) = http.get(f"{self.PATH}.json").json()["evaluations"]
        assert (found["status"], found["error"]) == ("done", "")
        shown = http.get(self.PATH, headers=BROWSER).text
        assert "rcp-submax would have earned" in shown
        assert "<svg" in shown

    def test_wrong_requests_are_explained(self, http):
        for body in ({"policies": []}, {"policies": ["none"]}, {"policies": ["random"] * 5}, {}):
            assert http.post(self.PATH, json=body).status_code == 400
        assert http.get("/bandits/none/evaluations").status_code == 404


def test_a_reader_sees_and_begins_nothing(serving, store):
    declare(store, "shop", {"actions": ["A", "B"]})
    key = KeyRegistry(store).add(["read"])[1]
    http, header = serving(store), {"authorization": f"Bearer {key}"}
    path = TestOverHttp.PATH
    assert http.get(path, headers=header).status_code == 200
    body = {"policies": ["random"]}
    assert http.post(path, headers=header, json=body).status_code == 403


def test_only_the_newest_results_are_remembered(store, monkeypatch):
    runner = EvaluationRunner(store)
    monkeypatch.setattr(runner, "_run", lambda made: runner._fail(made.id, "no"))
    for _ in range(MOST_REMEMBERED + 5):
        made = runner.start("shop", ["random"])
        while runner.of_bandit("shop")[0].status == "running":
            pass
    found = runner.of_bandit("shop")
    assert len(found) == MOST_REMEMBERED
    assert found[0].id == made.id
    assert isinstance(Evaluations("shop", 1, [], found), Evaluations)
