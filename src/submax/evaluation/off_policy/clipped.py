"""Inverse propensity scoring with clipped weights."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import positive
from submax.evaluation.evidence import Evidence
from submax.evaluation.off_policy_estimator import OffPolicyEstimator
from submax.evaluation.terms import Terms
from submax.evaluation.threshold import candidates, least_error


@dataclass(frozen=True)
class Clipped(OffPolicyEstimator):
    """V = (1/n) Σ_i min(w_i, λ) r_i; λ is the ``threshold``, None: the one of least error.

    Clipping trades variance for bias, downward where rewards are not negative; the interval
    allows for that.

    Reference: Ionides (2008), Truncated importance sampling; the choice of λ by an estimate of the
    mean squared error follows Wang, Agarwal and Dudík (2017).
    """

    threshold: float | None = None
    short: ClassVar[str] = "clipped"

    def __post_init__(self) -> None:
        if self.threshold is not None:
            positive("threshold", self.threshold)

    def terms(self, evidence: Evidence) -> Terms:
        """The rewards with weights up to the threshold."""
        weight, reward = evidence.weight, evidence.reward

        def parts(threshold: float) -> tuple[Floats, Floats]:
            clipped = np.minimum(weight, threshold)
            return clipped * reward, (weight - clipped) * reward

        chosen = self.threshold or least_error(candidates(weight), parts)
        width = evidence.widest(np.array([0.0, chosen]))
        kept, lost = parts(chosen)
        return Terms(kept, width=width, threshold=chosen, lost=lost)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """A threshold that is given, and one that is chosen."""
        yield cls(2.0)
        yield cls()
