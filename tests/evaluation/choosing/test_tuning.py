import numpy as np
import pytest
from refusals import raises_code

from submax.evaluation.estimators import make_off_policy
from submax.evaluation.evaluator import Evaluator
from submax.evaluation.learning import learn, search_space, tune
from submax.evaluation.log import Log

pytest.importorskip("optuna")
EPSILONS = [0.05, 0.5, 0.9]


@pytest.fixture(scope="module")
def log():
    """The second arm is far better, so that a lower epsilon is better."""
    rng = np.random.default_rng(0)
    action = rng.integers(2, size=1200)
    reward = (rng.random(1200) < 0.1 + 0.7 * action) * 1.0
    return Log.from_arrays(action, reward, propensity=np.full(1200, 0.5))


def test_the_best_table_is_chosen_and_evaluated_on_held_out_rows(log):
    heard = []
    found = tune(
        log,
        "epsilon-greedy-0.1",
        {"epsilon": EPSILONS},
        trials=8,
        progress=lambda number, values, value: heard.append((number, values, value)),
    )
    assert found.policy == {"kind": "epsilon-greedy", "epsilon": 0.05}
    assert [one[0] for one in heard] == list(range(1, 9))
    assert found.trials == [(values, value) for _, values, value in heard]
    assert found.chosen_value == max(value for _, value in found.trials)
    assert found.to_pandas()["value"].tolist() == [value for _, value in found.trials]
    assert found.held_out.estimates[0].value == pytest.approx(log.reward[900:].mean())


def test_every_trial_is_learned_from_one_half_and_valued_on_a_quarter(log):
    found = tune(log, "epsilon-greedy-0.1", {"epsilon": EPSILONS}, trials=3, estimator="snips")
    logged = Evaluator(log.rows(np.arange(600, 900))).sample
    for values, value in found.trials:
        learned = learn(log.rows(np.arange(600)), {"kind": "epsilon-greedy", **values})
        evidence = logged.about(learned)
        assert value == pytest.approx(make_off_policy("snips").terms(evidence).value)


def test_a_trial_whose_value_is_no_number_never_wins(log):
    # The rows by which a trial is chosen have only the first arm, and without exploration the
    # second one is always taken: no row counts.
    action = np.where(np.arange(1200) // 300 == 2, 0, log.action[:, 0])
    only_first = Log.from_arrays(action, log.reward, propensity=log.propensity)
    search = {"epsilon": [0.5, 0.0]}
    found = tune(only_first, "epsilon-greedy-0.1", search, trials=6, estimator="snips")
    values = {one["epsilon"]: value for one, value in found.trials}
    # The first one is compared with all others.
    assert np.isnan(found.trials[0][1])
    assert found.chosen_value == values[0.5]
    assert found.policy["epsilon"] == 0.5


@pytest.mark.parametrize(
    ("search", "options", "parameter"),
    [
        ({}, {}, "search"),
        ({"epsilonn": [1]}, {}, None),
        ({"epsilon": [0.1, 7]}, {}, None),
        ({"epsilon": "0.1..7.0"}, {}, None),
        ({"epsilon": [0.1]}, {"trials": 0}, "trials"),
        ({"epsilon": [0.1]}, {"estimator": "drr"}, None),
        ({"epsilon": [0.1]}, {"by": "luck"}, None),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_learned(
    log, search, options, parameter, monkeypatch
):
    monkeypatch.setattr(Log, "rows", None)
    with raises_code("invalid-input", parameter):
        tune(log, "epsilon-greedy-0.1", search, **options)


BASE = {"kind": "epsilon-greedy", "epsilon": 0.1}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.1,0.2", {"choices": (0.1, 0.2)}),
        ("0..1", {"low": 0, "high": 1, "log": False, "step": 1}),
        ("0.1..1", {"low": 0.1, "high": 1.0, "log": False, "step": None}),
        ("1e-3..1e-1:log", {"low": 0.001, "high": 0.1, "log": True, "step": None}),
    ],
)
def test_what_to_try_is_read(text, expected):
    assert search_space({"epsilon": text}, BASE)["epsilon"]._asdict() == expected


@pytest.mark.parametrize("text", ["", "1..0", "0..1:log", "x..y", "0.1..", "nan..1"])
def test_what_makes_no_sense_is_refused(text):
    with raises_code("invalid-input"):
        search_space({"epsilon": text}, BASE)
