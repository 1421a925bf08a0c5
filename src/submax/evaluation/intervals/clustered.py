"""Terms of clusters, whose rows are not independent of each other."""

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.evaluation.contracts.terms import Terms


def clustered(terms: Terms, cluster: Integers) -> Terms:
    """Return terms of whole clusters that have the same mean, and the variance between clusters.

    With G clusters of n rows the term of a cluster is V + (G / n) Σ_i (t_i − V) over its rows, so
    that only clusters, such as users, have to be independent. ``cluster [n]`` is the number of the
    cluster of each row, from 0. The largest possible term is that of the largest cluster.

    Reference: Liang and Zeger (1986), whose cluster-robust variance this is.
    """
    influence, value = terms.influence(), terms.value
    sizes = np.bincount(cluster, weights=terms.counts)
    scale = len(sizes) / terms.decisions
    distance = influence - value if terms.counts is None else terms.counts * (influence - value)
    summed: Floats = np.bincount(cluster, weights=distance).astype(np.float64)
    reach = None
    if terms.reach is not None:
        most = scale * float(sizes.max())
        reach = (value + most * (terms.reach[0] - value), value + most * (terms.reach[1] - value))
    plain = terms.without_threshold
    return Terms(
        value + scale * summed,
        None,
        reach,
        terms.threshold,
        None if plain is None else clustered(plain, cluster),
    )
