"""The bandits of one store."""

import logging
import time
from collections.abc import Mapping
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any

from submax.bandit.names import check_bandit
from submax.core.errors import ConflictError, InputError, NotFoundError, StoreError
from submax.core.registry import references_user_code
from submax.live.bandits.bandit import LiveBandit
from submax.live.declaring.change_settings import change_settings
from submax.live.declaring.declare import declare
from submax.live.declaring.delete import delete_bandit
from submax.live.fitting.training.training_process import TrainingProcess
from submax.live.log.bandits import bandit_names, settings_stream
from submax.live.log.records import DECLARED
from submax.live.operating.audit_log import AuditLog
from submax.live.running.background import Background
from submax.live.running.scheduler import Scheduler
from submax.live.store.store import Store
from submax.web.server.access.key_registry import KeyRegistry
from submax.web.server.access.last_use import LastUse
from submax.web.server.access.sessions import Sessions
from submax.web.server.deciding.durable_writes import DurableWrites
from submax.web.server.deciding.gathered_decisions import GatheredDecisions
from submax.web.server.deciding.timed_draws import TimedDraws
from submax.web.server.declaring.parameter_limits import check_parameters
from submax.web.server.declaring.trial_process import TrialProcess
from submax.web.server.exports.export_runner import ExportRunner
from submax.web.server.write_probe import WriteProbe

LOG = logging.getLogger("submax")
FOLLOW_SECONDS = 1.0
"""After how long a key that another process made or revoked is known here."""
LAST_USE_SECONDS = 60.0
"""How often the times at which keys were used are written to the store."""
OPENING_THREADS = 4
"""Threads that open bandits at the start: a bandit that takes long leaves three for the others."""
SLOW_OPENING_SECONDS = 10.0
"""If fewer bandits than threads are left and none of them was opened for so long, the server is
ready without them, and they are opened in the background."""
STOPPING_THREADS = 8
"""Threads that stop bandits at the end: more than there are fits that can be under way."""
STOP_SECONDS = 1.0
"""How long closing waits for a fit under way, which takes some milliseconds if it is an update; if
it is cut off, the next process fits again. Training in its own process is ended at once."""


