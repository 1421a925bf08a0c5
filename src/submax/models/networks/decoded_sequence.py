"""The distribution of an autoregressive network in given contexts."""

import math
from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.conditioning.conditional_distribution import ConditionalDistribution
from submax.models.networks.autoregressive_network import AutoregressiveNetwork
from submax.models.networks.choice_walk import ChoiceWalk

ACTIVATIONS_AT_ONCE = 2**18
"""About how many activations are held in memory, 2 MB of float64, which stay in the cache of a
processor; more actions are processed in parts."""


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
        step = max(1, ACTIVATIONS_AT_ONCE // max(1, replicas * levels * hidden))
        parts = [
            self._prob(action[:, :, begin : begin + step])
            for begin in range(0, action.shape[2] or 1, step)
        ]
        return np.concatenate(parts, axis=-1)

    def _prob(self, action: Integers) -> Floats:
        """Return the probability of some actions: ``[R, n, m, S] -> [R, n, L, m]``."""
        count = action.shape[2]
        parts = [self._part(rows)._prob_of_part(action[:, rows]) for rows in self._row_parts(count)]
        return np.concatenate(parts, axis=1)

    def _prob_of_part(self, action: Integers) -> Floats:
        replicas, levels, rows, _ = self.given.shape
        walk = ChoiceWalk(self.network, self.given, self.sizes, action.shape[2])
        found = np.ones((replicas, levels, rows, action.shape[2]))
        for slot in range(len(self.sizes)):
            found *= walk.of_choices(walk.chances(), action[..., slot])
            if slot + 1 < len(self.sizes):
                walk.take(action[..., slot])
        return found.swapaxes(1, 2)

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
        replicas, _, rows, _ = self.given.shape
        one = DecodedSequence(
            self.network.at_level(level), self.given[:, level : level + 1], self.sizes
        )
        uniform = rng.random((len(self.sizes), replicas, rows, count))
        parts = [one._part(part)._drawn(uniform[:, :, part]) for part in one._row_parts(count)]
        return np.concatenate(parts, axis=1)

    def _drawn(self, uniform: Floats) -> Integers:
        """Draw an action for uniform numbers of each slot: ``[S, R, n, m] -> [R, n, m, S]``."""
        walk, chosen = ChoiceWalk(self.network, self.given, self.sizes, uniform.shape[-1]), []
        for slot, size in enumerate(self.sizes):
            rising = walk.of_actions(walk.chances().cumsum(axis=-1))[:, 0]
            wanted = uniform[slot] * rising[..., -1]
            chosen.append((rising[..., : size - 1] <= wanted[..., None]).sum(axis=-1))
            if slot + 1 < len(self.sizes):
                walk.take(chosen[-1])
        return np.stack(chosen, axis=-1)

    def _row_parts(self, count: int) -> list[slice]:
        """Split the rows so that the activations of ``count`` actions of each fit into memory."""
        replicas, levels, rows, hidden = self.given.shape
        evaluated = min(count, math.prod(self.sizes[:-1]))
        step = max(1, ACTIVATIONS_AT_ONCE // max(1, replicas * levels * evaluated * hidden))
        return [slice(begin, begin + step) for begin in range(0, rows or 1, step)]

    def _part(self, rows: slice) -> "DecodedSequence":
        return DecodedSequence(self.network, self.given[:, :, rows], self.sizes)

    def rows(self, row: Integers) -> "DecodedSequence":
        given = np.take_along_axis(self.given, row[:, None, :, None], axis=2)
        return DecodedSequence(self.network, given, self.sizes)
