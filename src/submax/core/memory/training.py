"""Hyper-parameters of network training."""

from dataclasses import dataclass
from typing import Literal

from submax.core.checks import non_negative, positive, whole_number
from submax.core.errors import InputError


@dataclass(frozen=True)
class Training:
    """Training by AdamW on minibatches of ``batch`` rows of the buffer.

    ``steps`` is the number of steps of every refit. If it is "fitted", one row in ten is held out,
    and a replica stops when the loss of its held-out rows no longer decreases; the parameters with
    the lowest held-out loss are used. Reward-conditioned networks then continue from the parameters
    of the last refit, and start from new ones whenever the number of rows has passed a power of
    two; value networks start from new parameters at every refit.

    With a fixed number of steps every refit starts from new parameters, or from the last ones if
    ``continued`` is true. If ``standardized`` is true, the features of the context are shifted to
    mean 0, scaled to a common deviation and clipped at a few deviations. The default, None, means
    true if the steps are "fitted".

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
                "continued=True was given with steps='fitted', and it is allowed with a number of "
                "steps only: leave continued out, or give steps as a number"
            )
        whole_number("batch", self.batch, at_least=1)
        positive("learning_rate", self.learning_rate)
        non_negative("weight_decay", self.weight_decay)

    @property
    def standardizes(self) -> bool:
        """Whether contexts are standardized, with the default of ``standardized`` resolved."""
        return self.steps == "fitted" if self.standardized is None else self.standardized
