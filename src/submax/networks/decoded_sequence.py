"""The distribution of an autoregressive network in given contexts."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.conditioning.conditional_distribution import ConditionalDistribution
from submax.networks.autoregressive_network import AutoregressiveNetwork, Weights

ACTIVATIONS_AT_ONCE = 2**22
"""About how many activations are held in memory, 16 MB of float32; more actions are processed in
parts."""


@dataclass(frozen=True)
class DecodedSequence(ConditionalDistribution):
    """π(a | c, l) = Π_s p(a_s | a_1 … a_{s−1}, c, l) in slots of these ``sizes``.

    ``given [R, L, n, H]`` is what the contexts add to the first layer of the ``network``.
    """

    network: AutoregressiveNetwork
    given: Floats
    sizes: tuple[int, ...]

    def prob(self, action: Integers) -> Floats:
        replicas, levels, rows, hidden = self.given.shape
        action = np.broadcast_to(action, (replicas, rows, *action.shape[2:]))
        step = max(1, ACTIVATIONS_AT_ONCE // max(1, replicas * levels * rows * hidden))
        parts = [
            self._prob(action[:, :, begin : begin + step])
            for begin in range(0, action.shape[2] or 1, step)
        ]
        return np.concatenate(parts, axis=-1)

    def _prob(self, action: Integers) -> Floats:
        """Return the probability of some actions: ``[R, n, m, S] -> [R, n, L, m]``."""
        replicas, levels, rows, _ = self.given.shape
        count = action.shape[2]
        flat = action.reshape(replicas, rows * count, len(self.sizes))
        reached = np.repeat(self.given, count, axis=2)
        found = np.ones((replicas, levels, rows * count))
        for slot in range(len(self.sizes)):
            choice = flat[:, None, :, slot, None]
            chances = self.network.slot_probabilities(reached, slot, self.sizes)
            found *= np.take_along_axis(chances, choice, axis=-1)[..., 0]
            reached = reached + self._added(slot, flat[..., slot])
        return found.reshape(replicas, levels, rows, count).swapaxes(1, 2)

    def prob_of_all(self) -> Floats:
        """Return the probability of every joint action, last slot fastest: ``[R, n, L, M]``.

        The choices of earlier slots are expanded like a tree, so that the last slot, usually the
        widest one, adds no evaluations of the network.
        """
        replicas, levels, rows, hidden = self.given.shape
        shape, count = (replicas, levels, rows), 1
        found, reached = np.ones((*shape, 1)), self.given[:, :, :, None]
        for slot, size in enumerate(self.sizes):
            flat = reached.reshape(replicas, levels, rows * count, hidden)
            chances = self.network.slot_probabilities(flat, slot, self.sizes)
            joint = found[..., None] * chances.reshape(*shape, count, size)
            count *= size
            found = joint.reshape(*shape, count)
            if slot + 1 < len(self.sizes):
                choices = self.network.of_slot(slot, self.sizes)[:, :, None, None]
                reached = (reached[..., None, :] + choices).reshape(*shape, count, hidden)
        return found.swapaxes(1, 2)

    def sample(self, level: int, count: int, rng: np.random.Generator) -> Integers:
        one = DecodedSequence(
            self.network.at_level(level), self.given[:, level : level + 1], self.sizes
        )
        replicas, _, rows, _ = self.given.shape
        reached = np.repeat(one.given, count, axis=2)
        chosen = []
        for slot, size in enumerate(self.sizes):
            chances = one.network.slot_probabilities(reached, slot, self.sizes)[:, 0]
            rising = chances.cumsum(axis=-1)
            uniform = rng.random(rising.shape[:-1]) * rising[..., -1]
            choice = (rising[..., : size - 1] <= uniform[..., None]).sum(axis=-1)
            chosen.append(choice)
            reached = reached + one._added(slot, choice)
        return np.stack(chosen, axis=-1).reshape(replicas, rows, count, len(self.sizes))

    def rows(self, row: Integers) -> "DecodedSequence":
        given = np.take_along_axis(self.given, row[:, None, :, None], axis=2)
        return DecodedSequence(self.network, given, self.sizes)

    def _added(self, slot: int, choice: Integers) -> Weights:
        """Return what choices ``[R, m]`` of a slot add to the first layer: ``[R, L, m, H]``."""
        weights = self.network.of_slot(slot, self.sizes)
        return np.take_along_axis(weights, choice[:, None, :, None], axis=2)
