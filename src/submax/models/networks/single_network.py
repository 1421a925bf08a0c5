"""A slot network in a layout that is fast for one context at a time."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats
from submax.core.running.stored import stored
from submax.models.networks.slot_network import SlotNetwork

Weights = NDArray[np.float32]


@stored("single-network")
class SingleNetwork(NamedTuple):
    """The network of one replica, with the L levels side by side in every layer.

    The second layer and the head are block-diagonal matrices, so that all levels need one matrix
    product per layer. This takes more multiplications, but for a single context the number of numpy
    calls determines the time. The shapes are ``first [D, L·H]``,
    ``first_bias [Z, L·H]``, ``second [L·H, L·H]``, ``second_bias [L·H]``, ``head [L·H, L·C]``,
    ``head_bias [L·C]``.
    """

    first: Weights
    first_bias: Weights
    second: Weights
    second_bias: Weights
    head: Weights
    head_bias: Weights
    levels: int

    @classmethod
    def of(cls, network: SlotNetwork) -> "SingleNetwork":
        """Return the network of the first replica in this layout."""
        levels = network.context_weight.shape[1]
        return cls(
            np.concatenate(network.context_weight[0], axis=1),
            np.concatenate(network.first_bias[0], axis=1),
            _diagonal(network.second_weight[0]),
            np.concatenate(network.second_bias[0, :, 0]),
            _diagonal(np.repeat(network.head_weight[0], levels, axis=0)),
            np.tile(network.head_bias[0, 0, 0], levels),
            levels,
        )

    def logits(self, context: Floats) -> Weights:
        """Return the same logits as ``SlotNetwork.logits``: ``[D] -> [1, L, 1, Z, C]``."""
        hidden = np.dot(context.astype(np.float32), self.first) + self.first_bias
        np.maximum(hidden, 0, out=hidden)
        hidden = np.dot(hidden, self.second)
        hidden += self.second_bias
        np.maximum(hidden, 0, out=hidden)
        logits = np.dot(hidden, self.head)
        logits += self.head_bias
        draws, width = logits.shape
        parts: Weights = logits.reshape(draws, self.levels, width // self.levels)
        return parts.swapaxes(0, 1)[None, :, None]


def _diagonal(blocks: Weights) -> Weights:
    """Return a block-diagonal matrix: ``[L, I, O] -> [L·I, L·O]``."""
    levels, inputs, outputs = blocks.shape
    joined = np.zeros((levels, inputs, levels, outputs), dtype=np.float32)
    for level in range(levels):
        joined[level, :, level] = blocks[level]
    return joined.reshape(levels * inputs, levels * outputs)
