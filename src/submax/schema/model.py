"""The model of a fitted version: the state of a policy, and what it was fitted to."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from submax.core.arrays import Booleans, Floats
from submax.core.errors import InputError
from submax.core.policy import Policy
from submax.core.problem import Feedback, Problem
from submax.core.serialization import modules_of, read_state, serializable, state_bytes
from submax.schema.actions import ChoiceIndices
from submax.schema.rows import Columns, ContextMoments, Standardization
from submax.schema.schema import Schema

EXPECTED = 100
"""Number of decisions until the next version if it is unknown: the default of ``refit_rows``."""
ROWS_KEPT = 100_000
"""Rows kept to fit a policy again when actions are added or removed, or numbers standardized. A
policy that trains a model on all rows, such as a network, is given these: training on more takes
minutes, and hardly changes a decision."""
NUMBERS_KEPT = 2**24
"""Numbers in the contexts of these rows (64 MB): with more than 167 in a context, fewer rows."""
FARTHEST_MEAN, WIDEST_RATIO = 1.0, 2.0
"""How far means of contexts, in deviations, and deviations, as a ratio, may be from those of the
last full fit. Policies hardly notice less, and a full fit costs as much as many updates."""


def most_rows(width: int) -> int:
    """How many rows are kept if an encoded context has ``width`` numbers."""
    return min(ROWS_KEPT, NUMBERS_KEPT // max(1, width))


@serializable("model")
class Model(NamedTuple):
    """The state of a policy for the choices ``active``, and the standardization of its contexts.

    It was learned from so many ``rows``, of which ``fitted_rows`` were given to the last full fit;
    ``moments`` are those of the contexts of all of them. All functions are pure: the same rows and
    seed give the same model, in any process.
    """

    active: ChoiceIndices
    standardization: Standardization
    state: Any
    rows: int
    fitted_rows: int
    moments: ContextMoments

    @property
    def width(self) -> int:
        return len(self.standardization.mean)

    @classmethod
    def fitted(
        cls,
        schema: Schema,
        policy: Policy[Any],
        parts: Iterable[Columns],
        seed: int,
        ahead: int = EXPECTED,
        rows: int | None = None,
    ) -> "Model":
        """Return a model that is fitted to the parts; rows with inactive choices are left out.

        ``ahead`` is the expected number of decisions until the next update, and ``rows`` the number
        of all rows so far if the parts are only the last of them. A policy that trains models is
        given all rows at once, any other policy one part after the other. The parts are iterated
        over several times.
        """
        active, problem = schema.menu.active, schema.problem
        if policy.traits.trains_models:
            all_parts = list(parts)
            parts = [Columns.joined(all_parts)] if all_parts else []
        count = sum(len(part.reward) for part in parts)
        rng = np.random.default_rng([seed, count])
        state = policy.init(problem, 1, rng)
        moments = ContextMoments.empty(schema.context.width).after(parts)
        standardization = moments.standardization(schema.context.numeric)
        for feedback in _batches(parts, active, standardization, problem, policy):
            state = policy.update(state, feedback, rng)
        count = count if rows is None else rows
        state = policy.record(state, upcoming=ahead)
        return cls(active, standardization, state, count, count, moments)

    def updated(
        self,
        schema: Schema,
        policy: Policy[Any],
        parts: Iterable[Columns],
        seed: int,
        ahead: int,
    ) -> "Model":
        """Return the model after more rows, with the same choices and standardization.

        The parts are iterated over several times. Unless told otherwise, a policy assumes that as
        many decisions follow as it got rows.
        """
        state, rows = self.state, self.rows + sum(len(part.reward) for part in parts)
        rng = np.random.default_rng([seed, rows])
        problem = schema.problem
        for feedback in _batches(parts, self.active, self.standardization, problem, policy):
            state = policy.update(state, feedback, rng)
            if ahead != feedback.reward.size:
                state = policy.record(state, upcoming=ahead)
        return self._replace(state=state, rows=rows, moments=self.moments.after(parts))

    def suits(self, schema: Schema) -> bool:
        """Whether the model has the active choices and the columns of the context."""
        return self.active == schema.menu.active and self.width == schema.context.width

    def must_fit(self, schema: Schema, rows: int) -> bool:
        """Whether a model of ``rows`` rows must be fitted from scratch, and not updated.

        The active choices or the columns of the context have changed; or the rows have doubled
        since the last fit and numbers of the context are no longer standardized by it: a mean is a
        deviation away from 0, or a deviation is twice or half as large as it was.
        """
        if not self.suits(schema):
            return True
        numeric = schema.context.numeric
        if not 2 * self.fitted_rows <= rows <= most_rows(self.width) or not any(numeric):
            return False
        known, now = self.standardization, self.moments.standardization(numeric)
        moved = abs(now.mean - known.mean) > FARTHEST_MEAN * known.scale
        ratio = now.scale / known.scale
        stretched = (ratio > WIDEST_RATIO) | (ratio < 1 / WIDEST_RATIO)
        return not self.fitted_rows or bool((moved | stretched).any())

    def to_bytes(self) -> bytes:
        return state_bytes(self, {})

    @classmethod
    def from_bytes(cls, data: bytes, expected: str, policy: Policy[Any]) -> "Model":
        """Read a model; raise an ``InputError`` unless its hash is the expected one."""
        if hash_of(data) != expected:
            raise InputError("the model is damaged: its hash differs from the recorded one")
        model, _ = read_state(data, modules_of(policy))
        if not isinstance(model, cls):
            raise InputError("the data do not contain the model of a bandit")
        return model


def hash_of(data: bytes) -> str:
    """Return the SHA-256 hash by which a model is identified."""
    return hashlib.sha256(data).hexdigest()


def _batches(
    parts: Iterable[Columns],
    active: ChoiceIndices,
    standardization: Standardization,
    problem: Problem,
    policy: Policy[Any],
) -> Iterator[Feedback]:
    """The rows of each part that have only active choices, if it has any."""
    for rows in parts:
        kept, action = reindexed(rows.action, active)
        log_prob = rows.log_prob[kept]
        if policy.traits.needs_propensities and (missing := int(np.isnan(log_prob).sum())):
            raise InputError(
                f"the policy {policy!r:.80} needs propensities, and {missing} of the rows to learn "
                "from have none: learn from the log with this policy, which estimates them"
            )
        if kept.any():
            yield Feedback(
                standardization.apply(rows.context[kept].astype(np.float64))[None],
                action.astype(problem.space.dtype)[None],
                rows.reward[kept][None],
                None if np.isnan(log_prob).any() else log_prob[None],
                np.ones((1, len(action))),
                None if problem.slot_scale is None else rows.by_slot()[kept][None],
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
