"""Candidates that are compared on more and more rows."""

import numpy as np
import pytest

from submax.evaluation.choosing.race import FoldOfRace, Race
from submax.evaluation.contracts.terms import Terms

SIZES = (40, 60, 100)


def race_of(rng, means, spread=1.0, sizes=SIZES):
    """A race whose terms are normal, with these means; terms of one row are correlated."""
    folds = []
    for size in sizes:
        shared = rng.normal(size=size)
        terms = {
            name: Terms(mean + shared + spread * rng.normal(size=size))
            for name, mean in means.items()
        }
        folds.append(FoldOfRace(terms, float(size)))
    return Race(list(means), tuple(folds))


def test_values_and_leads_are_those_of_all_rows_together(rng):
    race = race_of(rng, {"p": 0.0, "q": 0.5})
    rows = {
        name: np.concatenate([fold.terms[name].numerator for fold in race.folds]) for name in "pq"
    }
    assert race.rows("p") == sum(SIZES)
    assert race.value("p") == pytest.approx(rows["p"].mean())
    lead = race.lead("q", "p")
    assert lead.value == pytest.approx((rows["q"] - rows["p"]).mean())
    # The variance within folds, so that it differs a little from that of all rows.
    variances = [
        np.var(fold.terms["q"].numerator - fold.terms["p"].numerator, ddof=1) for fold in race.folds
    ]
    assert lead.error == pytest.approx(np.sqrt(np.dot(SIZES, variances)) / sum(SIZES))
    other = race.lead("p", "q")
    assert (other.value, other.error) == pytest.approx((-lead.value, lead.error))


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
