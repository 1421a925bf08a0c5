"""The warning about diverged training."""

import warnings

import numpy as np

from submax.core.arrays import Integers


class DivergedWarning(UserWarning):
    """The loss of a network became infinite or NaN during training."""


def warn_of_divergence(step: Integers) -> None:
    """Warn about every replica that diverged, at ``step [R]``; −1 means that it did not."""
    for replica in np.flatnonzero(step >= 0):
        warnings.warn(
            f"the loss of replica {replica} was not finite at step {step[replica]}; "
            "it keeps its last good parameters",
            DivergedWarning,
            stacklevel=3,
        )
