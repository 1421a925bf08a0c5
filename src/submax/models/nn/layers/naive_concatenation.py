"""The reward as one more input, with random initial weights."""

from typing import Self

import numpy as np

from submax.models.nn.layers.concatenation import Concatenation
from submax.models.nn.layers.dense import Dense


class NaiveConcatenation(Concatenation):
    """h ← ReLU(W [h, r] + b), in which all columns of W are drawn at random.

    This is the alternative in a footnote of section 4.3 of the paper, which says that later layers
    can ignore r. Different rewards begin with different functions.
    """

    @classmethod
    def drawn(cls, inputs: int, outputs: int, reward_width: int, rng: np.random.Generator) -> Self:
        return cls(Dense.drawn(inputs + reward_width, outputs, rng), reward_width)
