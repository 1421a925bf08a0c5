"""Upper confidence bounds with sample-average uncertainty."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import non_negative
from submax.core.contracts.listing_policy import ListingPolicy
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
