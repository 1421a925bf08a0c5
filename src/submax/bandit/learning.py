"""Rows become models in memory: when to learn, the rows that are kept, failures of a policy."""

import math
import warnings
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from submax.bandit.settings import Settings
from submax.core.errors import one_line
from submax.core.policy import Policy
from submax.schema.model import Model, most_rows
from submax.schema.rows import Columns
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
MAX_PARTS = 100
"""Parts of the rows that are kept; with more, they are joined and the oldest rows are forgotten."""
FAILED_UPDATES = "updates in which the policy failed"
"""The name under which these are counted among the failures of a bandit."""


class LearningWarning(UserWarning):
    """A policy raised an error while it learned; the last version keeps deciding."""


class RefitResult(msgspec.Struct, frozen=True):
    """What ``Bandit.refit`` did; it is true in a condition if something was ``learned``.

    ``version`` decides now, and learned from so many new ``rows``. ``reason`` is one sentence: what
    was learned, or why nothing was.
    """

    learned: bool
    version: int
    rows: int
    reason: str

    def __bool__(self) -> bool:
        return self.learned


class Learner:
    """Keeps a model up to date with the rows that it is given.

    The caller collects new rows, asks ``is_due``, and passes them to ``learn``. It forgets them
    only if ``learn`` returns true: if the policy raises an error, the last model stays, a
    ``LearningWarning`` names the cause once, and learning is due again when there are twice as many
    new rows.

    Learning is due if the new rows are at least a share of those learned from, and at least one;
    with 4 %, each of the first 25 rows is learned one by one. Usually the model is updated with the
    new rows alone. It is fitted from scratch to the rows that are kept when the policy has changed,
    or ``Model.must_fit`` says so. The same rows and the same seed give the same models.

    ``policy`` and ``schema`` are those of the next model; ``fitted_policy`` made the present one.
    ``version`` counts models, ``failure`` is the cause of the last failure, if learning failed.
    """

    def __init__(
        self,
        schema: Schema,
        policy: Policy[Any],
        seed: int,
        failures: Counter[str],
    ) -> None:
        self.fitted_policy = policy
        self.model = Model.fitted(schema, policy, [], seed)
        self.version = 0
        self._recent = [Columns.empty(schema.context.width, len(schema.menu.parts))]
        self.failure: str | None = None
        self._failures = failures
        self.use(schema, policy, seed)

    def use(self, schema: Schema, policy: Policy[Any], seed: int) -> None:
        """Learn by these from now on."""
        self.schema, self.policy, self.seed = schema, policy, seed
        # Columns may have been added to the context.
        widened = schema.context.widened
        self._recent = [one._replace(context=widened(one.context)) for one in self._recent]
        self._plan()

    def _plan(self, failed_with: int | None = None) -> None:
        """Plan when to learn next: at once if the model is outdated; later after a failure."""
        model, schema, traits = self.model, self.schema, self.policy.traits
        self.outdated = self.policy is not self.fitted_policy or not model.suits(schema)
        share = LEARN_SHARE
        if traits.trains_models:
            share = NETWORK_LEARN_SHARE
        elif traits.uses_context and schema.context.width:
            share = CONTEXT_LEARN_SHARE
        self._rows_to_learn = 0 if self.outdated else max(1, math.ceil(share * model.rows))
        if failed_with is not None:
            self._rows_to_learn = max(1, 2 * failed_with)

    def is_due(self, new: int) -> bool:
        """Whether to learn now from this number of new rows."""
        return new >= self._rows_to_learn

    def recent(self) -> Columns:
        """The last rows that were learned from, as one part; older ones are forgotten."""
        most = most_rows(self.schema.context.width)
        self._recent = [Columns.joined(self._recent).rows(slice(-most, None))]
        return self._recent[0]

    def start_from(self, rows: Columns) -> None:
        """Fit the policy to rows of a log, before the first decision."""
        self.restore(Model.fitted(self.schema, self.policy, [rows], self.seed), 1, rows)

    def restore(self, model: Model, version: int, rows: Columns) -> None:
        """Go on with a model that was saved, and the rows that were kept."""
        self.model, self.version, self._recent = model, version, [rows]
        self._plan()

    def learn(self, new: Columns, ahead: int = 1) -> bool:
        """Learn from new rows; false if the policy raised an error, so nothing was learned.

        ``ahead`` is the expected number of decisions before the next call.
        """
        schema, policy, ahead = self.schema, self.policy, max(1, ahead)
        rows = self.model.rows + len(new.reward)
        try:
            if policy is self.fitted_policy and not self.model.must_fit(schema, rows):
                self.model = self.model.updated(schema, policy, [new], self.seed, ahead)
            else:
                kept = [Columns.joined([self.recent(), new])]
                self.model = Model.fitted(schema, policy, kept, self.seed, ahead, rows)
        except Exception as error:
            self._failures[FAILED_UPDATES] += 1
            known, self.failure = self.failure is not None, one_line(error)
            if not known:
                warnings.warn(
                    f"the policy failed to learn, so version {self.version} stays live: "
                    f"{self.failure}",
                    LearningWarning,
                    stacklevel=5,
                )
            self._plan(failed_with=len(new.reward))
            return False
        self.fitted_policy, self.failure = policy, None
        self._recent.append(new)
        if len(self._recent) > MAX_PARTS or len(new.reward) > most_rows(schema.context.width):
            self.recent()
        self.version += 1
        self._plan()
        return True


def why_nothing_matured(counts: Mapping[str, int], settings: Settings, fresh: bool) -> str:
    """Why there are no new rows; ``fresh`` if nothing was ever learned.

    ``counts`` has the number of ``decisions``, how many ``matured``, and what became of these.
    """
    decisions = counts.get("decisions", 0)
    waiting = decisions - counts.get("matured", 0)
    if decisions == 0:
        return "there are no decisions yet: call decide(), then reward(decision.id, value)"
    if waiting == 0 and not fresh:
        return "there are no decisions since the last version"
    if waiting == 0:
        kinds = ("held out", "never activated", "without reward")
        found = [f"{counts[kind]} {kind}" for kind in kinds if counts.get(kind)]
        return f"none of the matured decisions can be learned from: {', '.join(found)}"
    subject = "1 decision is" if waiting == 1 else f"{waiting} decisions are"
    if settings.reward_wait > 0:
        return (
            f"{subject} not older than reward_wait = {settings.reward_wait:g} seconds: wait, or "
            "declare a shorter reward_wait (0: learn as soon as the reward arrives)"
        )
    limit = settings.no_reward_after
    otherwise = "declare no_reward_after" if limit is None else f"wait {limit:g} seconds"
    return (
        f"{subject} without a reward, and with reward_wait = 0 a decision is learned from when its "
        f"reward arrives: call reward(decision.id, value), or {otherwise}"
    )
