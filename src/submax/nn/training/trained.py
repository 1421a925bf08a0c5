"""The result of training."""

from typing import NamedTuple

from submax.core.arrays import Integers
from submax.networks.replicas import Parameters


class Trained(NamedTuple):
    """Parameters of all replicas, and the step at which each ``diverged [R]``, or −1.

    A replica that diverged has the parameters of its last step with a finite loss. ``steps [R]`` is
    the number of steps that led to the parameters; None if it was fixed.
    """

    parameters: Parameters
    diverged: Integers
    steps: Integers | None = None
