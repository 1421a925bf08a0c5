"""Terms of a log that was sampled: rows stand for others that were left out."""

from submax.core.arrays import Floats
from submax.evaluation.contracts.counts import mean
from submax.evaluation.contracts.terms import Terms


def sampled(terms: Terms, weight: Floats) -> Terms:
    """Return the terms of Σ_i s_i t_i / Σ_i s_i, where s_i is the sampling weight of a row.

    s_i is 1 / (probability with which the row was kept), so that the sums estimate those of the
    whole log. A ratio Σ_i y_i / Σ_i z_i becomes Σ_i s_i y_i / Σ_i s_i z_i. The interval is that of
    the ratio: a row with a weight of 10 is one observation, not ten as with a count of 10.

    Reference: Hájek (1971), for the ratio of weighted sums.
    """
    below = weight if terms.denominator is None else weight * terms.denominator
    plain = terms.without_threshold
    found = Terms(
        weight * terms.numerator,
        below,
        None,
        terms.threshold,
        None if plain is None else sampled(plain, weight),
        terms.counts,
    )
    if terms.reach is None:
        return found
    value, most = found.value, float(weight.max()) / mean(weight, terms.counts)
    low, high = (value + most * (end - value) for end in terms.reach)
    return found._replace(reach=(low, high))
