"""The environment `Classification` if labels pay by chance."""

import numpy as np
import pytest
from refusals import raises_code

from submax.environments.tables.classification import Classification
from submax.experiments.running.cells import cells, make_environment
from submax.experiments.specification import load_file
from submax.testing import check_environment

FEATURES = [[1.0], [2.0], [1.0], [4.0], [1.0]]
LABELS = ["b", "a", "b", "c", "a"]
SHARES = np.array([[1 / 3, 2 / 3, 0], [1, 0, 0], [1 / 3, 2 / 3, 0], [0, 0, 1], [1 / 3, 2 / 3, 0]])


def every_pair(environment, draws=1):
    """Each row of the table with each arm, for as many replicas as there are draws."""
    context = np.repeat(environment.rows.features, 3, axis=0)
    action = np.tile(np.arange(3), 5)[:, None]
    return np.tile(context, (draws, 1, 1)), np.tile(action, (draws, 1, 1))


@pytest.mark.parametrize("pays", [(0.0, 1.0), (0.01, 0.1), (0.3, 0.3), (0, 1), (0.25, 1.0)])
@pytest.mark.parametrize("replacement", [True, False])
def test_means_lie_between_the_two_chances_by_the_share(pays, replacement):
    low, high = pays
    environment = Classification.of(FEATURES, LABELS, replacement=replacement, pays=pays)
    world = environment.reset(1, np.random.default_rng(0))
    mean = environment.mean_reward(world, *every_pair(environment)).reshape(5, 3)
    assert np.allclose(mean, low + (high - low) * SHARES)
    assert np.all(mean[SHARES == 0] == low)
    assert np.all(mean[SHARES == 1] == high)
    best = environment.best_reward(world, environment.rows.features[None])
    assert np.array_equal(best[0], mean.max(axis=1))
    check_environment(environment)


def test_payments_are_as_frequent_as_the_chances_say(seed):
    draws = 20_000
    environment = Classification.of(FEATURES, LABELS, pays=(0.05, 0.8))
    context, action = every_pair(environment, draws)
    reward = environment.reward(draws, context, action, np.random.default_rng(seed))
    assert set(np.unique(reward)) == {0.0, 1.0}
    chance = (0.05 + 0.75 * SHARES).ravel()
    error = np.sqrt(chance * (1 - chance) / draws)
    assert np.all(np.abs(reward.mean(axis=0) - chance) < 5 * error)


def test_rewards_of_sure_labels_are_the_labels():
    environment = Classification.of(FEATURES, LABELS)
    pairs = every_pair(environment, 100)
    reward = environment.reward(100, *pairs, np.random.default_rng(0)).reshape(100, 5, 3)
    assert np.all(reward[:, SHARES == 1] == 1)
    assert np.all(reward[:, SHARES == 0] == 0)


@pytest.mark.parametrize(
    ("pays", "words"),
    [
        (0.1, r"two probabilities .* such as \(0.01, 0.1\), not 0.1"),
        ([0.01, 0.1], r"two probabilities .* not \[0.01, 0.1\]"),
        ((0.1,), "two probabilities"),
        ((0.1, 0.2, 0.3), "two probabilities"),
        ((-0.1, 0.2), "between 0 and 1, not -0.1"),
        ((0.1, 1.5), "between 0 and 1, not 1.5"),
        ((0.1, float("nan")), "between 0 and 1, not nan"),
        (("low", 1.0), "between 0 and 1, not 'low'"),
        ((0.0, True), "between 0 and 1, not True"),
        ((0.2, 0.1), r"probability for a wrong label, then.*not \(0.2, 0.1\): exchange the two"),
    ],
)
def test_other_payments_are_refused(pays, words, tmp_path):
    with raises_code("invalid-input"):
        Classification.of(FEATURES, LABELS, pays=pays)
    file = tmp_path / "rows.csv"
    file.write_text("x,label\n1,a\n2,b\n")
    with raises_code("invalid-input"):
        Classification(str(file), pays=pays)


def written(tmp_path, pays):
    (tmp_path / "rows.csv").write_text("x,label\n1,a\n2,b\n3,b\n")
    file = tmp_path / "own.toml"
    file.write_text(
        'observations = 30\npolicies = ["random"]\n'
        f'[environment]\nkind = "classification"\nfile = "rows.csv"\npays = {pays}\n'
    )
    return file


def test_in_an_experiment_file_a_list_within_a_list_is_one_configuration(tmp_path):
    (cell,) = cells(load_file(written(tmp_path, "[[0.01, 0.10]]")))
    assert make_environment(cell.environment).pays == (0.01, 0.1)
    assert cell.labels["pays"] == "0.01x0.1"
    both = cells(load_file(written(tmp_path, "[[0.01, 0.10], [0, 1]]")))
    assert [make_environment(cell.environment).pays for cell in both] == [(0.01, 0.1), (0.0, 1.0)]


def test_in_an_experiment_file_a_plain_list_is_one_configuration_too(tmp_path):
    (cell,) = cells(load_file(written(tmp_path, "[0.01, 0.10]")))
    assert make_environment(cell.environment).pays == (0.01, 0.1)


def test_in_an_experiment_file_a_number_for_a_list_is_refused_with_what_to_write(tmp_path):
    with raises_code("invalid-input"):
        cells(load_file(written(tmp_path, "0.5")))
