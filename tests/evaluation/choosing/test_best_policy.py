"""Learning the best of several policies from a log."""

import numpy as np
import pytest

from submax import InputError
from submax.evaluation import Log, compare, learn, learn_best
from submax.evaluation.choosing import standard_candidates as candidates
from submax.schema.learned import Learned

GIVEN = ["random", "linucb", "linucb@greedy"]


@pytest.fixture
def log(seed) -> Log:
    """A log in which the sign of the context says which of two actions earns more."""
    rng = np.random.default_rng(seed)
    context, action = rng.normal(size=(2000, 1)), rng.integers(2, size=2000)
    reward = rng.random(2000) < 0.1 + 0.8 * ((context[:, 0] > 0) == action)
    return Log.from_arrays(
        action, reward * 1.0, propensity=np.full(2000, 0.5), context=context, rewards="binary"
    )


def test_the_winner_has_the_highest_dr_on_rows_from_which_no_candidate_learned(log, seed):
    best = learn_best(log, GIVEN, seed=seed)
    values = {row["policy"]: row["choosing_value"] for row in best.rows()}
    assert best.winner == max(values, key=values.get) != "random"
    assert [row["policy"] for row in best.rows() if row["winner"]] == [best.winner]
    first, rest = log.split(0.6, "time", seed)
    choosing, reporting = rest.split(0.5, "time", seed)
    learned = {"linucb": learn(first, "linucb", seed=seed)}
    for rows, key in ((choosing, "choosing_value"), (reporting, "value")):
        expected = compare(rows, learned, estimators=["dr"], apart=True, seed=seed)
        found = next(row[key] for row in best.rows() if row["policy"] == "linucb")
        assert found == pytest.approx(expected.find("linucb", "dr").value)
    assert f"chosen among 3 policies by dr on {len(choosing)} rows" in best.notes[0]
    assert any("linucb@greedy" in note for note in best.notes[1:])


def test_the_winner_learns_from_all_rows_and_can_be_written(log, seed, tmp_path):
    best = learn_best(log, ["random", "linucb@greedy"], seed=seed)
    assert best.winner == "linucb@greedy"
    assert best.learned.origin.rows == len(log)
    best.learned.write(tmp_path / "best.safetensors")
    read = Learned.read(tmp_path / "best.safetensors")
    context = log.parts[0].context[:20]
    found = read.probabilities(context)
    assert found.max(axis=1) == pytest.approx(1.0)
    base = learn(log, "linucb", seed=seed).probabilities(context)
    assert (found.argmax(axis=1) == base.argmax(axis=1)).all()


def test_few_rows_choose_nothing(log):
    best = learn_best(log.rows(np.arange(100)))
    assert best.winner == "rcp-adaptive"
    assert best.rows() == []
    assert best.notes[0].startswith("100 rows are too few")


def test_a_policy_that_does_not_suit_the_log_is_no_candidate(log, monkeypatch):
    named = candidates.standard_candidates(log)
    assert named[:2] == ("rcp-adaptive", "rcp-adaptive@greedy")
    assert {"boosted-greedy", "forest-greedy", "rcp-softmax-converged"} <= set(named)
    monkeypatch.setattr(candidates, "find_spec", lambda name: None)
    assert candidates.standard_candidates(log) == ("rcp-adaptive", "rcp-adaptive@greedy")
    prices = Log.from_arrays(
        [[1.5], [2.5]], [0.0, 1.0], propensity=[0.1, 0.1], actions={"slot0": [1.0, 3.0]}
    )
    assert not any("@" in name for name in candidates.standard_candidates(prices))


def test_an_empty_list_is_refused(log):
    with pytest.raises(InputError, match="no candidate"):
        learn_best(log, [])
