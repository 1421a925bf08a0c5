"""The result of training."""

from typing import NamedTuple

from submax.core.arrays import Integers
from submax.models.networks.replicas import Parameters


class Trained(NamedTuple):
    """The trained parameters of all replicas.

    ``diverged [R]`` is the step at which the loss or the parameters of a replica became infinite or
    NaN; −1 if they did not. The parameters of a replica that diverged are from an earlier step. If
    the number of steps was set in advance, they are the latest ones with a finite loss. If the
    number was fitted, they are the best ones by held-out loss, as in all other replicas.

    ``steps [R]`` is the number of steps that led to the parameters; 0 if the parameters from before
    the first step were the best. It is None if the number of steps was set in advance.
    """

    parameters: Parameters
    diverged: Integers
    steps: Integers | None = None
