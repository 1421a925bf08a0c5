"""Rankings from a table to a comparison with intervals."""

from itertools import permutations

import numpy as np
import pytest
from positions import IndependentPositions
from refusals import raises_code
from scipy import stats

from submax.research.beyond.rankings import PlackettLuce, Slates, compare_rankings

ITEMS, POSITIONS = 4, 3
THETA, ATTRACTION = np.array([1.0, 0.6, 0.3]), np.array([0.1, 0.2, 0.3, 0.5])
TARGET = PlackettLuce(np.array([0.0, 0.5, 1.0, 1.5]))
SLATES = np.array(list(permutations(range(ITEMS), POSITIONS)))
CHANCE = np.take_along_axis(TARGET.conditional(SLATES), SLATES[..., None], axis=2)[..., 0]
TRUTH = float(CHANCE.prod(axis=1) @ (ATTRACTION[SLATES] @ THETA))
ESTIMATORS = ("sips", "rips", "cascade-dr")


def table_of(rng, slates=300):
    """Uniformly random rankings, clicked by the position-based model; a row for each position."""
    item = np.argsort(rng.random((slates, ITEMS)), axis=1)[:, :POSITIONS]
    clicked = rng.random(item.shape) < THETA * ATTRACTION[item]
    row = np.arange(slates)[:, None], np.arange(POSITIONS), item
    return {
        "slate": np.repeat(np.arange(slates), POSITIONS),
        "position": np.tile(np.arange(1, POSITIONS + 1), slates),
        "action": np.array(list("ABCD"))[item].ravel(),
        "reward": clicked.ravel() * 1,
        "propensity": np.tile(1 / (ITEMS - np.arange(POSITIONS)), slates),
        "new": TARGET.conditional(item)[row].ravel(),
    }


def sorted_policy(slates):
    """The target with its scores in the order of the items of the log."""
    order = ["ABCD".index(name) for name in slates.items]
    return PlackettLuce(TARGET.scores[0][order])


def test_columns_and_objects_give_the_same_numbers(rng, mentioned):
    slates = Slates.read(table_of(rng), policies={"new": "new"})
    policy = sorted_policy(slates)
    found = compare_rankings(slates, {"object": policy})
    for name in ("sips", "rips"):
        one, other = found.find("new", name), found.find("object", name)
        assert one.value == pytest.approx(other.value)
        assert one.interval == pytest.approx(other.interval)
    with raises_code("invalid-input"):
        found.find("new", "cascade-dr")
    assert mentioned(found.notes, "cascade-dr")
    assert found.find("object", "cascade-dr").policy == "object"
    reward = slates.reward.sum(axis=1)
    assert found.estimates[0].value == pytest.approx(reward.mean())
    marked = [one.policy for one in found.recommended()]
    assert marked == ["logging policy", "new", "object"]


def test_scores_may_differ_between_slates(rng):
    slates = Slates.read(table_of(rng, 40))
    same = sorted_policy(slates)
    each = PlackettLuce(np.tile(same.scores, (40, 1)))
    found = compare_rankings(slates, {"one": same, "each": each})
    for name in ESTIMATORS:
        assert found.find("one", name).value == pytest.approx(found.find("each", name).value)
    table = IndependentPositions(rng.dirichlet(np.ones(ITEMS), size=(40, POSITIONS)))
    assert np.isfinite(compare_rankings(slates, {"p": table}).find("p", "sips").value)


@pytest.mark.parametrize("logs", [50, pytest.param(400, marks=pytest.mark.soak)])
def test_intervals_by_slate_cover_the_truth(rng, logs):
    covered = dict.fromkeys(ESTIMATORS, 0)
    for _ in range(logs):
        slates = Slates.read(table_of(rng, 200))
        found = compare_rankings(slates, {"p": sorted_policy(slates)})
        for name in covered:
            ends = found.find("p", name).interval
            covered[name] += ends.low <= TRUTH <= ends.high
    for name, count in covered.items():
        assert count / logs > 0.93 - 4.5 * np.sqrt(0.93 * 0.07 / logs), name


def test_clusters_of_slates_widen_intervals(rng):
    table = table_of(rng, 100)
    twice = {name: np.tile(column, 2) for name, column in table.items()}
    twice["slate"] = np.repeat(np.arange(200), POSITIONS)
    twice["user"] = np.tile(table["slate"], 2)
    single = compare_rankings(Slates.read(table, policies={"p": "new"}), interval="normal")
    by_user = Slates.read(twice, policies={"p": "new"}, columns={"cluster": "user"})
    clustered = compare_rankings(by_user, interval="normal")
    one, other = (found.find("p", "sips").interval for found in (single, clustered))
    # A log that repeats every slate knows no more than the log itself.
    assert sum(other) == pytest.approx(sum(one))
    student = stats.t.ppf(0.975, 99) / stats.norm.ppf(0.975)
    assert other.high - other.low == pytest.approx(student * (one.high - one.low))


def test_short_slates_are_padded(rng):
    table = {
        "slate": ["x", "x", "y"],
        "position": [0, 1, 0],
        "action": ["A", "B", "B"],
        "reward": [1, 0, 1],
        "propensity": [0.5, 0.5, 0.5],
        "p": [1.0, 0.5, 0.25],
    }
    slates = Slates.read(table, policies={"p": "p"})
    np.testing.assert_array_equal(slates.filled, [[True, True], [True, False]])
    found = compare_rankings(slates, estimators=["sips"])
    assert found.find("p", "sips").value == pytest.approx((2 * 1 + 0.5 * 1) / 2)


@pytest.mark.parametrize(
    "change",
    [{"position": 1}, {"propensity": 0.0}, {"position": 1.5}, {"action": None}, {"position": None}],
    ids=str,
)
def test_impossible_slates_are_refused(rng, change):
    table = table_of(rng, 4)
    for name, value in change.items():
        table[name] = [*table[name][:-1].tolist(), value]
    with raises_code("invalid-input"):
        Slates.read(table)


def test_what_cannot_be_evaluated_is_refused(rng):
    table = table_of(rng, 20)
    slates = Slates.read(table)
    with raises_code("invalid-input", "policies"):
        compare_rankings(slates)
    for other in (np.zeros(3), np.zeros(5), np.zeros((9, ITEMS))):
        with raises_code("invalid-input", "policies"):
            compare_rankings(slates, {"p": PlackettLuce(other)})
    with raises_code("invalid-input", "estimators"):
        compare_rankings(Slates.read(table, policies={"p": "new"}), estimators=["cascade-dr"])
    with raises_code("invalid-input", "slate"):
        Slates.read({"position": [1]})


def test_the_report_of_slates_has_all_numbers(rng, tmp_path):
    slates = Slates.read(table_of(rng), policies={"new": "new"})
    found = compare_rankings(slates)
    assert found.unit == "slate"
    found.report(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    for one in found.estimates:
        assert f"{one.value:.4g}" in text
    assert slates.fingerprint in text
    # Every slate has three of the four items, and all positions.
    facts = {(one.slot, one.action): one for one in found.overview.choices}
    assert [facts["position", str(one)].rows for one in (1, 2, 3)] == [300] * 3
    place = np.nonzero(slates.item == slates.items.index("A"))
    assert facts["", "A"].rows == len(place[0])
    assert facts["", "A"].mean_reward == pytest.approx(slates.reward[place].mean())
    table = found.to_pandas("actions")
    assert table["action"].tolist() == [one.action for one in found.overview.choices]
