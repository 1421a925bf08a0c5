"""Conformance suite of strategies."""

from collections.abc import Iterator
from itertools import product

import numpy as np

from submax.core.arrays import Floats
from submax.core.conditioning import SampleSizes, Strategy, Table, WeightedStrategy
from submax.testing.assertions import Rules, contents

LEADING: tuple[tuple[int, ...], ...] = ((), (5,), (3, 4))
SIZES = (1, 2, 3, 7)
LEVELS = np.array([0.0, 1.0])


def check_strategy(strategy: Strategy, seed: int = 0) -> None:
    """Raise an AssertionError if ``strategy`` breaks its contract on tables of two levels."""
    rules = Rules(strategy, Strategy)
    rules.equal_copy()
    for table in hostile_tables():
        _check_policy(rules, table)
    rng = np.random.default_rng(seed)
    for leading, size in product(LEADING, SIZES):
        table = random_table(leading, size, rng)
        policy = _check_policy(rules, table)
        for order in (np.roll(np.arange(size), 1), rng.permutation(size)):
            permuted = table._replace(probabilities=table.probabilities[..., order])
            rule = "a permutation of the actions must permute the policy"
            rules.close(
                strategy.probabilities(permuted), policy[..., order], rule, rtol=1e-9, atol=1e-9
            )
        for place in np.ndindex(leading):
            rule = "the entries of the leading axes must be independent"
            alone = strategy.probabilities(_part(table, place))
            rules.close(alone, policy[place], rule, rtol=1e-12, atol=1e-12)
        _check_unseen_levels(rules, table)


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
    priors = ([0.5, 0.5], [1.0, 0.0], [0.0, 1.0], [1 - 1e-15, 1e-15])
    some_values, weights = ([0.0, 0.0], [0.2, 0.1], [0.1, 0.2]), ([100.0, 10.0], [1e9, 1e-3])
    for parts in product(rows, priors, some_values, weights):
        probabilities, prior, values, weight = map(np.array, parts)
        sizes = SampleSizes(weight, np.array(1e3), np.array(10.0))
        yield Table(probabilities, LEVELS, prior, values, sizes)


def _check_policy(rules: Rules, table: Table) -> Floats:
    """Check weights and probabilities, and that nothing is changed; return the policy."""
    strategy, before = rules.subject, contents(table)
    if isinstance(strategy, WeightedStrategy):
        rules.shape(strategy.weights(table), "..., L", table.prior.shape, "weights")
    policy = strategy.probabilities(table)
    rules.require(before == contents(table), "the table must not be changed")
    same = np.array_equal(policy, strategy.probabilities(table), equal_nan=True)
    rules.require(same, "the same table must give the same policy")
    sizes = (*table.prior.shape[:-1], table.probabilities.shape[-1])
    rules.shape(policy, "..., M", sizes, "probabilities")
    rules.require(np.all(np.isfinite(policy)), f"probabilities must be finite on {table}")
    rules.require(np.all(policy >= 0), f"no probability may be negative on {table}")
    rules.close(policy.sum(axis=-1), 1, f"they must sum to one on {table}", rtol=1e-5, atol=1e-9)
    return policy


def _part(table: Table, place: tuple[int, ...]) -> Table:
    assert table.sample_sizes is not None
    sizes = SampleSizes(*(part[place] for part in table.sample_sizes))
    return Table._make([*(part[place] for part in table[:4]), sizes])


def _check_unseen_levels(rules: Rules, table: Table) -> None:
    strategy, uniform = rules.subject, 1 / table.probabilities.shape[-1]
    for level in range(2) if isinstance(strategy, WeightedStrategy) else ():
        unseen = np.zeros_like(table.prior)
        unseen[..., 1 - level] = 1.0
        changed = table._replace(prior=unseen)
        carries: Floats = strategy.weights(changed)[..., level]
        policy = strategy.probabilities(changed)[carries != 0]
        rule = "it must be uniform where a level that carries weight was never observed"
        rules.close(policy, uniform, rule, rtol=1e-5, atol=1e-8)
