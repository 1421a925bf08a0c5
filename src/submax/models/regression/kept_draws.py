"""Draws of coefficients that a belief keeps, and the random numbers they are made of."""

from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.running.stored import stored

CONTRAST_TOLERANCE = 1e-12
"""Contrasts below this share of the largest coefficient are rounding errors and count as 0."""


@stored("draw-noise")
class DrawNoise(NamedTuple):
    """The random numbers from which the stored draws are made, ``[P, K, F]`` each.

    ``prior`` are standard normal numbers, and ``rows`` is Σ √w φ ε over the rows, with a standard
    normal ε for each row and draw; see ``PosteriorCovariance.draw_responses``.
    """

    prior: Floats
    rows: Floats


@stored("kept-draws")
class KeptDraws(NamedTuple):
    """P posterior draws of the coefficients of ``FeatureMap.raw``, for K actions.

    A draw is the sum of ``common [P, F]``, its mean over the actions, and ``contrasts [P, K, F]``.
    Which action is best depends on the contrasts only. Stored separately, they keep the precision
    of small differences between large rewards.
    """

    common: Floats
    contrasts: Floats

    @classmethod
    def of(cls, coefficients: Floats) -> Self:
        """Split draws ``[P, K, F]`` into the two parts."""
        common = coefficients.mean(axis=1)
        contrasts = coefficients - common[:, None]
        smallest = CONTRAST_TOLERANCE * np.abs(coefficients).max(initial=0.0)
        contrasts[np.abs(contrasts) <= smallest] = 0.0
        return cls(common, contrasts)
