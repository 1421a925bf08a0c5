"""A value network trained on all feedback, the state of the neural policies."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.core.buffer import Buffer
from submax.core.divergence import warn_of_divergence
from submax.core.extras import require_extra
from submax.core.feedback import Feedback
from submax.core.problem import Problem
from submax.core.training import Training
from submax.networks.slot_choices import first_choices
from submax.networks.value_network import ValueNetwork


class ValueBelief(NamedTuple):
    """Everything observed, the trained parameters by name, and the network as plain arrays."""

    problem: Problem
    buffer: Buffer
    parameters: dict[str, NDArray[np.float32]]
    network: ValueNetwork

    @classmethod
    def empty(cls, problem: Problem, replicas: int, hidden: int) -> "ValueBelief":
        """Nothing observed: every value is the same."""
        problem.space.check_listable("this policy")
        require_extra("neural", "a value network", "jax", "equinox", "optax")
        choices, width = sum(problem.space.choices), problem.context_width
        network = ValueNetwork.silent(replicas, choices, width, hidden)
        return cls(problem, Buffer.empty(problem, replicas), {}, network)

    def trained(
        self, feedback: Feedback, training: Training, dropout: float, rng: np.random.Generator
    ) -> "ValueBelief":
        """The belief after more feedback; without new rows nothing changes."""
        from submax.nn.parameters import restored
        from submax.nn.training import train
        from submax.nn.value_design import ValueDesign

        feedback.check(self.problem)
        if not np.any(feedback.weight > 0):
            return self
        buffer = self.buffer.add(feedback, self.problem)
        design = ValueDesign(
            self.problem.space.choices,
            self.problem.context_width,
            _scaled(self.problem.levels),
            self.network.head_weight.shape[1],
            dropout,
        )
        start = self.parameters if training.continued and self.parameters else None
        trained = train(design, training, buffer, rng, start)
        network = design.exported(restored(design, trained.parameters))
        warn_of_divergence(trained.diverged)
        good = (trained.diverged < 0) | (self.buffer.filled == 0)
        learned = network.where(good & (buffer.filled > 0), self.network)
        return ValueBelief(self.problem, buffer, trained.parameters, learned)

    def choices(self) -> Integers:
        """Every joint action by the numbers of its choices among all: ``[M, S]``."""
        space = self.problem.space
        return space.listing() + first_choices(space.choices)

    def logits(
        self, context: Floats, masks: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None
    ) -> Floats:
        """Logit of the value of every joint action in each context: ``[R, n, M]``."""
        self.problem.check_context(context)
        return self.network.logits(self.network.hidden(context, self.choices(), masks))


def _scaled(levels: tuple[float, ...]) -> tuple[float, ...]:
    """The levels between 0 and 1."""
    return tuple((level - levels[0]) / (levels[-1] - levels[0]) for level in levels)
