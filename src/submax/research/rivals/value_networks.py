"""Value networks: trained with JAX, evaluated in numpy."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
import scipy
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.core.checks import BelowOne, Count
from submax.core.errors import InputError
from submax.core.numerics import where_chosen
from submax.core.optional import require_extra
from submax.core.policy import Policy, PolicyTraits
from submax.core.problem import Feedback, Problem
from submax.core.rewards import Scale
from submax.core.serialization import serializable
from submax.core.spaces import Choices
from submax.models.memory import Buffer
from submax.models.networks.choices import Parameters, first_choices
from submax.models.training_settings import ContextScaling, Training
from submax.policies.arm_statistics import EVERYTHING, by_rows

Weights = NDArray[np.float32]
Numbers = NDArray[np.floating[Any]]


@serializable("hidden")
class Hidden(NamedTuple):
    """The activations of both hidden layers, ``[R, n, M, H]``."""

    first: Weights
    second: Weights


@serializable("value-network")
class ValueNetwork(NamedTuple):
    """A network from choices and context to the logit of the reward, with two hidden ReLU layers.

    With C choices in all slots together, D context numbers and H hidden units, shapes are
    ``choice_weight [R, C, H]``, ``context_weight [R, D, H]``, ``first_bias [R, H]``,
    ``second_weight [R, H, H]``, ``second_bias [R, H]``, ``head_weight [R, H]``, ``head_bias [R]``.
    """

    choice_weight: Weights
    context_weight: Weights
    first_bias: Weights
    second_weight: Weights
    second_bias: Weights
    head_weight: Weights
    head_bias: Weights

    @classmethod
    def silent(cls, replicas: int, choices: int, width: int, hidden: int) -> Self:
        """Return an untrained network, in which every logit is 0."""
        below = (choices, hidden), (width, hidden), (hidden,)
        shapes = (*below, (hidden, hidden), (hidden,), (hidden,), ())
        return cls(*(np.zeros((replicas, *shape), dtype=np.float32) for shape in shapes))

    def restricted(self, kept: Integers) -> Self:
        """Return the network with only the choices ``kept`` among all C."""
        return self._replace(choice_weight=self.choice_weight[:, kept])

    def hidden(self, context: Numbers, choices: Integers, *masks: Weights) -> Hidden:
        """Return the activations for contexts ``[R, n, D]`` and M actions.

        ``choices`` are the indices of the actions' choices among all C: ``[M, S]`` if all rows have
        the same actions, else ``[R, n, M, S]``. ``masks``, each ``[R, n or 1, H]``, multiply the
        activations of the two layers, for dropout.
        """
        replicas = np.arange(len(self.choice_weight))[:, None, None]
        if choices.ndim == 2:
            chosen = self.choice_weight[:, choices].sum(axis=2)[:, None]
        else:
            rows = choices.reshape(len(self.choice_weight), -1, choices.shape[-1])
            gathered = self.choice_weight[replicas, rows].sum(axis=2)
            chosen = gathered.reshape(*choices.shape[:3], gathered.shape[-1])
        first = np.maximum(self.from_context(context)[:, :, None, :] + chosen, 0)
        if masks:
            first *= masks[0][:, :, None, :]
        flat = first.reshape(first.shape[0], -1, first.shape[-1])
        second = (flat @ self.second_weight).reshape(first.shape)
        second += self.second_bias[:, None, None]
        np.maximum(second, 0, out=second)
        if masks:
            second *= masks[1][:, :, None, :]
        return Hidden(first, second)

    def from_context(self, context: Numbers) -> Weights:
        """Return the part of the first layer's input that the context gives, ``[R, n, H]``."""
        inputs: Weights = context.astype(np.float32) @ self.context_weight
        inputs += self.first_bias[:, None]
        return inputs

    def logits(self, hidden: Hidden) -> Floats:
        """Return the logit of the reward for these activations: ``[R, n, M]``."""
        out = np.einsum("rnmh,rh->rnm", hidden.second, self.head_weight)
        return (out + self.head_bias[:, None, None]).astype(np.float64)

    def slopes(self, hidden: Hidden) -> Hidden:
        """Return derivatives of the logit by the inputs of each layer's ReLU, ``[R, n, M, H]``."""
        second = self.head_weight[:, None, None] * (hidden.second > 0)
        flat = second.reshape(len(second), -1, second.shape[-1])
        first = (flat @ self.second_weight.swapaxes(1, 2)).reshape(second.shape)
        return Hidden(first * (hidden.first > 0), second)


