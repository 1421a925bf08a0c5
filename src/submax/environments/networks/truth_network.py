"""The random network that gives the rewards of a simulated environment."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.checks import whole_number
from submax.core.errors import InputError


class TruthNetwork(NamedTuple):
    """One hidden layer of H ReLU units over (one-hot choices ⊕ context), without biases.

    ``choice_weight [R, C, H]`` belongs to the C choices of all slots together, ``context_weight
    [R, D, H]`` to the context, ``output_weight [R, H]`` to the output. The product with one-hot
    choices is computed as a sum of rows of ``choice_weight``.
    """

    choice_weight: Floats
    context_weight: Floats
    output_weight: Floats


def check_truth(dimension: object, shift: object, hidden: object) -> None:
    """Refuse parameters of a network environment that are not allowed."""
    whole_number("dimension", dimension, at_least=1)
    whole_number("hidden", hidden, at_least=1)
    number = isinstance(shift, (int, float)) and not isinstance(shift, bool)
    if not (number and math.isfinite(shift)):  # type: ignore[arg-type]  # it is a number here
        raise InputError(f"shift must be a finite number, not {shift!r}")


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
    """Draw points uniformly from the unit sphere, ``[R, count, D]``: normal vectors scaled to 1."""
    normal = rng.standard_normal((replicas, count, dimension))
    direction: Floats = normal / np.linalg.norm(normal, axis=-1, keepdims=True)
    return direction


def logits(truth: TruthNetwork, sizes: Sequence[int], context: Floats, action: Integers) -> Floats:
    """The network's output: ``context [R, n, D]`` and ``action [R, n, S] -> [R, n]``."""
    replicas, choices, hidden = truth.choice_weight.shape
    rows = truth.choice_weight.reshape(-1, hidden)
    before = np.arange(replicas)[:, None] * choices
    layer = context @ truth.context_weight
    for slot, size in enumerate(sizes):
        layer += rows.take(before + action[..., slot], axis=0)
        before = before + size
    np.maximum(layer, 0.0, out=layer)
    output: Floats = (layer @ truth.output_weight[..., None])[..., 0]
    return output
