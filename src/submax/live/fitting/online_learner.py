"""Learning in memory, as rewards come."""

import math
from collections.abc import Callable
from threading import RLock

import numpy as np

from submax.live.fitting.learner import Learner
from submax.live.fitting.reasons import why_nothing_matured
from submax.live.fitting.recent_rows import RecentRows
from submax.live.fitting.refit_result import RefitResult
from submax.live.log.bandits import log_stream
from submax.live.log.ledger import Ledger, ledger_of
from submax.live.log.records import TICK
from submax.live.log.snapshot import Snapshot
from submax.live.saved_bandit import SavedBandit, encoded, generator_state
from submax.live.serving.live_state import LiveState
from submax.live.store.event import Entry
from submax.live.store.memory_store import MemoryStore
from submax.schema.columns import Columns
from submax.schema.model import Model

LEARN_SHARE = 0.02
"""A policy learns when the new rows are this share of the rows learned from. An update may cost as
much as 50 decisions; with this share the cost for each row falls as rows become many, and the last
2 % of the rows hardly change a decision."""
NETWORK_LEARN_SHARE = 0.25
"""The same for a policy that trains a model on all rows, such as a network, which takes seconds."""
EVENTS_KEPT = 100_000
"""Decisions and rewards whose ids are remembered: about 50 MB with some numbers of context."""
EVENTS_FORGOTTEN = 10_000
"""Events are forgotten this many at a time."""
ROWS_KEPT = 100_000
"""Rows kept to fit anew when actions are added or taken away, and for the standardization."""
NUMBERS_KEPT = 2**24
"""Numbers in the contexts of these rows: if a context has more than 167, fewer rows are kept."""


class OnlineLearner(Learner):
    """Updates a policy's state with the rows that are new, before the next decision is drawn.

    It learns if the new rows are at least a share of those learned from (``learn_share`` of the
    settings), and at least one; so from each of the first 50 rows one by one. The policy is updated
    by the new rows alone. It is fitted anew, from all rows that are kept, when the active choices
    have changed, and, if the context has numbers, whenever the rows have doubled, until there are
    more rows than are kept: the mean and deviation by which numbers are standardized stay the same
    in between. The same calls and the same seed give the same models.
    """

    def __init__(
        self, store: MemoryStore, name: str, live_state: LiveState, clock: Callable[[], float]
    ) -> None:
        self._store, self._name, self._live_state, self._clock = store, name, live_state, clock
        self._lock = RLock()
        self.ledger = ledger_of(store, name, live_state.settings)
        self.model = live_state.serving.model
        self.version, self.learned, self.fitted_rows = 0, 0, 0
        self.recent = RecentRows(self._most_rows)

    def before_decision(self) -> None:
        with self._lock:
            self.catch_up()
            if self._outdated() or len(self.ledger.rows) >= self._enough():
                self._learn()

    def refit(self) -> RefitResult:
        with self._lock:
            ledger = self.catch_up()
            new = len(ledger.rows)
            if not new and not self._outdated():
                reason = why_nothing_matured(ledger, fresh=self.learned == 0)
                return RefitResult(False, self.version, 0, reason)
            self._learn()
            what = f"learned from {new} new rows" if new else "fitted anew for the active choices"
            return RefitResult(True, self.version, new, what)

    def catch_up(self) -> Ledger:
        with self._lock:
            self.ledger.follow()
            if self.ledger.due(self._clock()):
                # Time passes without events too, and the log must say so.
                self._store.append(log_stream(self._name), [Entry(TICK, b"")]).result()
                self.ledger.follow()
            self._forget()
            return self.ledger

    def known(self) -> Ledger:
        return self.catch_up()

    def counts(self) -> dict[str, int]:
        return dict(self.catch_up().counts)

    def snapshot(self) -> None:
        """Do nothing: a bandit in memory is kept by ``save``."""

    def saved(self, rng: np.random.Generator) -> SavedBandit:
        """All that there is; ``rng`` is the random stream by which decisions are drawn."""
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
        """Go on where another learner was."""
        with self._lock:
            saved.ledger().restore(self.ledger, [])
            self.model = saved.model
            self.recent = RecentRows(self._most_rows, saved.rows)
            self.version, self.learned = saved.version, saved.learned
            self.fitted_rows = saved.fitted_rows
            self._live_state.teach(self.version, self.model)

    def _enough(self) -> int:
        """How many new rows are worth an update."""
        share = self._live_state.settings.learn_share
        if share is None:
            networks = self._live_state.policy.facts.trains_models
            share = NETWORK_LEARN_SHARE if networks else LEARN_SHARE
        return max(1, math.ceil(share * self.learned))

    def _outdated(self) -> bool:
        """Whether the model was made for other choices than the active ones."""
        return self.model.shown != self._live_state.serving.active

    def _learn(self) -> None:
        new = self.ledger.rows.columns()
        learned = self.learned + len(new.reward)
        if self._outdated() or self._doubled(learned):
            self.model = self._fitted_anew(new)
            self.fitted_rows = learned
        else:
            self.model = self._updated(new, learned)
        # Only now: if the policy has failed, nothing is lost.
        self.ledger.rows.clear()
        self.recent.add(new)
        self.learned = learned
        self.version += 1
        self._live_state.teach(self.version, self.model)

    def _doubled(self, learned: int) -> bool:
        """Whether it is time to standardize the numbers of the context anew."""
        if not any(self._live_state.settings.context.numeric):
            return False
        return 2 * self.fitted_rows <= learned <= self._most_rows

    def _fitted_anew(self, new: Columns) -> Model:
        live_state = self._live_state
        seed, schema = (
            live_state.settings.seed,
            live_state.settings.schema(live_state.projection.menu),
        )
        parts = [Columns.joined([*self.recent.parts, new])]
        return Model.fitted(schema, live_state.policy, parts, seed, self._ahead())

    def _updated(self, new: Columns, learned: int) -> Model:
        live_state = self._live_state
        schema = live_state.settings.schema(live_state.projection.menu)
        rng = np.random.default_rng([live_state.settings.seed, learned])
        return self.model.updated(schema, live_state.policy, new, rng, self._ahead())

    def _ahead(self) -> int:
        """How many decisions will be taken before those of now are learned from.

        As many as there are new rows, and as many as are under way if they mature in the end.
        """
        counts, ahead = self.ledger.counts, len(self.ledger.rows)
        if self._live_state.settings.longest_wait < math.inf:
            ahead += counts["decisions"] - counts["matured"]
        return max(1, ahead)

    @property
    def _most_rows(self) -> int:
        return min(ROWS_KEPT, NUMBERS_KEPT // max(1, self._live_state.settings.context.width))

    def _forget(self) -> None:
        """Let the store forget events that are old and settled."""
        oldest = self.ledger.heard - EVENTS_KEPT - EVENTS_FORGOTTEN
        first = self._store.first_position(log_stream(self._name))
        if first <= oldest:
            up_to = self.ledger.heard - EVENTS_KEPT
            if self._live_state.settings.longest_wait < math.inf:
                up_to = min(up_to, self.ledger.settled)
            else:
                self.ledger.closed.forget_up_to(up_to)
            self._store.forget(log_stream(self._name), up_to)
