"""The conditioned probabilities that strategies read."""

from typing import NamedTuple

from submax.core.arrays import Floats


class Table(NamedTuple):
    """Conditioned probabilities of M actions at L reward levels, lowest level first.

    ``probabilities [..., L, M]`` is π(a | c, level); ``levels [..., L]`` are the rewards
    conditioned on; ``prior [..., L]`` is how often each level was observed; ``values [..., L]`` is
    the importance-sampled reward of each conditioned policy, NaN where no propensities were logged
    or the strategy does not ask for it.
    """

    probabilities: Floats
    levels: Floats
    prior: Floats
    values: Floats
