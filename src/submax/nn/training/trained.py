"""What training gives."""

from typing import NamedTuple

from submax.core.arrays import Integers
from submax.networks.replicas import Parameters


class Trained(NamedTuple):
    """Parameters of all replicas, and the step at which each diverged, ``[R]``, or −1.

    A replica that diverges keeps the parameters of the last step whose loss was finite. ``steps
    [R]`` is how many steps led to the parameters, if they were fitted.
    """

    parameters: Parameters
    diverged: Integers
    steps: Integers | None = None
