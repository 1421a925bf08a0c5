"""The environment `Classification` if every replica meets each row once."""

from itertools import permutations

import numpy as np
import pytest
from refusals import raises_code

from submax.environments.tables import Classification
from submax.policies import make_policy
from submax.simulation.delays import BatchedRewards, Lag
from submax.simulation.experiment import cells, load_file
from submax.simulation.runner import dry_run, run_cell
from submax.simulation.simulate import simulate


def numbered(rows, **settings):
    """A table whose only feature is the number of the row."""
    labels = np.arange(rows) % 3
    return Classification.of(np.arange(rows)[:, None], labels, standardize=False, **settings)


@pytest.fixture
def met(monkeypatch):
    """The rows that simulations meet: their blocks ``[R, n]``, as they come."""
    blocks, contexts = [], Classification.contexts

    def recorded(self, *arguments):
        block = contexts(self, *arguments)
        blocks.append(block[..., 0].astype(int))
        return block

    monkeypatch.setattr(Classification, "contexts", recorded)
    return blocks


def rows_met(met, environment, policy="random", **settings):
    """The number of every row in the order of one simulation: ``[R, observations]``."""
    met.clear()
    simulate(environment, make_policy(policy), **settings)
    return np.concatenate(met, axis=1)


@pytest.mark.parametrize(
    "delay", [BatchedRewards(1), BatchedRewards(7), BatchedRewards(100), Lag(9), Lag(80)]
)
def test_every_replica_meets_each_row_once(met, delay, seed):
    environment = numbered(60, replacement=False)
    rows = rows_met(met, environment, observations=60, replicas=5, delay=delay, seed=seed)
    assert np.array_equal(np.sort(rows, axis=1), np.tile(np.arange(60), (5, 1)))
    assert len({tuple(one) for one in rows.tolist()}) == 5


def test_with_replacement_some_rows_come_again(met, seed):
    rows = rows_met(met, numbered(60), observations=60, replicas=5, seed=seed)
    assert all(len(set(one)) < 60 for one in rows.tolist())


@pytest.mark.filterwarnings("ignore::submax.ContextIgnoredWarning")
def test_the_same_seed_gives_the_same_orders_to_every_policy_and_delay(met, seed):
    environment = numbered(40, replacement=False)
    settings = {"observations": 40, "replicas": 4, "seed": seed}
    rows = rows_met(met, environment, **settings)
    for policy in ("ucb1", "rcp-submax"):
        for delay in (BatchedRewards(1), BatchedRewards(16), Lag(3)):
            again = rows_met(met, environment, policy, delay=delay, **settings)
            assert np.array_equal(again, rows)
    other = rows_met(met, environment, **{**settings, "seed": seed + 1})
    assert not np.array_equal(other, rows)


def test_every_order_is_as_likely_as_any_other(seed):
    replicas = 12_000
    world = numbered(3, replacement=False).reset(replicas, np.random.default_rng(seed))
    error = np.sqrt(replicas * (1 / 6) * (5 / 6))
    for order in permutations(range(3)):
        count = np.sum(np.all(world.order == order, axis=1))
        assert abs(count - replicas / 6) < 5 * error


def test_contexts_are_those_that_come_next_until_the_world_advances(seed):
    environment, rng = numbered(10, replacement=False), np.random.default_rng(seed)
    world = environment.reset(2, rng)
    first = environment.contexts(world, 4, rng)
    assert np.array_equal(first, environment.contexts(world, 4, rng))
    later = environment.advance(environment.advance(world, 1, rng), 3, rng)
    rest = environment.contexts(later, 6, rng)
    whole = environment.contexts(world, 10, rng)
    assert np.array_equal(np.concatenate([first, rest], axis=1), whole)
    assert environment.contexts(environment.advance(later, 6, rng), 0, rng).shape == (2, 0, 1)


@pytest.mark.parametrize("delay", [BatchedRewards(1), BatchedRewards(8), BatchedRewards(100)])
def test_more_decisions_than_rows_are_refused_before_any_is_taken(met, delay):
    environment = numbered(20, replacement=False)
    assert environment.most_decisions == 20
    with raises_code("invalid-input", "observations"):
        simulate(environment, make_policy("random"), observations=21, replicas=2, delay=delay)
    assert not met


def test_contexts_beyond_the_last_row_are_refused():
    environment, rng = numbered(20, replacement=False), np.random.default_rng(0)
    with raises_code("invalid-input", "observations"):
        environment.contexts(environment.reset(2, rng), 21, rng)


def test_a_cell_takes_no_more_decisions_than_its_table_has_rows(met, tmp_path):
    for rows in (2, 30, 90):
        lines = "".join(f"{row},{row % 2}\n" for row in range(rows))
        (tmp_path / f"rows{rows}.csv").write_text(f"x,label\n{lines}")
    file = tmp_path / "own.toml"
    file.write_text(
        'observations = 50\nreplicas = 3\npolicies = ["random", "linucb"]\n'
        '[environment]\nkind = "classification"\nreplacement = [false, true]\n'
        'file = ["rows2.csv", "rows30.csv", "rows90.csv"]\n'
    )
    every = cells(load_file(file))
    dry_run(every)
    found = {(cell.labels["file"], cell.labels["replacement"]): cell for cell in every}
    decisions = {key: cell.observations for key, cell in found.items()}
    without = {("rows2.csv", False): 2, ("rows30.csv", False): 30, ("rows90.csv", False): 50}
    assert decisions == {**without, **{(name, True): 50 for name, _ in without}}
    met.clear()
    assert run_cell(found["rows30.csv", False]).steps[-1] == 30
    assert np.concatenate(met, axis=1).shape == (3, 30)


@pytest.mark.parametrize("value", [0, "false"])
def test_replacement_is_true_or_false(value):
    with raises_code("invalid-input", "replacement"):
        numbered(5, replacement=value)
