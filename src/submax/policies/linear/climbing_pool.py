"""Posterior draws of a regression on joint choices, and the actions that hill climbing finds."""

from collections.abc import Iterator
from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.running.stored import stored
from submax.policies.linear.hill_climb import Hills, Weights, climbed
from submax.policies.linear.slot_effects import SlotEffects
from submax.policies.linear.slot_regression import SlotRegression

WEIGHTS_AT_ONCE = 2**20
"""About how many drawn weights are processed together, 4 MB of float32."""


@stored("climbing-pool")
class ClimbingPool(NamedTuple):
    """Posterior draws with the random joint actions ``starts [R, draws, restarts, S]`` of each.

    With context effects a climb depends on the context. Then ``weights [R, draws, G]`` are stored,
    without the weights of constant effects, and ``end`` and ``log_share`` are not used. Without
    context effects every climb is done once: ``end [R, draws, S]`` is the action it ends at,
    ``log_share [R, draws]`` the log-share of draws that end there, and ``weights`` has width 0.
    """

    starts: Integers
    weights: Weights
    end: Integers
    log_share: Floats

    @classmethod
    def empty(cls, effects: SlotEffects, replicas: int, draws: int, restarts: int) -> Self:
        """A pool of the right shapes before the first update; all climbs end at choice 0."""
        slots = len(effects.sizes)
        stored_weights = effects.count - effects.constant if effects.contexts else 0
        return cls(
            np.zeros((replicas, draws, restarts, slots), dtype=np.int64),
            np.zeros((replicas, draws, stored_weights), dtype=np.float32),
            np.zeros((replicas, draws, slots), dtype=np.int64),
            np.zeros((replicas, draws)),
        )

    def drawn(
        self,
        effects: SlotEffects,
        regression: SlotRegression,
        sweeps: int,
        rng: np.random.Generator,
    ) -> Self:
        """A pool of the same size with new draws from the posterior."""
        starts = rng.integers(effects.sizes, size=self.starts.shape)
        weights, end = self.weights.copy(), self.end.copy()
        replicas, draws = end.shape[:2]
        for block, drawn in _sampled(effects, regression, draws, rng):
            if effects.contexts:
                weights[:, block] = drawn
                continue
            flat = drawn.reshape(-1, drawn.shape[-1])
            hills = Hills(effects, flat[:, : sum(effects.sizes)], flat, np.arange(len(flat)))
            of_block = starts[:, block].reshape(len(flat), *starts.shape[2:])
            end[:, block] = climbed(hills, of_block, sweeps).reshape(replicas, -1, end.shape[-1])
        pool = self._replace(starts=starts, weights=weights, end=end)
        if effects.contexts:
            return pool
        return pool._replace(log_share=np.log(pool._share_of(effects, end)))

    def replaced(self, replica: Booleans, other: Self) -> Self:
        """The pool with the draws of the chosen replicas taken from another pool."""
        within = replica[:, None, None]
        return self._replace(
            starts=np.where(within[..., None], other.starts, self.starts),
            weights=np.where(within, other.weights, self.weights),
            end=np.where(within, other.end, self.end),
            log_share=np.where(replica[:, None], other.log_share, self.log_share),
        )

    def ends(
        self, effects: SlotEffects, context: Floats, member: Integers, sweeps: int
    ) -> Integers:
        """The action at which the climb of each row's draw ends: ``[R, n] -> [R, n, S]``."""
        replicas, rows = member.shape
        if not effects.contexts:
            return self.end[np.arange(replicas)[:, None], member]
        flat = (member + np.arange(replicas)[:, None] * self.end.shape[1]).ravel()
        contexts = context.reshape(replicas * rows, effects.contexts)
        end = np.empty((replicas * rows, self.end.shape[-1]), dtype=np.int64)
        step = max(1, WEIGHTS_AT_ONCE // self.weights.shape[-1])
        for start in range(0, len(flat), step):
            block = slice(start, start + step)
            end[block] = self._climbed(effects, contexts[block], flat[block], sweeps)
        return end.reshape(replicas, rows, end.shape[-1])

    def log_shares(self, member: Integers) -> Floats:
        """Log-share of draws that end at the same action as these, without context effects."""
        return self.log_share[np.arange(len(member))[:, None], member]

    def share(self, effects: SlotEffects, context: Floats, action: Integers, sweeps: int) -> Floats:
        """The share of draws whose climb ends at the action of each row: ``[R, n]``."""
        if not effects.contexts:
            return self._share_of(effects, action)
        draws = self.end.shape[1]
        found = np.empty(action.shape[:2])
        every = np.arange(draws)
        for row in range(action.shape[1]):
            member = np.broadcast_to(every, (len(action), draws))
            repeated = np.repeat(context[:, row, None], draws, axis=1)
            end = self.ends(effects, repeated, member, sweeps)
            found[:, row] = (end == action[:, row, None]).all(axis=-1).mean(axis=1)
        return found

    def _share_of(self, effects: SlotEffects, action: Integers) -> Floats:
        """The share of the stored ends that equal each action: ``[R, n, S] -> [R, n]``."""
        draws = self.end.shape[1]
        number = _numbered(np.concatenate([self.end, action], axis=1), effects.sizes)
        counts = np.bincount(number[:, :draws].ravel(), minlength=number.size)
        share: Floats = counts[number[:, draws:]] / draws
        return share

    def _climbed(
        self, effects: SlotEffects, context: Floats, member: Integers, sweeps: int
    ) -> Integers:
        """Climb with draw ``member [N]`` in ``context [N, D]``: the actions ``[N, S]``."""
        weights = self.weights.reshape(-1, self.weights.shape[-1])
        choices = sum(effects.sizes)
        begin = effects.interactions.start - effects.constant
        slopes = weights[member, begin:].reshape(len(member), choices, effects.contexts)
        added = np.einsum("ncd,nd->nc", slopes, context.astype(np.float32))
        hills = Hills(effects, weights[member, :choices] + added, weights, member)
        starts = self.starts.reshape(-1, *self.starts.shape[2:])
        return climbed(hills, starts[member], sweeps)


def _sampled(
    effects: SlotEffects, regression: SlotRegression, draws: int, rng: np.random.Generator
) -> Iterator[tuple[slice, Weights]]:
    """Draw weights ``[R, draws, G]``, without those of constant effects, in blocks of draws."""
    mean = regression.mean[:, None, effects.constant :].astype(np.float32)
    deviation = np.sqrt(regression.variance[:, None, effects.constant :]).astype(np.float32)
    step = max(1, WEIGHTS_AT_ONCE // mean.size)
    for start in range(0, draws, step):
        block = slice(start, min(start + step, draws))
        shape = (len(mean), block.stop - start, mean.shape[-1])
        drawn = rng.standard_normal(shape, dtype=np.float32)
        drawn *= deviation
        drawn += mean
        yield block, drawn


def _numbered(action: Integers, sizes: tuple[int, ...]) -> Integers:
    """Number the distinct actions of each replica consecutively: ``[R, n, S] -> [R, n]``."""
    shape = action.shape[:2]
    number = np.repeat(np.arange(shape[0]), shape[1])
    for slot, size in enumerate(sizes):
        # The product of all sizes may exceed an integer, so actions are renumbered after each slot.
        key = number * size + action[..., slot].ravel()
        number = np.unique(key, return_inverse=True)[1].ravel()
    return number.reshape(shape)
