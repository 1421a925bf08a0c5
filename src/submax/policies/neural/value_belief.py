"""A value network that is trained on all feedback: the state of the neural policies."""

from typing import NamedTuple

import numpy as np
import scipy
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
from submax.core.spaces.space import Choices
from submax.models.networks.replicas import parameters_where
from submax.models.networks.slot_choices import first_choices
from submax.models.networks.value_network import Numbers, ValueNetwork

UNLIMITED_MEMORY = Memory()
"""All feedback is kept, with full weight."""
ACTIVATIONS_AT_ONCE = 2**22
"""About how many activations are held in memory, 16 MB of float32; more contexts are processed in
parts."""
MOST_ACTIVATIONS = 2**28
"""The most activations for one decision of each replica, 1 GB of float32; more are refused."""


@stored("value-belief")
class ValueBelief(NamedTuple):
    """All feedback in a ``buffer``, the trained ``parameters``, and the network as plain arrays.

    ``scaling`` standardizes contexts for the network; None if they are not standardized.
    """

    problem: Problem
    buffer: Buffer
    parameters: dict[str, NDArray[np.float32]]
    network: ValueNetwork
    scaling: ContextScaling | None = None

    @classmethod
    def empty(cls, problem: Problem, replicas: int, hidden: int) -> "ValueBelief":
        """The belief before any feedback, for policies that evaluate every joint action."""
        problem.space.check_listable("this policy")
        numbers = replicas * problem.space.size * hidden
        if numbers > MOST_ACTIVATIONS:
            raise InputError(
                f"a value network evaluates every joint action: {problem.space.size} joint actions "
                f"times {hidden} units times {replicas} replicas are {numbers} numbers for one "
                f"decision, and at most {MOST_ACTIVATIONS} are allowed: take fewer replicas or "
                "units, or a policy that does not list joint actions"
            )
        return cls.unlisted(problem, replicas, hidden)

    @classmethod
    def unlisted(cls, problem: Problem, replicas: int, hidden: int) -> "ValueBelief":
        """The belief before any feedback: all actions have the same value."""
        require_extra("neural", "a value network", "jax", "equinox", "optax")
        choices, width = sum(problem.space.choices), problem.context_width
        network = ValueNetwork.silent(replicas, choices, width, hidden)
        return cls(problem, Buffer.empty(problem, replicas), {}, network)

    def restricted(self, choices: Choices) -> "ValueBelief":
        """Return the belief about these choices alone, for deciding."""
        kept = self.problem.space.kept_choices(choices)
        return self._replace(
            problem=self.problem.restricted(choices), network=self.network.restricted(kept)
        )

    def trained(
        self, feedback: Feedback, training: Training, dropout: float, rng: np.random.Generator
    ) -> "ValueBelief":
        """The belief after more feedback; the same object if the feedback has no rows."""
        from submax.models.nn.designs.value_design import ValueDesign
        from submax.models.nn.training.parameters import restored
        from submax.models.nn.training.training import train

        feedback.check(self.problem)
        has_rows = np.any(feedback.weight > 0, axis=1)
        if not has_rows.any():
            return self
        buffer = self.buffer.add(feedback, UNLIMITED_MEMORY, rng)
        design = ValueDesign(
            self.problem.space.choices,
            self.problem.context_width,
            self.network.head_weight.shape[1],
            dropout,
        )
        scaling = ContextScaling.of(buffer) if training.standardizes else None
        targets = reward_shares(self.problem.scale, buffer, buffer.reward)[..., None]
        rows = Minibatches.of(buffer, buffer.action, targets, scaling)
        # By default training starts from new parameters: with a fitted number of steps, continuing
        # from the old ones is worse if rewards carry little information (docs/results/tuning.md).
        start = self.parameters if training.continued and self.parameters else None
        trained = train(design, training, rows, rng, start)
        network = design.exported(restored(design, trained.parameters))
        warn_of_divergence(trained.diverged)
        # A replica without new rows, or whose training diverged, keeps its network.
        learned = has_rows & ((trained.diverged < 0) | (self.buffer.filled == 0))
        return ValueBelief(
            self.problem,
            buffer,
            parameters_where(learned, trained.parameters, self.parameters),
            network.where(learned, self.network),
            scaling if scaling is None else scaling.where(learned, self.scaling),
        )

    def choices(self) -> Integers:
        """All joint actions; choices are indexed among those of all slots together: ``[M, S]``."""
        space = self.problem.space
        return space.listing() + first_choices(space.choices)

    def logits(
        self, context: Floats, masks: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None
    ) -> Floats:
        """The network's output for every joint action in each context: ``[R, n, M]``.

        ``masks`` are dropout masks of the two layers, ``[R, n, H]``, or ``[R, 1, H]`` for all rows.
        """
        self.problem.check_context(context)
        choices, network, inputs = self.choices(), self.network, self.inputs(context)

        def logits_of(part: slice) -> Floats:
            of_part = (
                None if masks is None else (_rows_of(masks[0], part), _rows_of(masks[1], part))
            )
            return network.logits(network.hidden(inputs[:, part], choices, of_part))

        return np.concatenate([logits_of(part) for part in self.parts(context.shape[1])], axis=1)

    def values(self, context: Floats) -> Floats:
        """The expected reward of every joint action on the scale from 0 to 1: ``[R, n, M]``."""
        values: Floats = scipy.special.expit(self.logits(context))
        return values

    def values_of(self, rows: Feedback | Buffer) -> Floats:
        """The expected reward of every logged decision on the scale from 0 to 1: ``[R, n]``.

        A row of weight 0 is evaluated as if it had context 0 and the first action.
        """
        there = (rows.weight > 0)[..., None]
        inputs = self.inputs(np.where(there, rows.context, 0.0))
        action = np.where(there, rows.action, 0)
        choices = (action + first_choices(self.problem.space.choices))[:, :, None]
        network = self.network
        step = max(1, ACTIVATIONS_AT_ONCE // network.first_bias.size)
        parts = [slice(begin, begin + step) for begin in range(0, there.shape[1] or 1, step)]
        logits = [
            network.logits(network.hidden(inputs[:, part], choices[:, part])) for part in parts
        ]
        values: Floats = scipy.special.expit(np.concatenate(logits, axis=1)[..., 0])
        return values

    def inputs(self, context: Numbers) -> Numbers:
        """Contexts as inputs of the network, standardized if ``scaling`` is set: ``[R, n, D]``."""
        return context if self.scaling is None else self.scaling.scaled(context)

    def parts(self, rows: int) -> list[slice]:
        """Split rows into parts, at least one, whose activations are held in memory together."""
        one_row = self.network.first_bias.size * self.problem.space.size
        step = max(1, ACTIVATIONS_AT_ONCE // one_row)
        return [slice(begin, begin + step) for begin in range(0, rows or 1, step)]


def _rows_of(mask: NDArray[np.float32], part: slice) -> NDArray[np.float32]:
    """The masks of some rows; a single mask for all rows is returned as it is."""
    return mask if mask.shape[1] == 1 else mask[:, part]


def reward_bounds(scale: Scale, buffer: Buffer) -> tuple[Floats, Floats]:
    """The known bounds of rewards, else the lowest and the highest so far: each ``[R, 1]``."""
    if scale.bounds is not None:
        low, high = (np.full((len(buffer.reward), 1), bound) for bound in scale.bounds)
        return low, high
    present = buffer.weight > 0
    low = np.where(present, buffer.reward, np.inf).min(axis=1, keepdims=True, initial=np.inf)
    high = np.where(present, buffer.reward, -np.inf).max(axis=1, keepdims=True, initial=-np.inf)
    return low, high


def reward_shares(scale: Scale, buffer: Buffer, reward: Floats) -> Floats:
    """Rewards ``[R, n]`` scaled to 0 … 1 by the bounds of the buffer; 1/2 if all are equal."""
    low, high = reward_bounds(scale, buffer)
    differ = high > low
    share = (reward - np.where(differ, low, 0.0)) / np.where(differ, high - low, 1.0)
    shares: Floats = np.where(differ, np.clip(share, 0.0, 1.0), 0.5)
    return shares