class Service:
    """Opens every bandit of a store at the start, and later ones when they are asked for."""

    def __init__(self, store: Store, trial: TrialProcess | None = None) -> None:
        self.store = store
        self._trial = trial or TrialProcess()
        self._owns_trial = trial is None
        self.keys, self.last_use = KeyRegistry(store), LastUse(store)
        self.sessions = Sessions(store, self.keys)
        self.audit, self.writes = AuditLog(store), DurableWrites(store)
        self.probe, self.exports = WriteProbe(store), ExportRunner(store)
        self.ready = False
        self._bandits: dict[str, LiveBandit] = {}
        self._decisions: dict[str, GatheredDecisions] = {}
        self._lock, self._locks = Lock(), dict[str, Lock]()
        self._opening: dict[str, None] = {}
        self._scheduler, self._training = Scheduler(), TrainingProcess()
        self._stopping = self._closed = False
        self._background: list[Background] = []

    def start(self) -> None:
        """Open all bandits; one that cannot be opened is logged, and the others serve."""
        self._background = [
            Background("submax-keys", self.keys.follow, FOLLOW_SECONDS),
            Background("submax-last-use", self.last_use.write, LAST_USE_SECONDS),
        ]
        self._opening = dict.fromkeys(self.names())
        names = SimpleQueue[str]()
        for name in self._opening:
            names.put(name)
        threads = [
            Thread(target=self._open_all, args=[names], name=f"submax-open-{number}", daemon=True)
            for number in range(OPENING_THREADS)
        ]
        for thread in threads:
            thread.start()
        self._wait_until_opened(threads)
        self.ready = not self._stopping

    def _open_all(self, names: "SimpleQueue[str]") -> None:
        """Open bandits until all are open, or being opened by another thread."""
        while not self._stopping:
            try:
                name = names.get_nowait()
            except Empty:
                return
            try:
                self._open(name)
            except Exception as error:
                LOG.error("the bandit %s cannot be opened: %s", name, error)
            del self._opening[name]

    def _wait_until_opened(self, threads: list[Thread]) -> None:
        """Wait until all bandits are open, or only a few that take long are not."""
        since = time.monotonic()
        left = len(self._opening)
        for thread in threads:
            while thread.is_alive() and not self._stopping:
                thread.join(0.01)
                if len(self._opening) < left:
                    since, left = time.monotonic(), len(self._opening)
                if left < OPENING_THREADS and time.monotonic() - since > SLOW_OPENING_SECONDS:
                    LOG.warning("opened later, because it takes long: %s", ", ".join(self._opening))
                    return

    def stop(self) -> None:
        """Open no more bandits."""
        self._stopping = True

    def names(self) -> list[str]:
        """The names of all bandits in the store."""
        return bandit_names(self.store)

    def opened(self) -> list[LiveBandit]:
        """The bandits that are open."""
        return [bandit for bandit in list(self._bandits.values()) if not bandit.deleted]

    def __contains__(self, name: str) -> bool:
        bandit = self._bandits.get(name)
        return bandit is not None and not bandit.deleted

    def __getitem__(self, name: str) -> LiveBandit:
        return self._bandits[name]

    def decisions(self, bandit: LiveBandit) -> GatheredDecisions:
        """Makes the decisions of a bandit, within a deadline."""
        found = self._decisions.get(bandit.name)
        if found is None:
            found = GatheredDecisions(TimedDraws(bandit), self.writes)
            self._decisions[bandit.name] = found
        return found

    def create(self, name: str, declaration: Mapping[str, Any]) -> LiveBandit:
        """Declare and open a new bandit; a name that exists is refused.

        The bandit is tried in another process first: a policy that takes for ever must not run in
        this one.
        """
        check_bandit(name)
        if name in self.names():
            raise ConflictError(f"there is a bandit {name!r} already: give another name")
        refuse_files(declaration.get("policy"))
        check_parameters(declaration)
        self._trial.check(name, declaration)
        declare(self.store, name, declaration, new=True)
        return self._open(name)

    def change(self, bandit: LiveBandit, changes: Mapping[str, Any]) -> None:
        """Change settings of a bandit, all or none.

        Another policy is tried first, as for a new bandit. The caller writes the audit.
        """
        check_parameters(changes)
        if changes.get("policy") is not None:
            self._try_policy(bandit, changes["policy"])
        change_settings(self.store, bandit.name, changes)
        bandit.follow()

    def _try_policy(self, bandit: LiveBandit, policy: Any) -> None:
        """Refuse a policy of a file, and one that cannot decide and learn soon."""
        refuse_files(policy)
        check_parameters({"policy": policy})
        settings = bandit.settings
        kept = {"rewards": settings.rewards, "policy": policy}
        fields = zip(settings.context.names, settings.context.fields, strict=True)
        declaration = {"actions": bandit.menu.declaration, "context": dict(fields), **kept}
        self._trial.check(bandit.name, declaration)

    def find(self, name: str) -> LiveBandit:
        """An open bandit; one that another process has declared is opened now."""
        if name not in self:
            check_bandit(name)
            if name in self._opening:
                raise StoreError(
                    f"the bandit {name!r} is being opened, which takes long: try again later"
                )
            self._drop(name)
            if self.store.find(settings_stream(name), DECLARED) is None:
                raise NotFoundError(f"there is no bandit {name!r}: GET /bandits lists all names")
            self._open(name)
        return self._bandits[name]

    def delete(self, name: str) -> None:
        """Delete a bandit with its log; one that cannot be opened is deleted, too."""
        delete_bandit(self.store, name)
        self._drop(name)

    def _drop(self, name: str) -> None:
        """Stop a bandit that was deleted, here or by another process."""
        with self._lock:
            bandit, _ = self._bandits.pop(name, None), self._decisions.pop(name, None)
        if bandit is not None:
            # In a thread: a fit under way may take long.
            Thread(target=bandit.stop, daemon=True).start()

    def close(self) -> None:
        """Stop everything, and close the store; a second call does nothing."""
        self.ready, self._stopping = False, True
        if self._closed:
            return
        self._closed = True
        if self._owns_trial:
            self._trial.close()
        self._training.close()
        self.exports.close()
        for one in self._background:
            one.stop()
        self._write_last_use()
        self._scheduler.close()
        bandits = SimpleQueue[LiveBandit]()
        for bandit in self.opened():
            bandits.put(bandit)
        stopping = [
            Thread(target=_stop_all, args=[bandits], daemon=True) for _ in range(STOPPING_THREADS)
        ]
        for thread in stopping:
            thread.start()
        end = time.monotonic() + STOP_SECONDS
        for thread in stopping:
            thread.join(max(0.0, end - time.monotonic()))
        if any(thread.is_alive() for thread in stopping):
            LOG.warning("a fit did not end in time and is cut off: the next process fits again")
        self.store.close()

    def _write_last_use(self) -> None:
        try:
            self.last_use.write()
        except StoreError as error:
            LOG.warning("the last uses of keys were not written: %s", error)

    def _open(self, name: str) -> LiveBandit:
        # No decision should wait for this import.
        import scipy.special  # noqa: F401 - policies use it when they first decide

        # One lock for each name: a bandit that takes long to open must not stop the others.
        with self._lock:
            lock = self._locks.setdefault(name, Lock())
        with lock:
            if name not in self._bandits:
                opened = LiveBandit.of_store(
                    self.store, name, scheduler=self._scheduler, training=self._training
                )
                self._bandits[name] = opened
            return self._bandits[name]


def _stop_all(bandits: "SimpleQueue[LiveBandit]") -> None:
    while True:
        try:
            bandits.get_nowait().stop()
        except Empty:
            return


def refuse_files(specification: object) -> None:
    """Refuse a policy of somebody's own file or module: no code may be named over HTTP."""
    if references_user_code(specification):
        raise InputError(
            "a policy from a file is code, and over HTTP only built-in policies are "
            "allowed: declare the bandit on the server's machine, by submax.open"
        )
