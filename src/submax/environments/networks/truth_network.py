"""The random network that determines the mean rewards of a simulated environment."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.checks import whole_number
from submax.core.errors import InputError


class TruthNetwork(NamedTuple):
    """The weights of a network with one hidden layer of H ReLU units, without biases.

    The inputs are the one-hot choices and the context. ``choice_weight [R, C, H]`` are the weights
    of the C choices of all slots together, ``context_weight [R, D, H]`` those of the context, and
    ``output_weight [R, H]`` those from the hidden units to the output.
    """

    choice_weight: Floats
    context_weight: Floats
    output_weight: Floats


def check_truth(dimension: object, shift: object, hidden: object) -> None:
    """Raise an ``InputError`` unless the parameters of a network environment are allowed.

    ``dimension`` is D and ``hidden`` is H, both whole numbers from 1; ``shift`` is a finite number.
    """
    whole_number("dimension", dimension, at_least=1)
    whole_number("hidden", hidden, at_least=1)
    number = isinstance(shift, (int, float)) and not isinstance(shift, bool)
    if not (number and math.isfinite(shift)):  # type: ignore[arg-type]  # it is a number here
        raise InputError(f"shift must be a finite number, not {shift!r}", parameter="shift")


def draw_network(
    replicas: int, choices: int, dimension: int, hidden: int, rng: np.random.Generator
) -> TruthNetwork:
    """Draw Glorot-uniform weights, between ±√(6 / (fan in + fan out)), for each replica."""
    first = math.sqrt(6 / (choices + dimension + hidden))
    last = math.sqrt(6 / (hidden + 1))
    return TruthNetwork(
        rng.uniform(-first, first, (replicas, choices, hidden)),
        rng.uniform(-first, first, (replicas, dimension, hidden)),
        rng.uniform(-last, last, (replicas, hidden)),
    )


def draw_directions(replicas: int, count: int, dimension: int, rng: np.random.Generator) -> Floats:
    """Draw points uniformly from the unit sphere, ``[R, count, D]``.

    They are normally distributed vectors, divided by their lengths.
    """
    normal = rng.standard_normal((replicas, count, dimension))
    direction: Floats = normal / np.linalg.norm(normal, axis=-1, keepdims=True)
    return direction


def logits(truth: TruthNetwork, sizes: Sequence[int], context: Floats, action: Integers) -> Floats:
    """Return the network's output: ``context [R, n, D]`` and ``action [R, n, S] -> [R, n]``.

    The environment adds its shift to this output and applies σ. ``sizes`` are the numbers of
    choices of the slots. One-hot choices are not formed: their product with ``choice_weight`` is
    the sum of one row for each slot.
    """
    replicas, choices, hidden = truth.choice_weight.shape
    rows = truth.choice_weight.reshape(-1, hidden)
    # The row of the first choice of a slot in each replica.
    first_row = np.arange(replicas)[:, None] * choices
    layer = context @ truth.context_weight
    for slot, size in enumerate(sizes):
        layer += rows.take(first_row + action[..., slot], axis=0)
        first_row = first_row + size
    np.maximum(layer, 0.0, out=layer)
    output: Floats = (layer @ truth.output_weight[..., None])[..., 0]
    return output
