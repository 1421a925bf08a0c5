"""How a network is trained."""

from dataclasses import dataclass
from typing import Literal

from submax.core.checks import non_negative, positive, whole_number
from submax.core.errors import InputError


@dataclass(frozen=True)
class Training:
    """Steps of AdamW on minibatches of ``batch`` rows of the buffer.

    ``steps`` is the number of steps of every refit. With "fitted" one row in ten is held out, and
    training stops for each replica when the loss of these rows no longer falls; the parameters
    with the lowest such loss are kept. Estimators then go on from the last parameters, and begin
    with new ones whenever the number of rows has passed a power of two; value networks begin with
    new ones at every refit.

    With a number of steps every refit begins with new parameters, or with the last ones if
    ``continued``. If ``standardized``, the network is given contexts whose features have mean 0
    and the same deviation, cut off at a few deviations; None means that this is so if the steps
    are fitted.

    Reference: Loshchilov and Hutter (2019); Prechelt (1998) for stopping early.
    """

    steps: int | Literal["fitted"] = "fitted"
    batch: int = 256
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    continued: bool = False
    standardized: bool | None = None

    def __post_init__(self) -> None:
        if self.steps != "fitted":
            whole_number("steps", self.steps, at_least=1)
        elif self.continued:
            raise InputError(
                "continued goes with a number of steps, and steps are 'fitted', which decides by "
                "itself where training begins: leave continued out, or give steps as a number"
            )
        whole_number("batch", self.batch, at_least=1)
        positive("learning_rate", self.learning_rate)
        non_negative("weight_decay", self.weight_decay)

    @property
    def standardizes(self) -> bool:
        """Whether contexts are standardized for the network."""
        return self.steps == "fitted" if self.standardized is None else self.standardized
