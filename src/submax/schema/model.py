"""The model of a fitted version: the state of a policy, and the choices it was fitted for."""

import hashlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from submax.core.arrays import Booleans, Floats
from submax.core.errors import InputError
from submax.core.policy import Policy
from submax.core.problem import Feedback, Problem
from submax.core.serialization import modules_of, read_state, serializable, state_bytes
from submax.schema.actions import ChoiceIndices
from submax.schema.rows import Columns, Standardization
from submax.schema.schema import Schema

EXPECTED = 100
"""Number of decisions until the next version if it is unknown: the default of ``refit_rows``."""


@serializable("model")
class Model(NamedTuple):
    """The state of a policy for the choices ``active``, and the standardization of its contexts."""

    active: ChoiceIndices
    standardization: Standardization
    state: Any

    @property
    def width(self) -> int:
        return len(self.standardization.mean)

    @classmethod
    def fresh(cls, schema: Schema, policy: Policy[Any], seed: int) -> "Model":
        """Return the model before any data."""
        return cls.fitted(schema, policy, [], seed)

    @classmethod
    def fitted(
        cls,
        schema: Schema,
        policy: Policy[Any],
        parts: Iterable[Columns],
        seed: int,
        decisions: int = EXPECTED,
    ) -> "Model":
        """Return a model that is fitted to the parts; rows with inactive choices are left out.

        ``decisions`` is the number of decisions until the next update. The result depends only on
        the arguments. A policy that trains models is given all rows at once, any other policy one
        part after the other. The parts are iterated over several times.
        """
        active, problem = schema.menu.active, schema.problem
        if policy.traits.trains_models:
            all_parts = list(parts)
            parts = [Columns.joined(all_parts)] if all_parts else []
        rng = np.random.default_rng([seed, sum(len(part.reward) for part in parts)])
        state = policy.init(problem, 1, rng)
        standardization = Standardization.of(parts, schema.context.numeric)
        for part in parts:
            feedback = _feedback(part, active, standardization, problem)
            if feedback.reward.size:
                state = policy.update(state, feedback, rng)
        return cls(active, standardization, policy.record(state, upcoming=decisions))

    def updated(
        self,
        schema: Schema,
        policy: Policy[Any],
        rows: Columns,
        rng: np.random.Generator,
        decisions: int,
    ) -> "Model":
        """Return the model after more rows, with the same choices and standardization.

        ``decisions`` is the expected number of decisions until the next update. A policy assumes by
        itself that it equals the number of these rows, so another number is recorded.
        """
        feedback = _feedback(rows, self.active, self.standardization, schema.problem)
        if not feedback.reward.size:
            return self
        state = policy.update(self.state, feedback, rng)
        if decisions != feedback.reward.size:
            state = policy.record(state, upcoming=decisions)
        return self._replace(state=state)

    def to_bytes(self) -> bytes:
        return state_bytes(self, {})

    @classmethod
    def from_bytes(cls, data: bytes, expected: str, policy: Policy[Any]) -> "Model":
        """Read a model; raise an ``InputError`` unless its hash is the expected one."""
        if hash_of(data) != expected:
            raise InputError("the model is damaged: its hash differs from the recorded one")
        model, _ = read_state(data, modules_of(policy))
        if not isinstance(model, cls):
            raise InputError("the data do not hold the model of a bandit")
        return model


def hash_of(data: bytes) -> str:
    """Return the SHA-256 hash by which a model is identified."""
    return hashlib.sha256(data).hexdigest()


def _feedback(
    rows: Columns, active: ChoiceIndices, standardization: Standardization, problem: Problem
) -> Feedback:
    kept, action = reindexed(rows.action, active)
    log_prob = rows.log_prob[kept]
    slot_reward = None if problem.slot_scale is None else rows.by_slot()[kept][None]
    return Feedback(
        standardization.apply(rows.context[kept].astype(np.float64))[None],
        action.astype(problem.space.dtype)[None],
        rows.reward[kept][None],
        None if np.isnan(log_prob).any() else log_prob[None],
        np.ones((1, int(kept.sum()))),
        slot_reward,
    )


def reindexed(action: Floats, choices: ChoiceIndices) -> tuple[Booleans, Floats]:
    """Return which rows have only these choices, and their actions with indices among these."""
    kept = np.ones(len(action), dtype=bool)
    found = action.copy()
    for slot, indices in enumerate(choices[: action.shape[1]]):
        chosen = action[:, slot].astype(np.int64)
        place = np.full(max(max(indices), chosen.max(initial=0)) + 1, -1)
        place[list(indices)] = np.arange(len(indices))
        found[:, slot] = place[chosen]
        kept &= place[chosen] >= 0
    return kept, found[kept]
