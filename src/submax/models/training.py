"""Hyper-parameters of network training."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Integers
from submax.core.checks import non_negative, positive, whole_number
from submax.core.errors import InputError
from submax.models.memory import MIN_ROWS_TO_HOLD_OUT

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


STEPS_WITHOUT_HELD_OUT = 50
"""Number of steps for a replica with too few rows to hold any out."""
LOWEST_STEP_LIMIT = 500
EPOCHS = 20
HIGHEST_STEP_LIMIT = 4000
"""The limit on steps is EPOCHS passes over the rows, but at least LOWEST_STEP_LIMIT and at most
HIGHEST_STEP_LIMIT. The highest limit bounds the cost of a refit."""
LENGTHENED = 10
"""With steps="converged" the limit is this many times as high: such a training runs once."""


def most_steps(filled: Integers, training: Training) -> NDArray[np.int32]:
    """Return the largest number of steps of a refit: ``[R]``."""
    lengthened = LENGTHENED if training.steps == "converged" else 1
    passes = lengthened * np.clip(
        EPOCHS * filled // training.batch, LOWEST_STEP_LIMIT, HIGHEST_STEP_LIMIT
    )
    return np.where(filled < MIN_ROWS_TO_HOLD_OUT, STEPS_WITHOUT_HELD_OUT, passes).astype(np.int32)
