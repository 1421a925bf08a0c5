"""The warning about training that diverged."""

import warnings

import numpy as np

from submax.core.arrays import Integers


class DivergedWarning(UserWarning):
    """Training met a loss that is not finite."""


def warn_of_divergence(step: Integers) -> None:
    """Name the replicas whose loss was not finite, and the step; ``step [R]`` is −1 elsewhere."""
    for replica in np.flatnonzero(step >= 0):
        warnings.warn(
            f"the loss of replica {replica} was not finite at step {step[replica]}; "
            "it keeps its last good parameters",
            DivergedWarning,
            stacklevel=3,
        )
