import numpy as np
import pytest
from refusals import raises_code

from submax.evaluation import Log, learn_best, tune
from submax.policies.specification import variants

POLICY = "epsilon-greedy-0.1"


@pytest.fixture(scope="module")
def log():
    """The second arm is far better, so that a lower epsilon is better."""
    rng = np.random.default_rng(0)
    action = rng.integers(2, size=1200)
    reward = (rng.random(1200) < 0.1 + 0.7 * action) * 1.0
    return Log.read({"action": action, "reward": reward, "propensity": np.full(1200, 0.5)})


def test_the_best_parameters_are_those_of_the_best_policy(log):
    heard, epsilons = [], [0.05, 0.5, 0.9]
    found = tune(log, POLICY, {"epsilon": epsilons}, progress=lambda *one: heard.append(one))
    assert found.winner == "epsilon=0.05"
    assert found.learned.specification == {"kind": "epsilon-greedy", "epsilon": 0.05}
    assert heard[:3] == [(f"epsilon={one}", place, 3) for place, one in enumerate(epsilons)]
    given = [
        {"name": f"epsilon={one}", "kind": "epsilon-greedy", "epsilon": one} for one in epsilons
    ]
    assert learn_best(log, given).rows() == found.rows()


@pytest.mark.parametrize(
    ("search", "options", "parameter"),
    [
        ({}, {}, "search"),
        ({"epsilonn": [1]}, {}, None),
        ({"epsilon": [0.1, 7]}, {}, None),
        ({"epsilon": "0.5..7.0"}, {}, None),
        ({"epsilon": [0.1]}, {"trials": 0}, "trials"),
        ({"epsilon": [0.1, 0.2]}, {"by": "luck"}, None),
        *(
            ({"epsilon": text}, {}, "search")
            for text in ("1..0", "0..1:log", "x..y", "0.1..", "nan..1")
        ),
        ({"epsilon": ""}, {}, None),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_learned(
    log, search, options, parameter, monkeypatch
):
    monkeypatch.setattr(Log, "rows", None)
    with raises_code("invalid-input", parameter):
        tune(log, POLICY, search, **options)


def test_ranges_are_drawn_and_many_combinations_are_sampled():
    def values(search, trials=50):
        return [one["epsilon"] for one in variants(POLICY, {"epsilon": search}, trials, 0)]

    assert values("0.1,0.2") == values([0.1, 0.2]) == [0.1, 0.2]
    assert values("0..1") == [0, 1]
    linear, logarithmic = values("0.1..0.9", 400), values("1e-3..1e-1:log", 400)
    assert 0.1 <= min(linear) < max(linear) <= 0.9
    assert np.median(linear) == pytest.approx(0.5, abs=0.1)
    assert 1e-3 <= min(logarithmic) < max(logarithmic) <= 1e-1
    assert np.median(logarithmic) == pytest.approx(1e-2, rel=0.4)
    # All four values and all three of the other parameter are tried.
    search = {"width": [0.1, 0.2, 0.5, 1.0], "draws": "16,32,64"}
    found = variants("linear-thompson", search, 8, 0)
    assert len(found) <= 8
    assert {one["width"] for one in found} == {0.1, 0.2, 0.5, 1.0}
    assert {one["draws"] for one in found} == {16, 32, 64}
    assert len(variants("linear-thompson", search, 12, 0)) == 12
