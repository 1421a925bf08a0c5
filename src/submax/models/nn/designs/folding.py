"""Conversion of trained layers to numpy arrays."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from submax.models.networks.slot_network import SlotNetwork
from submax.models.nn.layers.dense import Dense
from submax.models.nn.layers.trunk import Trunk


def slot_network(
    trunk: Trunk, head: Dense, levels: NDArray[np.float32], latent: ArrayLike
) -> SlotNetwork:
    """Return the network at fixed reward levels and latent draws.

    Each injection becomes a plain layer per level, and the latent draws become part of the first
    bias. ``levels [R, L, E]`` are the encoded rewards. The trunk's input is (z ⊕ c), and ``latent
    [R, L or 1, Z, J]`` are the draws of z.
    """
    draws = np.asarray(latent, dtype=np.float32)
    first, second = trunk.first.folded(levels), trunk.second.folded(levels)
    from_latent, from_context = np.split(first.weight, [draws.shape[-1]], axis=-1)
    bias = first.bias[:, :, None] + draws @ from_latent.swapaxes(-1, -2)
    arrays = (
        from_context.swapaxes(-1, -2),
        bias,
        second.weight.swapaxes(-1, -2),
        second.bias[:, :, None],
        np.asarray(head.weight).swapaxes(-1, -2)[:, None],
        np.asarray(head.bias)[:, None, None],
    )
    return SlotNetwork(*(np.ascontiguousarray(array, dtype=np.float32) for array in arrays))
