"""The conditioned probabilities that strategies read."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from submax.core.arrays import Floats


class SampleSizes(NamedTuple):
    """How many observations stand behind a table, for strategies that ask.

    ``observation_weight [..., L]`` is how many observations each row of probabilities is worth,
    smoothing included; ``observations [...]`` is how many there were; ``decisions [...]`` is how
    many decisions are made before the next feedback.
    """

    observation_weight: Floats
    observations: Floats
    decisions: Floats


class Table(NamedTuple):
    """Conditioned probabilities of M actions at L reward levels, lowest level first.

    ``probabilities [..., L, M]`` is π(a | c, level); ``levels [..., L]`` are the rewards
    conditioned on; ``prior [..., L]`` is how often each level was observed; ``values [..., L]`` is
    the importance-sampled reward of each conditioned policy, NaN if propensities are missing or the
    strategy does not need it; ``sample_sizes`` is None if the strategy does not need it.
    """

    probabilities: Floats
    levels: Floats
    prior: Floats
    values: Floats
    sample_sizes: SampleSizes | None = None


@lru_cache(16)
def unknown_values(shape: tuple[int, ...]) -> Floats:
    """Return values that are all NaN, cached, because single decisions would notice their cost."""
    values = np.full(shape, np.nan)
    values.setflags(write=False)
    return values


@lru_cache(16)
def no_probabilities(shape: tuple[int, ...]) -> Floats:
    """Return an empty array of probabilities: shape ``[..., L, 0]``, cached."""
    return np.empty((*shape, 0))
