"""Rows to learn from, as columns, and the standardization of their contexts."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats
from submax.core.serialization import serializable


@serializable("columns")
class Columns(NamedTuple):
    """Training rows: encoded ``context [n, D]``, and ``action [n, S]`` as indices of choices.

    ``reward`` and ``log_prob`` are ``[n]``; ``log_prob`` is NaN if it was not logged.
    ``slot_reward [n, S]`` has the reward of each slot, NaN if it is unknown; None if slots have no
    rewards of their own.
    """

    context: NDArray[np.float32]
    action: Floats
    reward: Floats
    log_prob: Floats
    slot_reward: Floats | None = None

    @classmethod
    def empty(cls, width: int, slots: int) -> "Columns":
        context = np.zeros((0, width), dtype=np.float32)
        return cls(context, np.zeros((0, slots)), np.zeros(0), np.zeros(0))

    @classmethod
    def joined(cls, parts: "Sequence[Columns]") -> "Columns":
        """Return the rows of all parts, one part after the other."""
        if len(parts) == 1:
            return parts[0]
        # Zero rows say nothing about slots.
        known = [part for part in parts if len(part.reward)] or parts[:1]
        context, action, reward, log_prob = (
            np.concatenate([part[place] for part in known]) for place in range(4)
        )
        by_slot = None
        if any(part.slot_reward is not None for part in known):
            by_slot = np.concatenate([part.by_slot() for part in known])
        return cls(context, action, reward, log_prob, by_slot)

    def by_slot(self) -> Floats:
        """Return the rewards of all slots, NaN if they are unknown, ``[n, S]``."""
        unknown = np.full(self.action.shape, np.nan)
        return unknown if self.slot_reward is None else self.slot_reward

    def rows(self, which: slice) -> "Columns":
        columns: Any = (None if column is None else column[which] for column in self)
        return Columns(*columns)

    @property
    def hash(self) -> str:
        """SHA-256 of all shapes, types and values."""
        digest = hashlib.sha256()
        for column in self:
            if column is None:
                continue
            digest.update(repr((column.shape, column.dtype.str)).encode())
            digest.update(np.ascontiguousarray(column).tobytes())
        return digest.hexdigest()


@serializable("standardization")
class Standardization(NamedTuple):
    """Shift and scale of the numbers of a context, ``[D]`` each; categories are not changed."""

    mean: Floats
    scale: Floats

    def apply(self, context: Floats) -> Floats:
        """Return standardized contexts, ``[..., D]``.

        Columns of the context that were added later, at its end, are left out.
        """
        if context.shape[-1] > len(self.mean):
            context = context[..., : len(self.mean)]
        applied: Floats = (context - self.mean) / self.scale
        return applied


@serializable("context-moments")
class ContextMoments(NamedTuple):
    """The number of ``rows``, their ``mean [D]``, and Σ (x − mean)² as ``square [D]``."""

    rows: int
    mean: Floats
    square: Floats

    @classmethod
    def empty(cls, width: int) -> "ContextMoments":
        return cls(0, np.zeros(width), np.zeros(width))

    def after(self, parts: Iterable[Columns]) -> "ContextMoments":
        """Return the moments with more rows.

        Reference: Chan, Golub and LeVeque (1983), Algorithms for computing the sample variance.
        """
        count, mean, square = self
        if not len(mean):
            return self
        for part in parts:
            new = len(part.context)
            if not new:
                continue
            other = part.context.mean(axis=0, dtype=np.float64)
            away = other - mean
            square = square + ((part.context - other) ** 2).sum(axis=0)
            square += away**2 * (count * new / (count + new))
            count += new
            mean = mean + away * (new / count)
        return ContextMoments(count, mean, square)

    def standardization(self, numeric: Sequence[bool]) -> Standardization:
        """Return the standardization of the ``numeric`` columns, by mean and standard deviation."""
        which: Booleans = np.array(numeric, dtype=bool)
        deviation = np.sqrt(self.square / max(self.rows, 1))
        # Contexts are float32: a smaller deviation is a rounding error.
        varies = which & (deviation > 1e-7 * np.abs(self.mean))
        return Standardization(np.where(which, self.mean, 0.0), np.where(varies, deviation, 1.0))
