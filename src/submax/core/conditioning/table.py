"""The conditioned probabilities that strategies read."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from submax.core.arrays import Floats


class Experience(NamedTuple):
    """How much stands behind a table, for strategies that ask.

    ``evidence [..., L]`` is how many observations each row of probabilities is worth, smoothing
    included; ``observations [...]`` how many there were; ``decisions [...]`` how many are taken
    before more come back.
    """

    evidence: Floats
    observations: Floats
    decisions: Floats


class Table(NamedTuple):
    """Conditioned probabilities of M actions at L reward levels, lowest level first.

    ``probabilities [..., L, M]`` is π(a | c, level); ``levels [..., L]`` are the rewards
    conditioned on; ``prior [..., L]`` is how often each level was observed; ``values [..., L]`` is
    the importance-sampled reward of each conditioned policy, NaN where no propensities were logged
    or the strategy does not ask for it; ``experience`` is None where it does not ask for that.
    """

    probabilities: Floats
    levels: Floats
    prior: Floats
    values: Floats
    experience: Experience | None = None


@lru_cache(16)
def unknown_values(shape: tuple[int, ...]) -> Floats:
    """Values that no one has computed; for one decision at a time, making them would be felt."""
    values = np.full(shape, np.nan)
    values.setflags(write=False)
    return values


@lru_cache(16)
def no_probabilities(shape: tuple[int, ...]) -> Floats:
    """The probabilities of no action, for so many levels."""
    return np.empty((*shape, 0))
