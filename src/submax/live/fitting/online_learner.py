"""Learning in memory, before decisions, from the rows that are new."""

import math
import warnings
from collections.abc import Callable
from threading import RLock

import numpy as np

from submax.bandit.learning import LearningWarning, RecentRows, why_nothing_matured
from submax.core.errors import one_line
from submax.live.bandits.saved_bandit import SavedBandit, encoded, generator_state
from submax.live.fitting.learner import Answer, Learner
from submax.live.fitting.refit_result import RefitResult
from submax.live.log.bandits import log_stream
from submax.live.log.ledger import Ledger, ledger_of
from submax.live.log.records import TICK
from submax.live.log.snapshot import Snapshot
from submax.live.monitoring.rollups.rollups import Rollups
from submax.live.serving.live_state import LiveState
from submax.live.store.event import Entry
from submax.live.store.memory_store import MemoryStore
from submax.schema.model import Model
from submax.schema.rows import Columns
from submax.schema.schema import Schema

FAILED_UPDATES = "updates in which the policy failed"
"""The name under which these are counted among the failures of a bandit."""
LEARN_SHARE = 0.02
"""A policy learns when the new rows are this share of the rows learned from. An update may cost as
much as 50 decisions; with this share the cost for each row falls as rows become many, and the last
2 % of the rows hardly change a decision."""
NETWORK_LEARN_SHARE = 0.25
"""The share for a policy that trains a model on all rows, such as a network: it takes seconds."""
EVENTS_KEPT = 100_000
"""Events that the store remembers at least, and so their ids: about 50 MB with a small context."""
EVENTS_FORGOTTEN = 10_000
"""Events are forgotten this many at a time, so that forgetting costs little for each event."""
ROWS_KEPT = 100_000
"""Rows kept to fit the policy again when actions are added or removed, or numbers standardized."""
NUMBERS_KEPT = 2**24
"""Numbers in the contexts of these rows (128 MB): with more than 167 in a context, fewer rows."""


