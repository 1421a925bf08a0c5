"""Conformance suite of strategies."""

from collections.abc import Iterator

import numpy as np

from submax.core.arrays import Floats
from submax.core.conditioning import SampleSizes, Strategy, Table, WeightedStrategy
from submax.testing.assertions import (
    copied,
    require,
    require_close,
    require_equal_copy,
    require_instance,
    require_table_shape,
    unchanged,
)

LEADING: tuple[tuple[int, ...], ...] = ((), (5,), (3, 4))
SIZES = (1, 2, 3, 7)
LEVELS = np.array([0.0, 1.0])


def check_strategy(strategy: Strategy, seed: int = 0) -> None:
    """Raise an AssertionError if ``strategy`` breaks its contract on tables of two levels."""
    require_instance(strategy, Strategy)
    require_equal_copy(strategy)
    for table in hostile_tables():
        _check_weights(strategy, table)
        _check_policy(strategy, table, _check_purity(strategy, table))
    rng = np.random.default_rng(seed)
    for leading in LEADING:
        for size in SIZES:
            table = random_table(leading, size, rng)
            _check_weights(strategy, table)
            policy = _check_purity(strategy, table)
            _check_policy(strategy, table, policy)
            _check_permutation(strategy, table, policy, rng)
            _check_leading_axes(strategy, table, policy)
            _check_unseen_levels(strategy, table)


def random_table(leading: tuple[int, ...], size: int, rng: np.random.Generator) -> Table:
    """Draw a table of two levels with any conditioned policies, prior and values."""
    return Table(
        probabilities=rng.dirichlet(np.ones(size), size=(*leading, 2)),
        levels=np.broadcast_to(LEVELS, (*leading, 2)),
        prior=rng.dirichlet(np.ones(2), size=leading),
        values=rng.random((*leading, 2)),
        sample_sizes=SampleSizes(
            observation_weight=rng.uniform(0.1, 1000, size=(*leading, 2)),
            observations=rng.uniform(0, 1000, size=leading),
            decisions=np.floor(rng.uniform(0, 1000, size=leading)),
        ),
    )


def hostile_tables() -> Iterator[Table]:
    """Make tables with zeros, equal rows, rows that nearly agree, and levels never seen."""
    rows = (
        [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]],
        [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]],
        [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]],
        [[0.2, 0.3, 0.5], [0.2, 0.3, 0.5]],
        [[0.1, 0.2, 0.7], [0.1 + 1e-16, 0.2, 0.7 - 1e-16]],
        [[1e-300, 0.5, 0.5], [0.5, 0.5, 1e-300]],
        [[1 - 1e-12, 1e-12, 0.0], [1 - 2e-12, 2e-12, 0.0]],
    )
    for probabilities in rows:
        for prior in ([0.5, 0.5], [1.0, 0.0], [0.0, 1.0], [1 - 1e-15, 1e-15]):
            for values in ([0.0, 0.0], [0.2, 0.1], [0.1, 0.2]):
                for weight in ([100.0, 10.0], [1e9, 1e-3]):
                    yield Table(
                        np.array(probabilities),
                        LEVELS,
                        np.array(prior),
                        np.array(values),
                        SampleSizes(np.array(weight), np.array(1e3), np.array(10.0)),
                    )


def _check_policy(strategy: Strategy, table: Table, policy: Floats) -> None:
    leading, size = table.prior.shape[:-1], table.probabilities.shape[-1]
    require_table_shape(policy, "M", (*leading, size), strategy, "probabilities")
    sums = policy.sum(axis=-1)
    rules = {
        "probabilities must be finite": np.all(np.isfinite(policy)),
        "no probability may be negative": np.all(policy >= 0),
        "they must sum to one": np.allclose(sums, 1, rtol=1e-5, atol=1e-9),
    }
    for rule, kept in rules.items():
        # To write a table into a message takes longer than all that is computed from it.
        if not kept:
            require(False, strategy, f"{rule} on {table}; their sums are {sums}")


def _check_weights(strategy: Strategy, table: Table) -> None:
    if isinstance(strategy, WeightedStrategy):
        found = strategy.weights(table)
        require_table_shape(found, "L", table.prior.shape, strategy, "weights")


def _check_purity(strategy: Strategy, table: Table) -> Floats:
    """Return the policy of the table."""
    before = copied(table)
    once = strategy.probabilities(table)
    require(unchanged(before, table), strategy, "the table must not be changed")
    again = strategy.probabilities(table)
    same = np.array_equal(once, again, equal_nan=True)
    require(same, strategy, "the same table must give the same policy")
    return once


def _check_permutation(
    strategy: Strategy, table: Table, policy: Floats, rng: np.random.Generator
) -> None:
    size = table.probabilities.shape[-1]
    for order in (np.roll(np.arange(size), 1), rng.permutation(size)):
        permuted = table._replace(probabilities=table.probabilities[..., order])
        require_close(
            strategy.probabilities(permuted),
            policy[..., order],
            strategy,
            "a permutation of the actions must permute the policy",
            rtol=1e-9,
            atol=1e-9,
        )


def _check_leading_axes(strategy: Strategy, table: Table, together: Floats) -> None:
    for place in np.ndindex(table.prior.shape[:-1]):
        alone = strategy.probabilities(_part(table, place))
        require_close(
            alone,
            together[place],
            strategy,
            "the entries of the leading axes must be independent",
            rtol=1e-12,
            atol=1e-12,
        )


def _part(table: Table, place: tuple[int, ...]) -> Table:
    assert table.sample_sizes is not None
    sizes = SampleSizes(*(part[place] for part in table.sample_sizes))
    return Table(
        table.probabilities[place],
        table.levels[place],
        table.prior[place],
        table.values[place],
        sizes,
    )


def _check_unseen_levels(strategy: Strategy, table: Table) -> None:
    if not isinstance(strategy, WeightedStrategy):
        return
    uniform = 1 / table.probabilities.shape[-1]
    for level in range(2):
        unseen = np.zeros_like(table.prior)
        unseen[..., 1 - level] = 1.0
        changed = table._replace(prior=unseen)
        carries: Floats = strategy.weights(changed)[..., level]
        policy = strategy.probabilities(changed)[carries != 0]
        rule = "it must be uniform where a level that carries weight was never observed"
        require_close(policy, uniform, strategy, rule, rtol=1e-5, atol=1e-8)
