"""A value network trained on all feedback, the state of the neural policies."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.memory.buffer import Buffer
from submax.core.memory.context_scaling import ContextScaling
from submax.core.memory.memory import Memory
from submax.core.memory.minibatches import Minibatches
from submax.core.memory.training import Training
from submax.core.numerics.divergence import warn_of_divergence
from submax.core.rewards.scale import Scale
from submax.core.running.extras import require_extra
from submax.core.running.stored import stored
from submax.networks.replicas import parameters_where
from submax.networks.slot_choices import first_choices
from submax.networks.value_network import Numbers, ValueNetwork

EVERYTHING = Memory()
AT_ONCE = 2**22
"""About so many activations are held at a time."""
LARGEST = 2**28
"""More activations than this for one decision of each replica are refused."""


@stored("value-belief")
class ValueBelief(NamedTuple):
    """Everything observed, the trained parameters by name, and the network as plain arrays.

    ``scaling`` is how contexts are given to the network, None if they are given as they are.
    """

    problem: Problem
    buffer: Buffer
    parameters: dict[str, NDArray[np.float32]]
    network: ValueNetwork
    scaling: ContextScaling | None = None

    @classmethod
    def empty(cls, problem: Problem, replicas: int, hidden: int) -> "ValueBelief":
        """Nothing observed: every value is the same."""
        problem.space.check_listable("this policy")
        require_extra("neural", "a value network", "jax", "equinox", "optax")
        numbers = replicas * problem.space.size * hidden
        if numbers > LARGEST:
            raise InputError(
                f"a value network looks at every joint action: {problem.space.size} of them times "
                f"{hidden} units times {replicas} replicas are {numbers} numbers for one decision, "
                f"more than {LARGEST}"
            )
        choices, width = sum(problem.space.choices), problem.context_width
        network = ValueNetwork.silent(replicas, choices, width, hidden)
        return cls(problem, Buffer.empty(problem, replicas), {}, network)

    def trained(
        self, feedback: Feedback, training: Training, dropout: float, rng: np.random.Generator
    ) -> "ValueBelief":
        """The belief after more feedback; without new rows nothing changes."""
        from submax.nn.designs.value_design import ValueDesign
        from submax.nn.training.parameters import restored
        from submax.nn.training.training import train

        feedback.check(self.problem)
        news = np.any(feedback.weight > 0, axis=1)
        if not news.any():
            return self
        buffer = self.buffer.add(feedback, EVERYTHING, rng)
        design = ValueDesign(
            self.problem.space.choices,
            self.problem.context_width,
            self.network.head_weight.shape[1],
            dropout,
        )
        scaling = ContextScaling.of(buffer) if training.standardizes else None
        targets = _targets(self.problem.scale, buffer)
        rows = Minibatches.of(buffer, buffer.action, targets, scaling)
        # Going on loses where the signal is weak, if the steps are fitted: docs/tuning.md.
        start = self.parameters if training.continued and self.parameters else None
        trained = train(design, training, rows, rng, start)
        network = design.exported(restored(design, trained.parameters))
        warn_of_divergence(trained.diverged)
        # A replica without news, or whose training diverged, stays as it was.
        learned = news & ((trained.diverged < 0) | (self.buffer.filled == 0))
        return ValueBelief(
            self.problem,
            buffer,
            parameters_where(learned, trained.parameters, self.parameters),
            network.where(learned, self.network),
            scaling if scaling is None else scaling.where(learned, self.scaling),
        )

    def choices(self) -> Integers:
        """Every joint action by the numbers of its choices among all: ``[M, S]``."""
        space = self.problem.space
        return space.listing() + first_choices(space.choices)

    def logits(
        self, context: Floats, masks: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None
    ) -> Floats:
        """Logit of the value of every joint action in each context: ``[R, n, M]``."""
        self.problem.check_context(context)
        choices, network, given = self.choices(), self.network, self.given(context)

        def some(part: slice) -> Floats:
            few = None if masks is None else (_rows_of(masks[0], part), _rows_of(masks[1], part))
            return network.logits(network.hidden(given[:, part], choices, few))

        return np.concatenate([some(part) for part in self.parts(context.shape[1])], axis=1)

    def given(self, context: Numbers) -> Numbers:
        """Contexts as the network is given them: ``[R, n, D]``."""
        return context if self.scaling is None else self.scaling.scaled(context)

    def parts(self, rows: int) -> list[slice]:
        """The rows in parts whose activations can be held at a time; at least one part."""
        one_row = self.network.first_bias.size * self.problem.space.size
        step = max(1, AT_ONCE // one_row)
        return [slice(begin, begin + step) for begin in range(0, rows or 1, step)]


def _rows_of(mask: NDArray[np.float32], part: slice) -> NDArray[np.float32]:
    """The masks of some rows; one mask for all rows stays."""
    return mask if mask.shape[1] == 1 else mask[:, part]


def _targets(scale: Scale, buffer: Buffer) -> Floats:
    """Rewards from 0 at the lowest to 1 at the highest that can be, or was, observed."""
    if scale.bounds is None:
        there = buffer.weight > 0
        low = np.where(there, buffer.reward, np.inf).min(axis=1, keepdims=True, initial=np.inf)
        high = np.where(there, buffer.reward, -np.inf).max(axis=1, keepdims=True, initial=-np.inf)
    else:
        low, high = (np.full((len(buffer.reward), 1), bound) for bound in scale.bounds)
    apart = high > low
    share = (buffer.reward - np.where(apart, low, 0.0)) / np.where(apart, high - low, 1.0)
    targets: Floats = np.where(apart, np.clip(share, 0.0, 1.0), 0.5)
    return targets[..., None]
