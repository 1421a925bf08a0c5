"""The result of training."""

from typing import NamedTuple

from submax.core.arrays import Integers
from submax.networks.replicas import Parameters


class Trained(NamedTuple):
    """The parameters of all replicas.

    ``diverged [R]`` is the step at which a replica diverged, −1 if it did not. A replica that
    diverged has the parameters of its last step with a finite loss. ``steps [R]`` is the number of
    steps that led to the parameters; None if the number was set in advance.
    """

    parameters: Parameters
    diverged: Integers
    steps: Integers | None = None
