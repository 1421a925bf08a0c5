"""Hyper-parameters of network training."""

from dataclasses import dataclass
from typing import Literal

from submax.core.checks import non_negative, positive, whole_number
from submax.core.errors import InputError

STOPPING_EARLY = ("fitted", "converged")
"""Values of ``steps`` with which the loss of held-out rows decides when training stops."""


@dataclass(frozen=True)
class Training:
    """Training by AdamW on minibatches of ``batch`` rows of the buffer.

    ``steps`` is the number of steps of every refit. If it is "fitted", one row in ten is held out,
    and a replica stops when the loss of its held-out rows no longer decreases; the parameters with
    the lowest held-out loss are used. Reward-conditioned networks then continue from the parameters
    of the last refit, and start from new ones whenever the number of rows has passed a power of
    two; value networks start from new parameters at every refit. "converged" is the same with much
    more patience and a higher limit, for a policy that is trained once, on a log: it takes up to
    ten times as long.

    With a fixed number of steps every refit starts from new parameters, or from the last ones if
    ``continued`` is true. If ``standardized`` is true, the features of the context are shifted to
    mean 0, scaled to a common deviation and clipped at a few deviations. The default, None, means
    true if held-out rows decide when to stop.

    Reference: Loshchilov and Hutter (2019); Prechelt (1998) for stopping early.
    """

    steps: int | Literal["fitted", "converged"] = "fitted"
    batch: int = 256
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    continued: bool = False
    standardized: bool | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.steps, str) or not self.stops_early:
            whole_number("steps", self.steps, at_least=1)
        elif self.continued:
            raise InputError(
                f"continued=True was given with steps={self.steps!r}, and is allowed with a number "
                "of steps only: leave continued out, or give steps as a number"
            )
        whole_number("batch", self.batch, at_least=1)
        positive("learning_rate", self.learning_rate)
        non_negative("weight_decay", self.weight_decay)

    @property
    def stops_early(self) -> bool:
        """Whether the loss of held-out rows decides when training stops."""
        return self.steps in STOPPING_EARLY

    @property
    def standardizes(self) -> bool:
        """Whether contexts are standardized, with the default of ``standardized`` resolved."""
        return self.stops_early if self.standardized is None else self.standardized
