import numpy as np
import pytest
from refusals import raises_code
from sklearn.dummy import DummyRegressor

from submax.core.numerics import draw
from submax.evaluation import Log, compare
from submax.evaluation.propensities import ActionGroups

ACTIONS, GENRES, ROWS = 30, 3, 600
NAMES = [f"film{number}" for number in range(ACTIONS)]


def described(number):
    return {"genre": f"g{number % GENRES}", "length": float(number)}


def log_of(rng, rows=ROWS, uniform=True, features=described, columns=None):
    """A log of many actions whose rewards depend only on their genre and on the context."""
    x = rng.normal(size=rows)
    chances = np.full((rows, ACTIONS), 1 / ACTIONS)
    if not uniform:
        chances = np.exp(np.outer(x, np.arange(ACTIONS) % GENRES) * 0.5)
        chances /= chances.sum(axis=1, keepdims=True)
    action = draw(chances[None], rows, rng)[0]
    reward = (rng.random(rows) < rate(action % GENRES, x)) * 1
    table = {
        "action": np.array(NAMES)[action],
        "reward": reward,
        "propensity": chances[np.arange(rows), action],
        "context_x": x,
    }
    about = {name: features(number) for number, name in enumerate(NAMES)}
    return Log.read(table, actions=NAMES, action_features=about, columns=columns), x


def rate(genre, x):
    return 0.2 + 0.2 * genre + 0.1 * (x > 0)


def policy_of(rows):
    table = np.full((rows, ACTIONS), 0.2 / ACTIONS)
    table[:, 2] += 0.8
    return table


def test_the_weights_of_a_uniform_log_are_those_of_the_genres(rng):
    log, _ = log_of(rng)
    groups = ActionGroups.of(log, 0)
    assert groups.model is None
    np.testing.assert_allclose(groups.propensity(log), 1 / GENRES)
    genre = log.action[:, 0].astype(int) % GENRES
    share = np.array([0.2 / GENRES, 0.2 / GENRES, 0.8 + 0.2 / GENRES])
    expected = np.mean(GENRES * share[genre] * log.reward)
    found = compare(log, {"p": policy_of(ROWS)}, estimators=["mips"], reward_model=DummyRegressor())
    assert found.find("p", "mips").value == pytest.approx(expected)
    # Without categories, actions with the same numbers are a group.
    numbers, _ = log_of(rng, 50, features=lambda number: {"length": float(number // 10)})
    np.testing.assert_allclose(ActionGroups.of(numbers, 0).propensity(numbers), 1 / 3)


def test_the_propensities_of_groups_of_another_log_are_estimated(rng):
    log, x = log_of(rng, 3000, uniform=False)
    groups = ActionGroups.of(log, 0)
    assert groups.model is not None
    power = np.exp(np.outer(x, np.arange(GENRES)) * 0.5)
    power /= power.sum(axis=1, keepdims=True)
    truth = power[np.arange(3000), log.action[:, 0].astype(int) % GENRES]
    # A logistic regression of 4 free numbers: the error is about √(4 / rows) of a probability.
    assert np.sqrt(np.mean((groups.propensity(log) - truth) ** 2)) < 4 * np.sqrt(4 / 3000) * 0.5
    policy = {"p": policy_of(3000)}
    found = compare(log, policy, estimators=["mips"], reward_model=DummyRegressor())
    # One warning is about what mips assumes, the other one about estimated propensities.
    assert len(found.find("p", "mips").cautions) == 2


def test_mips_varies_less_than_ips_and_is_right_if_only_genres_matter(rng):
    errors = {"ips": [], "mips": []}
    truth = 0.8 * 0.6 + 0.2 * 0.4 + 0.05
    for _ in range(60):
        log, _ = log_of(rng, 300, columns={"context": None})
        found = compare(
            log, {"p": policy_of(300)}, estimators=["ips", "mips"], reward_model=DummyRegressor()
        )
        for name, values in errors.items():
            values.append(found.find("p", name).value - truth)
    mips = np.array(errors["mips"])
    assert abs(mips.mean()) < 4.5 * mips.std(ddof=1) / np.sqrt(60)
    # The expected ratio is about 4; an F test of 59 degrees of freedom allows a factor of 3.5.
    assert mips.std() < np.std(errors["ips"]) / 1.1


def test_without_features_mips_is_refused_and_not_used(rng):
    action = rng.integers(3, size=50)
    log = Log.from_arrays(action, action > 0, propensity=np.full(50, 1 / 3))
    assert "mips" not in compare(log, ["random"]).estimators()
    with raises_code("invalid-input", "estimators"):
        compare(log, ["random"], estimators=["mips"])
