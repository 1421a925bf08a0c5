"""A fitted version: what a policy learned, and of which choices and contexts."""

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats
from submax.core.errors import InvalidValue
from submax.core.feedback import Feedback
from submax.core.policy import Policy
from submax.core.problem import Problem
from submax.live.menu import Menu, Shown
from submax.live.settings import Settings
from submax.live.training_rows import Columns
from submax.networks.state_file import read_state, state_bytes


class Standardization(NamedTuple):
    """Numbers of the context are shifted and scaled; categories are not: both ``[D]``."""

    mean: Floats
    scale: Floats

    @classmethod
    def of(cls, context: NDArray[np.float32], numeric: Sequence[bool]) -> "Standardization":
        """By mean and standard deviation of the rows that were learned from."""
        which: Booleans = np.array(numeric, dtype=bool)
        if len(context) == 0:
            return cls(np.zeros(len(which)), np.ones(len(which)))
        deviation = context.std(axis=0, dtype=np.float64)
        scale = np.where(which & (deviation > 0), deviation, 1.0)
        return cls(np.where(which, context.mean(axis=0, dtype=np.float64), 0.0), scale)

    def apply(self, context: Floats) -> Floats:
        """``[..., D]``."""
        applied: Floats = (context - self.mean) / self.scale
        return applied


class Model(NamedTuple):
    """What decides: a policy's state over the choices ``shown``, for contexts as standardized."""

    shown: Shown
    standardization: Standardization
    state: Any

    @classmethod
    def fresh(cls, settings: Settings, menu: Menu, policy: Policy[Any]) -> "Model":
        """Before any data."""
        nothing = Columns.empty(settings.context.width, 0)
        return cls.fitted(settings, menu, policy, nothing)

    @classmethod
    def fitted(
        cls,
        settings: Settings,
        menu: Menu,
        policy: Policy[Any],
        rows: Columns,
    ) -> "Model":
        """Learn from rows, those of choices that are no longer active left out.

        The same rows and settings give the same model.
        """
        shown = menu.active
        problem = Problem(menu.space(shown), settings.context.width, settings.scale)
        rng = np.random.default_rng([settings.seed, len(rows.reward)])
        state = policy.init(problem, 1, rng)
        standardization = Standardization.of(rows.context, settings.context.numeric)
        kept, action = _renumbered(rows.action, shown)
        if kept.any():
            feedback = Feedback(
                standardization.apply(rows.context[kept].astype(np.float64))[None],
                action.astype(problem.space.dtype)[None],
                rows.reward[kept][None],
                rows.log_prob[kept][None],
                np.ones((1, int(kept.sum()))),
            )
            state = policy.update(state, feedback, rng)
        return cls(shown, standardization, state)

    def to_bytes(self) -> bytes:
        """As safetensors."""
        return state_bytes(self, {})

    @classmethod
    def from_bytes(cls, data: bytes, expected: str, policy: Policy[Any]) -> "Model":
        """Read a model, but only if its hash is the expected one."""
        if hash_of(data) != expected:
            raise InvalidValue("the model is damaged: its hash is not the one that was recorded")
        model, _ = read_state(data, [type(policy).__module__])
        if not isinstance(model, cls):
            raise InvalidValue("the data are no model of a bandit")
        return model


def hash_of(data: bytes) -> str:
    """What a model is known by."""
    return hashlib.sha256(data).hexdigest()


def _renumbered(action: Floats, shown: Shown) -> tuple[Booleans, Floats]:
    """Which rows have only choices that are shown, and their numbers among these."""
    kept = np.ones(len(action), dtype=bool)
    found = action.copy()
    for slot, numbers in enumerate(shown[: action.shape[1]]):
        chosen = action[:, slot].astype(np.int64)
        place = np.full(max(max(numbers), chosen.max(initial=0)) + 1, -1)
        place[list(numbers)] = np.arange(len(numbers))
        found[:, slot] = place[chosen]
        kept &= place[chosen] >= 0
    return kept, found[kept]
