"""Rows become models: updates between full fits, the rows that are kept, failures of a policy."""

import math
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np

from submax.bandit.settings import Settings
from submax.core.errors import one_line
from submax.core.policy import Policy
from submax.core.serialization import serializable
from submax.schema.context import ContextSchema
from submax.schema.model import EXPECTED, Model
from submax.schema.rows import Columns, ContextMoments
from submax.schema.schema import Schema

LEARN_SHARE = 0.04
"""A policy learns when the new rows are this share of the rows learned from. An update may cost as
much as 50 decisions; with this share the cost for each row falls as rows become many. The regret of
2,000 rounds with 3 and with 10 actions was not smaller with 2 % or 3 %."""
CONTEXT_LEARN_SHARE = 0.1
"""The share for a policy that looks at a context: its fits cost more, and a share of 2 % was not
better in 1,500 rounds with 10 actions and 10 numbers."""
NETWORK_LEARN_SHARE = 0.25
"""The share for a policy that trains a model on all rows, such as a network: it takes seconds."""
ROWS_KEPT = 100_000
"""Rows kept to fit a policy again when actions are added or removed, or numbers standardized. While
there are no more rows, numbers are standardized again if they have moved; see ``must_fit``."""
NUMBERS_KEPT = 2**24
"""Numbers in the contexts of these rows (64 MB): with more than 167 in a context, fewer rows."""
FARTHEST_MEAN, WIDEST_RATIO = 1.0, 2.0
"""How far means of contexts, in deviations, and deviations, as a ratio, may be from those of the
last full fit. Policies hardly notice less, and a full fit costs as much as many updates."""
MAX_PART_ROWS = 8192
"""Parts are not joined beyond this size, so the oldest part can be forgotten in time."""
FAILED_UPDATES = "updates in which the policy failed"
"""The name under which these are counted among the failures of a bandit."""


class LearningWarning(UserWarning):
    """A policy raised an error while it learned; the last version keeps deciding."""


class RefitResult(msgspec.Struct, frozen=True):
    """What ``Bandit.refit`` did; it is true in a condition if something was ``learned``.

    ``version`` is the version that decides now, ``rows`` the number of new rows that were learned
    from. ``reason`` is one sentence: what was learned, or why nothing was.
    """

    learned: bool
    version: int
    rows: int
    reason: str

    def __bool__(self) -> bool:
        return self.learned


