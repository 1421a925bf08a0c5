"""How a network is trained."""

from dataclasses import dataclass

from submax.core.checks import non_negative, positive, whole_number


@dataclass(frozen=True)
class Training:
    """A fixed number of ``steps`` of AdamW on minibatches of ``batch`` rows of the buffer.

    Every refit begins with new parameters, or with the last ones where ``continued``.

    Reference: Loshchilov and Hutter (2019).
    """

    steps: int = 300
    batch: int = 256
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    continued: bool = False

    def __post_init__(self) -> None:
        whole_number("steps", self.steps, at_least=1)
        whole_number("batch", self.batch, at_least=1)
        positive("learning_rate", self.learning_rate)
        non_negative("weight_decay", self.weight_decay)
