"""Estimators of rankings against sums over all slates and all rewards of small problems."""

from itertools import permutations, product

import numpy as np
import pytest
from positions import IndependentPositions

from submax.evaluation.sums import mean
from submax.research.beyond.rankings import (
    RANKING_ESTIMATORS,
    PlackettLuce,
    SlateEvidence,
    Slates,
)

ITEMS, POSITIONS = 4, 3
CLICKS = np.array(list(product([0.0, 1.0], repeat=POSITIONS)))


def item_position(rng):
    """Clicks depend on item and position, each by itself."""
    rates = rng.uniform(0.1, 0.9, (POSITIONS, ITEMS))
    return lambda slate: rates[np.arange(POSITIONS), slate][None]


def interacting(rng):
    """The chance of a click depends on the items above and on the clicks above."""
    effect = rng.uniform(0.1, 0.3, (ITEMS, ITEMS))

    def chances(slate):
        found = np.empty(CLICKS.shape)
        for k, item in enumerate(slate):
            above = effect[item, slate[:k]] * (1 + CLICKS[:, :k])
            found[:, k] = 0.1 + effect[item, item] + above.sum(axis=1) / (2 * POSITIONS)
        return found

    return chances


def cascade(rng):
    """Users read from the top and stop at the first click."""
    attraction = rng.uniform(0.1, 0.9, ITEMS)

    def chances(slate):
        stopped = np.cumsum(CLICKS, axis=1) - CLICKS > 0
        return np.where(stopped, 0.0, attraction[slate])

    return chances


def from_below(rng):
    """The chance of a click depends on the item at the bottom, whatever users read first."""
    effect = rng.uniform(0.1, 0.9, (ITEMS, ITEMS))
    return lambda slate: effect[slate, slate[-1]][None]


def everything(model, policy, slates):
    """All slates with all clicks: their probability under a policy, and their clicks."""
    own = np.take_along_axis(policy.conditional(slates), slates[..., None], axis=2)[..., 0]
    chances = np.array([np.broadcast_to(model(one), CLICKS.shape) for one in slates])
    of_clicks = np.where(CLICKS > 0, chances, 1 - chances).prod(axis=2)
    return (own.prod(axis=1)[:, None] * of_clicks).ravel(), own


def evidence_of(model, logging, target, slates):
    """The evidence of all slates with all clicks, each as often as it is probable."""
    probability, own = everything(model, logging, slates)
    log = Slates(
        tuple("ABCD"),
        np.repeat(slates, len(CLICKS), axis=0),
        np.tile(CLICKS, (len(slates), 1)),
        np.repeat(own, len(CLICKS), axis=0),
    )
    found = SlateEvidence(log, 0).about(target)._replace(counts=probability)
    return found, log.item


def with_model(evidence, item, target, table):
    """The evidence with q̂ = ``table [K, M]`` in all rows, as if other slates had given it."""
    return evidence._replace(
        predicted=table[np.arange(POSITIONS), item],
        expected=(target.conditional(item) * table).sum(axis=2),
    )


def value(model, target, slates):
    probability, _ = everything(model, target, slates)
    return probability @ np.tile(CLICKS.sum(axis=1), len(slates))


def ranked(rng):
    slates = np.array(list(permutations(range(ITEMS), POSITIONS)))
    return PlackettLuce(rng.normal(size=ITEMS)), PlackettLuce(2 * rng.normal(size=ITEMS)), slates


def drawn(rng):
    slates = np.array(list(product(range(ITEMS), repeat=POSITIONS)))
    logging, target = rng.dirichlet(np.ones(ITEMS), size=(2, POSITIONS))
    return IndependentPositions(0.7 * logging + 0.3 / ITEMS), IndependentPositions(target), slates


UNBIASED = {
    item_position: ("sips", "rips", "cascade-dr"),
    interacting: ("sips", "rips", "cascade-dr"),
    cascade: ("sips", "rips", "cascade-dr"),
    from_below: ("sips",),
}


@pytest.mark.parametrize("policies", [ranked, drawn])
@pytest.mark.parametrize("users", UNBIASED)
def test_an_estimator_is_unbiased_if_and_only_if_its_assumption_holds(users, policies, seed):
    rng = np.random.default_rng(seed)
    model = users(rng)
    logging, target, slates = policies(rng)
    wanted = value(model, target, slates)
    evidence, item = evidence_of(model, logging, target, slates)
    evidence = with_model(evidence, item, target, rng.normal(size=(POSITIONS, ITEMS)))
    for name, estimator in RANKING_ESTIMATORS.items():
        found = mean(estimator.terms(evidence).numerator, evidence.counts)
        if name in UNBIASED[users]:
            assert found == pytest.approx(wanted, abs=1e-12), name
        else:
            assert abs(found - wanted) > 1e-6, name


def test_a_good_model_reduces_the_variance(seed):
    rng = np.random.default_rng(seed)
    logging, target, slates = ranked(rng)
    model = item_position(rng)
    evidence, item = evidence_of(model, logging, target, slates)
    # q̂ that is right for rewards which depend on item and position alone.
    rates = np.stack([model(np.full(POSITIONS, one))[0] for one in range(ITEMS)], axis=1)
    right = with_model(evidence, item, target, rates)
    # Of the terms of rips without its normalization, and of those of cascade-dr.
    plain = (RANKING_ESTIMATORS["rips"].weights(evidence) * evidence.reward).sum(axis=1)
    robust = RANKING_ESTIMATORS["cascade-dr"].terms(right).numerator
    assert evidence.counts @ robust**2 < evidence.counts @ plain**2