def most_rows(width: int) -> int:
    """How many rows are kept if an encoded context has ``width`` numbers."""
    return min(ROWS_KEPT, NUMBERS_KEPT // max(1, width))


@serializable("learned-model")
class LearnedModel(NamedTuple):
    """A model, the number of ``rows`` it was learned from, and their number at its last full fit.

    ``moments`` are those of the contexts since then, the rows of the full fit included. All
    functions are pure: the same rows and seed give the same model. They can be run in another
    process.
    """

    model: Model
    rows: int
    fitted_rows: int
    moments: ContextMoments

    @classmethod
    def fitted(
        cls,
        schema: Schema,
        policy: Policy[Any],
        parts: Iterable[Columns],
        seed: int,
        ahead: int = EXPECTED,
        rows: int | None = None,
    ) -> "LearnedModel":
        """Fit a model to all parts, from scratch. The parts are iterated over several times.

        ``ahead`` is the expected number of decisions before the next update. ``rows`` is the number
        of all rows so far if the parts are only the last of them.
        """
        model = Model.fitted(schema, policy, parts, seed, ahead)
        count = sum(len(part.reward) for part in parts) if rows is None else rows
        moments = ContextMoments.empty(schema.context.width).after(parts)
        return cls(model, count, count, moments)

    def updated(
        self,
        schema: Schema,
        policy: Policy[Any],
        parts: Iterable[Columns],
        seed: int,
        ahead: int,
    ) -> "LearnedModel":
        """The model after more rows, with the same choices and standardization.

        The parts are iterated over several times.
        """
        rows = self.rows + sum(len(part.reward) for part in parts)
        model, rng = self.model, np.random.default_rng([seed, rows])
        for part in parts:
            model = model.updated(schema, policy, part, rng, ahead)
        return LearnedModel(model, rows, self.fitted_rows, self.moments.after(parts))

    def must_fit(self, schema: Schema, rows: int) -> bool:
        """Whether a model of ``rows`` rows must be fitted from scratch, and not updated.

        The active choices or the columns of the context have changed; or the rows have doubled
        since the last fit and numbers of the context are no longer standardized by it: a mean is a
        deviation away from 0, or a deviation is twice or half as large as it was.
        """
        if self.model.active != schema.menu.active or self.model.width != schema.context.width:
            return True
        if not 2 * self.fitted_rows <= rows <= most_rows(schema.context.width):
            return False
        numeric = schema.context.numeric
        if not any(numeric):
            return False
        known, now = self.model.standardization, self.moments.standardization(numeric)
        moved = abs(now.mean - known.mean) > FARTHEST_MEAN * known.scale
        ratio = now.scale / known.scale
        stretched = (ratio > WIDEST_RATIO) | (ratio < 1 / WIDEST_RATIO)
        return not self.fitted_rows or bool((moved | stretched).any())


class RecentRows:
    """The last rows of a growing list: at least ``most`` of them, or all if there are fewer.

    Rows come in small parts. Two parts are joined when the later one has at least half the rows of
    the one before it, so there are few parts and no row is copied often.
    """

    def __init__(self, most: int, parts: Iterable[Columns] = ()) -> None:
        self.most = most
        self.parts = list(parts)
        self.count = sum(len(part.reward) for part in self.parts)

    def add(self, rows: Columns) -> None:
        """Append rows, and forget the oldest part if there are enough rows without it."""
        if not len(rows.reward):
            return
        self.parts.append(rows)
        self.count += len(rows.reward)
        while len(self.parts) > 1 and self._mergeable(*self.parts[-2:]):
            self.parts[-2:] = [Columns.joined(self.parts[-2:])]
        while self.count - len(self.parts[0].reward) >= self.most:
            self.count -= len(self.parts.pop(0).reward)

    def widen(self, context: ContextSchema) -> None:
        """Add the columns that were added to the contexts."""
        self.most = most_rows(context.width)
        self.parts = [one._replace(context=context.widened(one.context)) for one in self.parts]

    @staticmethod
    def _mergeable(before: Columns, last: Columns) -> bool:
        sizes = len(before.reward), len(last.reward)
        return 2 * sizes[1] >= sizes[0] and sum(sizes) <= MAX_PART_ROWS


class Learner:
    """Keeps a model up to date with the rows that it is given; where rows come from is not known.

    The caller collects new rows, asks ``is_due``, and passes them to ``learn``. It forgets them
    only if ``learn`` returns true: if the policy raises an error, the last model stays, a
    ``LearningWarning`` names the cause once, and learning is due again when there are twice as many
    new rows.

    Learning is due if the new rows are at least a share of those learned from (``learn_share`` of
    the settings), and at least one; with 4 %, each of the first 25 rows is learned one by one.
    Usually the model is updated with the new rows alone. It is fitted from scratch to the rows that
    are kept when the active choices or the policy have changed, or ``LearnedModel.must_fit`` says
    so. The same rows and the same seed give the same models.

    ``policy`` and ``schema`` are those of the next model; ``fitted_policy`` made the present one.
    ``version`` counts models, ``failure`` is the cause of the last failure, if learning failed.
    """

    def __init__(
        self,
        schema: Schema,
        policy: Policy[Any],
        seed: int,
        learn_share: float | None = None,
        failures: Counter[str] | None = None,
    ) -> None:
        self.fitted_policy = policy
        self.state = LearnedModel.fitted(schema, policy, [], seed)
        self.version = 0
        self.recent = RecentRows(most_rows(schema.context.width))
        self.failure: str | None = None
        self._failures: Counter[str] = Counter() if failures is None else failures
        self.use(schema, policy, seed, learn_share)

    def use(
        self, schema: Schema, policy: Policy[Any], seed: int, learn_share: float | None
    ) -> None:
        """Learn by these from now on; ``learn_share`` None stands for the policy's default."""
        self.schema, self.policy, self.seed = schema, policy, seed
        self.recent.widen(schema.context)
        self.share = self._default_share() if learn_share is None else learn_share
        self._plan()

    def _default_share(self) -> float:
        traits = self.policy.traits
        if traits.trains_models:
            return NETWORK_LEARN_SHARE
        reads_context = traits.uses_context and self.schema.context.width > 0
        return CONTEXT_LEARN_SHARE if reads_context else LEARN_SHARE

    @property
    def model(self) -> Model:
        """The present model."""
        return self.state.model

    def _plan(self, failed_with: int | None = None) -> None:
        """Plan when to learn next: at once if the model is outdated; later after a failure."""
        model, schema = self.model, self.schema
        # Whether the model was made for other choices, another context or another policy.
        self.outdated = (
            self.policy is not self.fitted_policy
            or model.active != schema.menu.active
            or model.width != schema.context.width
        )
        if failed_with is not None:
            self._rows_to_learn = max(1, 2 * failed_with)
        elif self.outdated:
            self._rows_to_learn = 0
        else:
            self._rows_to_learn = max(1, math.ceil(self.share * self.state.rows))

    def is_due(self, new: int) -> bool:
        """Whether to learn now from this number of new rows."""
        return new >= self._rows_to_learn

    def start_from(self, rows: Columns) -> None:
        """Fit the policy to rows of a log, before the first decision."""
        self.state = LearnedModel.fitted(self.schema, self.policy, [rows], self.seed)
        self.recent.add(rows.rows(slice(-self.recent.most, None)))
        self.version = 1
        self._plan()

    def restore(self, state: LearnedModel, version: int, rows: Iterable[Columns]) -> None:
        """Go on with a model that was saved, and the rows that were kept."""
        self.state, self.version = state, version
        self.recent = RecentRows(self.recent.most, rows)
        self._plan()

    def learn(self, new: Columns, ahead: int = 1) -> bool:
        """Learn from new rows; false if the policy raised an error, so nothing was learned.

        ``ahead`` is the expected number of decisions before the next call.
        """
        try:
            state = self._learned(new, max(1, ahead))
        except Exception as error:
            self._note_failure(error)
            self._plan(failed_with=len(new.reward))
            return False
        self.state, self.fitted_policy, self.failure = state, self.policy, None
        self.recent.add(new)
        self.version += 1
        self._plan()
        return True

    def _learned(self, new: Columns, ahead: int) -> LearnedModel:
        rows = self.state.rows + len(new.reward)
        changed = self.policy is not self.fitted_policy
        if not changed and not self.state.must_fit(self.schema, rows):
            return self.state.updated(self.schema, self.policy, [new], self.seed, ahead)
        kept = [Columns.joined([*self.recent.parts, new])]
        return LearnedModel.fitted(self.schema, self.policy, kept, self.seed, ahead, rows)

    def _note_failure(self, error: Exception) -> None:
        self._failures[FAILED_UPDATES] += 1
        known, self.failure = self.failure is not None, one_line(error)
        if not known:
            warnings.warn(
                f"the policy failed while it learned, so version {self.version} keeps "
                f"deciding: {self.failure}",
                LearningWarning,
                stacklevel=6,
            )


def why_nothing_matured(counts: Mapping[str, int], settings: Settings, fresh: bool) -> str:
    """Why there are no new rows; ``fresh`` if nothing was ever learned.

    ``counts`` has the number of ``decisions``, how many ``matured``, and what became of these.
    """
    decisions = counts.get("decisions", 0)
    waiting = decisions - counts.get("matured", 0)
    if decisions == 0:
        return "there is no decision yet: call decide(), then reward(decision.id, value)"
    if waiting == 0 and not fresh:
        return "no decision came since the last version"
    if waiting == 0:
        kinds = ("held out", "never activated", "without reward")
        found = [f"{counts[kind]} {kind}" for kind in kinds if counts.get(kind)]
        return f"no decision that has matured can be learned from: {', '.join(found)}"
    subject = "1 decision is" if waiting == 1 else f"{waiting} decisions are"
    if settings.reward_wait > 0:
        return (
            f"{subject} not older than reward_wait = {settings.reward_wait:g} seconds, and a "
            "decision is learned from when that time is over: wait, or declare a shorter "
            "reward_wait (0: learn when the reward comes)"
        )
    limit = settings.no_reward_after
    otherwise = "declare no_reward_after" if limit is None else f"wait {limit:g} seconds"
    return (
        f"{subject} without a reward, and with reward_wait = 0 a decision is learned from when its "
        f"reward comes: call reward(decision.id, value), or {otherwise}"
    )