ACTIVATIONS_AT_ONCE = 2**22
"""About how many activations are held in memory, 16 MB of float32; more contexts are processed in
parts."""
MOST_ACTIVATIONS = 2**28
"""The most activations for one decision of each replica, 1 GB of float32; more are refused."""


@serializable("value-belief")
class ValueBelief(NamedTuple):
    """All feedback in a ``buffer``, the trained ``parameters``, and the network as plain arrays.

    ``scaling`` standardizes contexts for the network; None if they are not standardized. ``extra``
    is what a policy has learned or drawn beside the network.
    """

    problem: Problem
    buffer: Buffer
    parameters: Parameters | None
    network: ValueNetwork
    scaling: ContextScaling | None = None
    extra: Any = ()

    @classmethod
    def empty(cls, problem: Problem, replicas: int, hidden: int, *, listed: bool = True) -> Self:
        """The belief before any feedback: all actions have the same value.

        If all joint actions will be ``listed``, there must not be too many of them.
        """
        if listed:
            problem.space.check_listable("this policy")
        numbers = replicas * problem.space.size * hidden if listed else 0
        if numbers > MOST_ACTIVATIONS:
            raise InputError(
                f"a value network evaluates every joint action: {problem.space.size} joint actions "
                f"times {hidden} units times {replicas} replicas are {numbers} numbers for one "
                f"decision, and at most {MOST_ACTIVATIONS} are allowed: use fewer replicas or "
                "units, or a policy that does not list joint actions"
            )
        require_extra("neural", "a value network", "jax", "equinox", "optax")
        choices, width = sum(problem.space.choices), problem.context_width
        network = ValueNetwork.silent(replicas, choices, width, hidden)
        return cls(problem, Buffer.empty(problem, replicas), None, network)

    def restricted(self, choices: Choices) -> Self:
        kept = self.problem.space.kept_choices(choices)
        return self._replace(
            problem=self.problem.restricted(choices), network=self.network.restricted(kept)
        )

    def trained(
        self, feedback: Feedback, training: Training, dropout: float, rng: np.random.Generator
    ) -> Self:
        """The belief after more feedback; the same object if the feedback has no rows."""
        from submax.models.nn.training import refit, restored
        from submax.research.rivals.designs import ValueDesign

        feedback.check(self.problem)
        has_rows = np.any(feedback.weight > 0, axis=1)
        if not has_rows.any():
            return self
        buffer = self.buffer.add(feedback, EVERYTHING, rng)
        space, width = self.problem.space, self.problem.context_width
        design = ValueDesign(space.choices, width, self.network.first_bias.shape[1], dropout)
        targets = reward_shares(self.problem.scale, buffer, buffer.reward)[..., None]
        # By default training starts from new parameters: with a fitted number of steps, continuing
        # from the old ones is worse if rewards carry little information (docs/results/tuning.md).
        start = self.parameters if training.continued else None

        def exported(parameters: Parameters) -> dict[str, Any]:
            return {"network": design.exported(restored(design, parameters))}

        columns = buffer.action, targets
        found: Self = refit(self, buffer, has_rows, design, training, columns, rng, exported, start)
        return found

    def choices(self) -> Integers:
        """All joint actions; choices are indexed among those of all slots together: ``[M, S]``."""
        space = self.problem.space
        return space.listing() + first_choices(space.choices)

    def logits(self, context: Floats, *masks: Weights) -> Floats:
        """The network's output for every joint action in each context: ``[R, n, M]``.

        ``masks`` are dropout masks of the two layers, ``[R, n, H]``, or ``[R, 1, H]`` for all rows.
        """
        self.problem.check_context(context)
        choices, network = self.choices(), self.network

        def of(part: Numbers, *masks: Weights) -> Floats:
            return network.logits(network.hidden(part, choices, *masks))

        of_rows = (np.broadcast_to(one, (*context.shape[:2], one.shape[2])) for one in masks)
        return by_rows(of, self.rows_at_once, self.inputs(context), *of_rows)

    def values(self, context: Floats) -> Floats:
        """The expected reward of every joint action on the scale from 0 to 1: ``[R, n, M]``."""
        return scipy.special.expit(self.logits(context))

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
        logits = by_rows(lambda *part: network.logits(network.hidden(*part)), step, inputs, choices)
        return scipy.special.expit(logits[..., 0])

    def inputs(self, context: Numbers) -> Numbers:
        """Contexts as inputs of the network, standardized if ``scaling`` is set: ``[R, n, D]``."""
        return context if self.scaling is None else self.scaling.scaled(context)

    @property
    def rows_at_once(self) -> int:
        """The number of contexts whose activations are held in memory together."""
        return max(
            1, ACTIVATIONS_AT_ONCE // self.network.first_bias.size // self.problem.space.size
        )


