"""Upper confidence bounds with sample-average uncertainty."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import non_negative
from submax.core.contracts.listing_policy import ListingPolicy
from submax.core.memory.training import Training
from submax.policies.neural.highest import highest
from submax.policies.uncertainty.residual_belief import ResidualBelief
from submax.policies.uncertainty.sample_average_policy import SampleAveragePolicy


@dataclass(frozen=True)
class SampleAverageUCB(SampleAveragePolicy, ListingPolicy[ResidualBelief]):
    """Take the action with the highest upper confidence bound, v(a, c) + γ τ_a √(ln n / n_a).

    v is the value network, τ_a² the mean squared residual of action a, n_a the number of its
    observations and n that of all actions. γ is ``width``, which is 1 in the paper: the larger, the
    more is explored. Actions with equal bounds share the probability.

    Reference: Zhu and Rigotti (2021). `ResidualBelief` says where it departs from the paper.
    """

    width: float = 1.0

    def __post_init__(self) -> None:
        non_negative("width", self.width)
        super().__post_init__()

    def probabilities(self, state: ResidualBelief, context: Floats) -> Floats:
        value, error = state.scores(context)
        total = np.maximum(state.counts.sum(axis=1), 1.0)[:, None, None]
        return highest(value + self.width * np.sqrt(np.log(total)) * error)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield a small network with few training steps."""
        yield cls(hidden=4, training=Training(steps=6, batch=8, learning_rate=0.05))

    @classmethod
    def presets(cls) -> Mapping[str, Self]:
        """Return the policy of the paper."""
        return {"sample-average-ucb": cls()}