class OnlineLearner(Learner):
    """Updates a policy's state with the rows that are new, before the next decision is drawn.

    It learns if the new rows are at least a share of those learned from (``learn_share`` of the
    settings), and at least one; so from each of the first 50 rows one by one. Usually the policy is
    updated with the new rows alone. It is fitted from scratch to all rows that are kept when the
    active choices have changed, and, if the context has numbers, whenever the number of rows has
    doubled, as long as all rows are kept: in between, the mean and the deviation by which numbers
    are standardized stay the same. The same calls and the same seed give the same models.

    If the policy raises an error while it learns, decisions are made by the last version. A
    ``LearningWarning`` names the cause once, and learning is tried again when there are twice as
    many new rows, and by ``refit``.
    """

    def __init__(
        self, store: MemoryStore, name: str, live_state: LiveState, clock: Callable[[], float]
    ) -> None:
        self._store, self._name, self._live_state, self._clock = store, name, live_state, clock
        self._lock = RLock()
        self.ledger = ledger_of(store, name, live_state.settings)
        self.model = live_state.serving.model
        self.version, self.learned, self.fitted_rows = 0, 0, 0
        # The specification of the policy whose state the model is.
        self._policy = live_state.settings.policy
        self.recent = RecentRows(self._most_rows)
        self._failure: str | None = None
        self._rows_to_retry = 0

    def before_decision(self) -> None:
        with self._lock:
            if not self._outdated() and self._most_new_rows() < self._enough():
                return
            self.catch_up()
            rows = len(self.ledger.rows)
            if rows < self._rows_to_retry:
                return
            if self._outdated() or rows >= self._enough():
                self._try_to_learn()

    def refit(self) -> RefitResult:
        with self._lock:
            ledger = self.catch_up()
            new = len(ledger.rows)
            if not new and not self._outdated():
                reason = why_nothing_matured(ledger.counts, ledger.settings, self.learned == 0)
                return RefitResult(False, self.version, 0, reason)
            if not self._try_to_learn():
                return RefitResult(False, self.version, 0, f"the policy failed: {self._failure}")
            what = f"learned from {new} new rows" if new else "fitted anew for the active choices"
            return RefitResult(True, self.version, new, what)

    def catch_up(self) -> Ledger:
        with self._lock:
            self.ledger.follow()
            if self.ledger.due(self._clock()):
                # Time is read from the log, so that a tick must say that time has passed.
                self._store.append(log_stream(self._name), [Entry(TICK, b"")]).result()
                self.ledger.follow()
            self._forget()
            return self.ledger

    def inspect(self, function: Callable[[Ledger], Answer]) -> Answer:
        with self._lock:
            return function(self.catch_up())

    def ledger_if_read(self) -> Ledger:
        return self.catch_up()

    def counts(self) -> dict[str, int]:
        return dict(self.catch_up().counts)

    def rollups(self) -> Rollups:
        with self._lock:
            return self.catch_up().rollups.copy()

    def snapshot(self) -> None:
        """Do nothing: a bandit in memory is kept by ``save``."""

    def saved(self, rng: np.random.Generator) -> SavedBandit:
        """The whole bandit; ``rng`` is the random stream by which decisions are drawn."""
        with self._lock:
            self.ledger.follow()
            return SavedBandit(
                encoded(self._store.contents()),
                encoded(Snapshot.of(self.ledger)),
                self.model,
                self.recent.parts,
                self.version,
                self.learned,
                self.fitted_rows,
                generator_state(rng),
            )

    def restore(self, saved: SavedBandit) -> None:
        """Continue where the learner of a saved bandit was."""
        with self._lock:
            saved.ledger().restore(self.ledger)
            self.model = saved.model
            self.recent = RecentRows(self._most_rows, saved.rows)
            self.version, self.learned = saved.version, saved.learned
            self.fitted_rows = saved.fitted_rows
            self._live_state.teach(self.version, self.model)

    def start_from(self, rows: Columns) -> None:
        """Fit the policy to rows of a log, before the first decision."""
        with self._lock:
            live_state = self._live_state
            settings, schema = live_state.settings, self._schema()
            self.model = Model.fitted(schema, live_state.policy, [rows], settings.seed)
            self.recent.add(rows.rows(slice(-self._most_rows, None)))
            self.learned = self.fitted_rows = len(rows.reward)
            self.version = 1
            live_state.teach(self.version, self.model)

    def _most_new_rows(self) -> float:
        """How many new rows there can be at most, without reading the log.

        A page of many events costs little more than one of a single event. If decisions mature only
        when their rewards come, each event that was not read gives at most one row.
        """
        if self._live_state.settings.longest_wait < math.inf:
            return math.inf
        last = self._store.last_position(log_stream(self._name))
        return len(self.ledger.rows) + max(0, last - self.ledger.read_position)

    def _enough(self) -> int:
        """The smallest number of new rows that is worth an update."""
        share = self._live_state.settings.learn_share
        if share is None:
            networks = self._live_state.policy.traits.trains_models
            share = NETWORK_LEARN_SHARE if networks else LEARN_SHARE
        return max(1, math.ceil(share * self.learned))

    def _outdated(self) -> bool:
        """Whether the model was made for other choices than the active ones, or another policy."""
        other_policy = self._live_state.settings.policy != self._policy
        return other_policy or self.model.active != self._live_state.serving.active

    def _try_to_learn(self) -> bool:
        """Learn from the new rows; False if the policy raised an error."""
        try:
            self._learn()
        except Exception as error:
            self._live_state.failures[FAILED_UPDATES] += 1
            known, self._failure = self._failure is not None, one_line(error)
            self._rows_to_retry = max(1, 2 * len(self.ledger.rows))
            if not known:
                warnings.warn(
                    f"the policy failed while it learned, so that version {self.version} goes on "
                    f"deciding: {self._failure}",
                    LearningWarning,
                    stacklevel=4,
                )
            return False
        self._failure, self._rows_to_retry = None, 0
        return True

    def _learn(self) -> None:
        new = self.ledger.rows.columns()
        learned = self.learned + len(new.reward)
        if self._outdated() or self._doubled(learned):
            self.model = self._fitted_anew(new)
            self.fitted_rows = learned
        else:
            self.model = self._updated(new, learned)
        self._policy = self._live_state.settings.policy
        # Rows are cleared after the policy has learned: if it fails, they are not lost.
        self.ledger.rows.clear()
        self.recent.add(new)
        self.learned = learned
        self.version += 1
        self._live_state.teach(self.version, self.model)

    def _doubled(self, learned: int) -> bool:
        """Whether the rows have doubled, so that numbers of the context are standardized again."""
        if not any(self._live_state.settings.context.numeric):
            return False
        return 2 * self.fitted_rows <= learned <= self._most_rows

    def _fitted_anew(self, new: Columns) -> Model:
        live_state = self._live_state
        seed, schema = live_state.settings.seed, self._schema()
        parts = [Columns.joined([*self.recent.parts, new])]
        return Model.fitted(schema, live_state.policy, parts, seed, self._ahead())

    def _updated(self, new: Columns, learned: int) -> Model:
        live_state = self._live_state
        schema = self._schema()
        rng = np.random.default_rng([live_state.settings.seed, learned])
        return self.model.updated(schema, live_state.policy, new, rng, self._ahead())

    def _schema(self) -> Schema:
        return self._live_state.settings.schema(self._live_state.projection.menu)

    def _ahead(self) -> int:
        """How many decisions are expected before the next ones are learned from.

        This is the number of new rows, plus that of the pending decisions if all of them mature.
        """
        counts, ahead = self.ledger.counts, len(self.ledger.rows)
        if self._live_state.settings.longest_wait < math.inf:
            ahead += counts["decisions"] - counts["matured"]
        return max(1, ahead)

    @property
    def _most_rows(self) -> int:
        return min(ROWS_KEPT, NUMBERS_KEPT // max(1, self._live_state.settings.context.width))

    def _forget(self) -> None:
        """Let the store forget old events that cannot change what is learned."""
        oldest = self.ledger.read_position - EVENTS_KEPT - EVENTS_FORGOTTEN
        first = self._store.first_position(log_stream(self._name))
        if first <= oldest:
            up_to = self.ledger.read_position - EVENTS_KEPT
            if self._live_state.settings.longest_wait < math.inf:
                up_to = min(up_to, self.ledger.settled)
            else:
                self.ledger.collected.closed.forget_up_to(up_to)
            self._store.delete_events(log_stream(self._name), up_to)