@dataclass(frozen=True, kw_only=True)
class ValueNetworkPolicy(Policy[ValueBelief]):
    """A policy on a value network with two layers of ``hidden`` units.

    ``training`` says how the network is trained at each update, and ``dropout`` is the probability
    of leaving out a unit in training. A subclass that needs more than the network keeps it as
    ``extra`` of the belief.
    """

    hidden: Count = 32
    dropout: BelowOne = 0.0
    training: Training = field(default_factory=Training)

    traits = PolicyTraits(trains_models=True)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> ValueBelief:
        belief = ValueBelief.empty(problem, replicas, self.hidden)
        return belief._replace(extra=self.first_extra(belief, rng))

    def update(
        self, state: ValueBelief, feedback: Feedback, rng: np.random.Generator
    ) -> ValueBelief:
        belief = state.trained(feedback, self.training, self.dropout, rng)
        if belief is state:
            return state
        return belief._replace(extra=self.next_extra(state, belief, feedback, rng))

    def restricted(self, state: ValueBelief, choices: Choices) -> ValueBelief:
        return state.restricted(choices)._replace(extra=self.restricted_extra(state, choices))

    def first_extra(self, belief: ValueBelief, rng: np.random.Generator) -> Any:
        """Return what is kept beside a network before any feedback."""
        return ()

    def next_extra(
        self,
        before: ValueBelief,
        trained: ValueBelief,
        feedback: Feedback,
        rng: np.random.Generator,
    ) -> Any:
        """Return what is kept beside a network that was just trained on more feedback.

        By default it is what ``first_extra`` returns, anew in all replicas with new rows.
        """
        learned = np.any(feedback.weight > 0, axis=1)
        return where_chosen(learned, self.first_extra(trained, rng), before.extra)

    def restricted_extra(self, state: ValueBelief, choices: Choices) -> Any:
        """Return what is kept if only these choices are eligible."""
        return state.extra


def highest_at_random(score: Floats, rng: np.random.Generator) -> Integers:
    """Return the index of the highest score, ``[R, n, M] -> [R, n]``; ties are broken at random."""
    best = score == score.max(axis=-1, keepdims=True)
    return np.where(best, rng.random(best.shape), -1.0).argmax(axis=-1)


def reward_shares(scale: Scale, buffer: Buffer, reward: Floats) -> Floats:
    """Rewards ``[R, n]`` scaled to 0 … 1 by their bounds; 1/2 if all are equal.

    Bounds that are not known are the lowest and the highest reward so far.
    """
    present = buffer.weight > 0
    low = np.where(present, buffer.reward, np.inf).min(axis=1, keepdims=True, initial=np.inf)
    high = np.where(present, buffer.reward, -np.inf).max(axis=1, keepdims=True, initial=-np.inf)
    if scale.bounds is not None:
        low, high = (np.full(low.shape, bound) for bound in scale.bounds)
    differ = high > low
    share = (reward - np.where(differ, low, 0.0)) / np.where(differ, high - low, 1.0)
    return np.where(differ, np.clip(share, 0.0, 1.0), 0.5)
