"""Learning the best of several policies from a log."""

import numpy as np
import pytest
from refusals import raises_code

from logs import log_of_arrays
from submax.evaluation import Log, compare, learn, learn_best
from submax.evaluation.learning import Race, standard_candidates
from submax.schema.trained_policy import TrainedPolicy
from submax.statistics.sums import Terms, Units

GIVEN = ["random", "linucb", "linucb@greedy"]
SIZES = (40, 60, 100)


@pytest.fixture(scope="module")
def log(seed) -> Log:
    """A log in which the sign of the context says which of two actions earns more."""
    rng = np.random.default_rng(seed)
    context, action = rng.normal(size=(2000, 1)), rng.integers(2, size=2000)
    reward = rng.random(2000) < 0.1 + 0.8 * ((context[:, 0] > 0) == action)
    options = {"propensity": np.full(2000, 0.5), "context": context, "rewards": "binary"}
    return log_of_arrays(action, reward * 1.0, **options)


@pytest.fixture(scope="module")
def best(log, seed):
    """The best of the given policies."""
    return learn_best(log, GIVEN, seed=seed)


def test_the_winner_has_the_highest_dr_on_rows_from_which_no_candidate_learned(
    best, log, seed, mentioned
):
    rows = {row["policy"]: row for row in best.rows()}
    full = {name: row for name, row in rows.items() if row["choosing_rows"] == 1600}
    assert best.winner == max(full or rows, key=lambda name: rows[name]["choosing_value"])
    assert best.winner != "random"
    assert [name for name, row in rows.items() if row["winner"]] == [best.winner]
    # After the first quarter the random policy is clearly worse, and takes no further part.
    assert rows["random"]["choosing_rows"] == 400
    assert rows["random"]["behind"] > 2 * rows["random"]["behind_error"]
    first, rest = log.split(0.6, "time", seed)
    choosing, reporting = rest.split(0.5, "time", seed)
    learned = {name: learn(first, name, seed=seed) for name in ("random", "linucb")}
    for part, name, key in (
        (choosing, "random", "choosing_value"),
        (reporting, "linucb", "value"),
    ):
        expected = compare(part, learned, estimators=["dr"], trained_elsewhere=True, seed=seed)
        assert rows[name][key] == pytest.approx(expected.find(name, "dr").value)
    assert mentioned(best.notes[:1], best.winner, 3, "dr")
    assert best.to_pandas()["policy"].tolist() == GIVEN


def test_the_winner_learns_from_all_rows_and_can_be_written(log, seed, tmp_path):
    best = learn_best(log, ["random", "linucb@greedy"], seed=seed)
    assert best.winner == "linucb@greedy"
    assert best.learned.origin.rows == len(log)
    best.learned.write(tmp_path / "best.safetensors")
    read = TrainedPolicy.read(tmp_path / "best.safetensors")
    context = log.parts[0].context[:20]
    found = read.probabilities(context)
    assert found.max(axis=1) == pytest.approx(1.0)
    base = learn(log, "linucb", seed=seed).probabilities(context)
    assert (found.argmax(axis=1) == base.argmax(axis=1)).all()


def test_few_rows_choose_nothing(log):
    best = learn_best(log.rows(np.arange(100)))
    assert best.winner == "rcp-adaptive"
    assert best.rows() == []
    assert len(best.notes) == 1
    with raises_code("invalid-input"):
        learn_best(log, [])


def race_of(rng, means, spread=1.0, sizes=SIZES):
    """A race whose terms are normal, with these means; terms of one row are correlated."""
    folds = []
    for size in sizes:
        shared = rng.normal(size=size)
        terms = {
            name: Terms(mean + shared + spread * rng.normal(size=size))
            for name, mean in means.items()
        }
        folds.append((terms, Units()))
    return Race(tuple(folds))


def test_values_and_leads_are_those_of_all_rows_together(rng):
    race = race_of(rng, {"p": 0.0, "q": 0.5})
    rows = {
        name: np.concatenate([terms[name].numerator for terms, _ in race.folds]) for name in "pq"
    }
    assert race.rows("p") == sum(SIZES)
    assert race.value("p") == pytest.approx(rows["p"].mean())
    value, error = race.lead("q", "p")
    assert value == pytest.approx((rows["q"] - rows["p"]).mean())
    # The variance within folds, so that it differs a little from that of all rows.
    variances = [
        np.var(terms["q"].numerator - terms["p"].numerator, ddof=1) for terms, _ in race.folds
    ]
    assert error == pytest.approx(np.sqrt(np.dot(SIZES, variances)) / sum(SIZES))
    assert race.lead("p", "q") == pytest.approx((-value, error))


def test_the_best_one_is_hardly_ever_left_out_and_more_folds_find_it_more_often(rng):
    """With z standard errors between two policies, the worse one is ahead with chance Φ(−z)."""
    races, rows = 400, 50
    # One fold cannot tell the policies apart; four folds have half of its standard error.
    gap = 1.0 * np.sqrt(2 / rows)
    first = left_out = four = 0
    for _ in range(races):
        race = race_of(rng, {"best": gap, "other": 0.0}, sizes=(rows,) * 4)
        start = race._replace(folds=race.folds[:1])
        first += start.best() == "best"
        left_out += "best" not in start.contenders()
        four += race.best() == "best"
    allowed = 4.5 * np.sqrt(0.25 / races)
    assert first / races < 0.841 + allowed
    assert four / races > 0.977 - allowed
    # The best one is left out if it seems to be worse by two errors: Φ(−1 − 2) = 0.13 %.
    assert left_out <= 6


def test_simple_models_are_candidates_and_the_lift_over_the_log_is_paired(log, seed):
    simple = ["mean-per-arm", "logistic-greedy"]
    assert set(simple) <= set(standard_candidates(log))
    best = learn_best(log, simple, seed=seed)
    assert best.winner == "logistic-greedy"
    assert best.report.difference("logistic-greedy").interval.low > 0
    means = learn(log, simple[0]).probabilities(log.parts[0].context[:50])
    rewards = [log.reward[log.action[:, 0] == arm].mean() for arm in (0, 1)]
    assert np.all(means.argmax(axis=1) == np.argmax(rewards))


def test_an_action_that_is_not_always_eligible_is_named(mentioned):
    table = {"action": ["A", "B", "A", "B"] * 10, "reward": [1, 0] * 20, "propensity": [0.5] * 40}
    log = Log.read({**table, "eligible": [["A", "B"]] * 39 + [["B", "C"]]})
    found = compare(log, ["always=A", "always=B"], estimators=["ips"])
    assert mentioned(found.notes, "always=A", 39, 40)
    assert not mentioned(found.notes, "always=B")
