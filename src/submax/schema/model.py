"""A fitted version: what a policy learned, and of which choices and contexts."""

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from submax.core.arrays import Booleans, Floats
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.running.state_file import modules_of, read_state, state_bytes
from submax.core.running.stored import stored
from submax.schema.columns import Columns
from submax.schema.menu import Shown
from submax.schema.schema import Schema
from submax.schema.standardization import Standardization

EXPECTED = 100
"""Decisions before the next version, where nothing is known of them: what a bandit waits for."""


@stored("model")
class Model(NamedTuple):
    """What decides: a policy's state over the choices ``shown``, for contexts as standardized."""

    shown: Shown
    standardization: Standardization
    state: Any

    @classmethod
    def fresh(cls, schema: Schema, policy: Policy[Any], seed: int) -> "Model":
        """Before any data."""
        return cls.fitted(schema, policy, [], seed)

    @classmethod
    def fitted(
        cls,
        schema: Schema,
        policy: Policy[Any],
        parts: Sequence[Columns],
        seed: int,
        decisions: int = EXPECTED,
    ) -> "Model":
        """Learn from rows in parts, those of choices that are no longer active left out.

        The same parts, schema, seed and number of ``decisions`` before the next rewards are learned
        give the same model. A policy that trains networks sees all rows at once, any other part by
        part.
        """
        shown, problem = schema.menu.active, schema.problem
        rng = np.random.default_rng([seed, sum(len(part.reward) for part in parts)])
        state = policy.init(problem, 1, rng)
        standardization = Standardization.of(parts, schema.context.numeric)
        for part in [Columns.joined(parts)] if policy.facts.trains_models and parts else parts:
            feedback = _feedback(part, shown, standardization, problem)
            if feedback.reward.size:
                state = policy.update(state, feedback, rng)
        return cls(shown, standardization, policy.record(state, upcoming=decisions))

    def updated(
        self,
        schema: Schema,
        policy: Policy[Any],
        rows: Columns,
        rng: np.random.Generator,
        decisions: int,
    ) -> "Model":
        """The model after more rows; choices and standardization stay as they are.

        ``decisions`` is how many are expected to be taken before the next rows are learned from. A
        policy takes it by itself for the number of rows that it was given, and is told otherwise.
        """
        feedback = _feedback(rows, self.shown, self.standardization, schema.problem)
        if not feedback.reward.size:
            return self
        state = policy.update(self.state, feedback, rng)
        if decisions != feedback.reward.size:
            state = policy.record(state, upcoming=decisions)
        return self._replace(state=state)

    def to_bytes(self) -> bytes:
        """As safetensors."""
        return state_bytes(self, {})

    @classmethod
    def from_bytes(cls, data: bytes, expected: str, policy: Policy[Any]) -> "Model":
        """Read a model, but only if its hash is the expected one."""
        if hash_of(data) != expected:
            raise InputError("the model is damaged: its hash is not the one that was recorded")
        model, _ = read_state(data, modules_of(policy))
        if not isinstance(model, cls):
            raise InputError("the data are no model of a bandit")
        return model


def hash_of(data: bytes) -> str:
    """What a model is known by."""
    return hashlib.sha256(data).hexdigest()


def _feedback(
    rows: Columns, shown: Shown, standardization: Standardization, problem: Problem
) -> Feedback:
    kept, action = renumbered(rows.action, shown)
    log_prob = rows.log_prob[kept]
    return Feedback(
        standardization.apply(rows.context[kept].astype(np.float64))[None],
        action.astype(problem.space.dtype)[None],
        rows.reward[kept][None],
        None if np.isnan(log_prob).any() else log_prob[None],
        np.ones((1, int(kept.sum()))),
    )


def renumbered(action: Floats, shown: Shown) -> tuple[Booleans, Floats]:
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
