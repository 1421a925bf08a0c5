"""The bandits of one store: opening, finding, declaring, changing, exporting and deleting them."""

import asyncio
import logging
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event, Lock, Thread
from typing import IO, Any, TypeVar

from submax.bandit import declaring, export
from submax.bandit.declaring import Who
from submax.bandit.durable import DurableBandit
from submax.bandit.jobs import JobError, JobRunner
from submax.bandit.names import check_bandit
from submax.bandit.store import Store, open_store
from submax.core.errors import InputError, NotFoundError, StoreError, one_line
from submax.core.registry import references_user_code
from submax.policies.specification import PolicySpecification
from submax.server.deciding import Deciding
from submax.server.keys import Keys, Sessions
from submax.server.limits import RefusedError, check_parameters

LOG = logging.getLogger("submax")
FOLLOW_SECONDS = 1.0  # after which a key that another process made or revoked is known here
WRITE_USES_SECONDS = 60.0  # how often the times at which keys were used are written to the store
OPENING_THREADS = 4
"""Threads that open bandits at the start: a bandit that takes long leaves three for the others."""
SLOW_OPENING_SECONDS = 30.0
"""After which the server is ready without the bandits that are not open yet."""
THREADS = 32  # for what may wait for the store, such as pages
STOP_SECONDS = 1.0
"""How long closing waits for threads; a fit that is cut off is done again by the next process."""
PROBE_SECONDS = 2.0  # for which a probe may take before the store counts as unable to write
FRESH_SECONDS = 1.0  # for which a probe's result is used again, so many questions cost one write

Answer = TypeVar("Answer")


class Service:
    """Opens every bandit of a store at the start, and later ones when they are asked for.

    Code of users that a stored policy names is run only with ``trust``. Methods that are not
    ``async`` may wait for the store; call them by ``in_thread``. If it ``is_local``, it carries out
    a command of this machine and no requests over HTTP: nothing runs in the background, and
    policies may be code and have any parameters.
    """

    def __init__(self, store: Store, *, trust: bool = False, is_local: bool = False) -> None:
        self.store, self.is_local, self._trust = store, is_local, trust
        self.keys = Keys(store)
        self.sessions = Sessions(store, self.keys)
        self.jobs, self.exports, self.probe = JobRunner(), JobRunner(), WriteProbe(store)
        self.ready = False
        self._bandits: dict[str, Deciding] = {}
        self._lock, self._locks = Lock(), dict[str, Lock]()
        self._opening: dict[str, None] = {}
        self._threads = ThreadPoolExecutor(THREADS, "submax-server")
        self._stopping = Event()
        self._following = Thread(target=self._follow_keys, name="submax-keys", daemon=True)
        self._closed = False

    async def in_thread(self, function: Callable[..., Answer], *arguments: Any) -> Answer:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, function, *arguments)

    def start(self) -> None:
        """Open all bandits; one that cannot be opened is logged, and the others serve."""
        self._following.start()
        self._opening = dict.fromkeys(self.names())
        threads = ThreadPoolExecutor(OPENING_THREADS, "submax-open")
        for name in list(self._opening):
            threads.submit(self._open_at_start, name)
        threads.shutdown(wait=False)
        deadline = time.monotonic() + SLOW_OPENING_SECONDS
        while self._opening and not self._stopping.wait(0.01):
            if time.monotonic() > deadline:
                LOG.warning("still opening: %s", ", ".join(self._opening))
                break
        self.ready = not self._stopping.is_set()

    def _open_at_start(self, name: str) -> None:
        try:
            if not self._stopping.is_set():
                self._open(name)
        except Exception as error:
            if not self._stopping.is_set():
                LOG.error("the bandit %s cannot be opened: %s", name, error)
        del self._opening[name]

    def _follow_keys(self) -> None:
        written = time.monotonic()
        while not self._stopping.wait(FOLLOW_SECONDS):
            try:
                self.keys.follow()
                if time.monotonic() - written > WRITE_USES_SECONDS:
                    written = time.monotonic()
                    self.keys.write_uses()
            except Exception as error:
                LOG.warning("the keys could not be read or written: %s", one_line(error))

    def stop(self) -> None:
        self._stopping.set()

    def close(self) -> None:
        self.ready = False
        self._stopping.set()
        if self._closed:
            return
        self._closed = True
        self.jobs.close()
        self.exports.close()
        self.probe.close()
        stopping = Thread(target=self._stop_all, daemon=True)
        stopping.start()
        stopping.join(STOP_SECONDS)
        if stopping.is_alive() and not self._opening:
            LOG.warning("a fit did not end in time and was stopped: the next process fits again")
        # The store must not be closed while a thread reads from it.
        if self._following.is_alive():
            self._following.join(STOP_SECONDS)
        try:
            self.keys.write_uses()
        except StoreError as error:
            LOG.warning("the last use of keys could not be recorded: %s", error)
        self._threads.shutdown(wait=False, cancel_futures=True)
        self.store.close()

    def _stop_all(self) -> None:
        # A bandit that is still being opened would then go on with a closed store.
        while self._opening:
            time.sleep(0.01)
        for one in list(self._bandits.values()):
            one.bandit.stop()

    def names(self) -> list[str]:
        return declaring.bandit_names(self.store)

    def opened(self) -> list[DurableBandit]:
        found = [one.bandit for _, one in sorted(self._bandits.items())]
        return [one for one in found if not one.deleted]

    def get(self, name: str) -> DurableBandit | None:
        found = self._bandits.get(name)
        return None if found is None or found.bandit.deleted else found.bandit

    def find(self, name: str) -> DurableBandit:
        """The bandit of this name; one that another process has declared is opened now."""
        bandit = self.get(name)
        if bandit is not None:
            return bandit
        check_bandit(name)
        if name in self._opening:
            raise StoreError(f"the bandit {name!r} is still being opened: try again later")
        self._drop(name)
        if declaring.find_bandit(self.store, name) is None:
            raise NotFoundError(f"there is no bandit {name!r}: check the name, or create it first")
        return self._open(name)

    def deciding(self, bandit: DurableBandit) -> Deciding:
        return self._bandits.get(bandit.name) or Deciding(bandit)

    def create(self, name: str, declaration: Mapping[str, Any], who: Who) -> DurableBandit:
        self._check(declaration)
        declaring.declare(self.store, name, declaration, new=True, who=who)
        return self._open(name)

    def change(self, bandit: DurableBandit, changes: Mapping[str, Any], who: Who) -> None:
        self._check(changes)
        bandit.set_by(who, changes)

    def delete(self, name: str, who: Who) -> None:
        """Delete a bandit with its decisions; one that cannot be opened is deleted, too."""
        check_bandit(name)
        bandit = self.get(name)
        declaring.delete_bandit(self.store, name, who=who)
        if bandit is not None:
            bandit.follow()
        self._drop(name)

    def export(self, name: str) -> IO[bytes]:
        """The decisions of a bandit as an open Parquet file.

        It is written in another process, one at a time, because it takes a core and some hundred
        megabytes. The file has no name any more, so nothing is left on the disk.
        """
        if self.exports.busy:
            raise RefusedError(429, "another export is being written: try again when it is done")
        try:
            # Its folder, which only this user can read, is deleted with all that is in it.
            with tempfile.TemporaryDirectory(prefix="submax-export-") as folder:
                path = Path(folder) / "decisions.parquet"
                self.exports.run(write_export, str(self.store.address), name, str(path))
                return path.open("rb")
        except OSError as error:
            raise StoreError(
                f"the export cannot be written on the server ({error.strerror or error}): free "
                "some space there and try again"
            ) from error
        except JobError as error:
            raise StoreError(
                "the export was interrupted on the server: try again, or see its log"
            ) from error

    def _drop(self, name: str) -> None:
        with self._lock:
            dropped = self._bandits.pop(name, None)
        if dropped is not None:
            # In a thread: a fit under way may take long.
            Thread(target=dropped.bandit.stop, daemon=True).start()

    def _open(self, name: str) -> DurableBandit:
        # No decision should wait for this import.
        import scipy.special  # noqa: F401 - policies use it when they first decide

        # One lock for each name: a bandit that takes long to open must not stop the others.
        with self._lock:
            lock = self._locks.setdefault(name, Lock())
        with lock:
            bandit = self.get(name)
            if bandit is None:
                bandit = DurableBandit(
                    self.store, name, trust=self._trust, jobs=self.jobs,
                    background=not self.is_local,
                )  # fmt: skip
                self._bandits[name] = Deciding(bandit)
            return bandit

    def _check(self, declaration: Mapping[str, Any]) -> None:
        """Refuse code, and parameters that would occupy the server for long."""
        if self.is_local:
            return
        policy = declaration.get("policy")
        if isinstance(policy, (str, Mapping)):
            # The parameters in a text are checked like those of a table.
            policy = PolicySpecification.of(policy).data
        if references_user_code(policy):
            raise InputError(
                "a policy from a file is code, which is not allowed over HTTP: declare the "
                "bandit on the server's machine with submax.open",
                parameter="policy",
            )
        check_parameters({**declaration, "policy": policy})


class WriteProbe:
    """Finds out whether the store can write, by at most one write at a time."""

    def __init__(self, store: Store) -> None:
        self._store, self._stale_at = store, 0.0
        self._last: Future[None] | None = None
        # A thread of its own: those of pages may all be waiting for the same store.
        self._thread = ThreadPoolExecutor(1, "submax-probe")

    async def check(self) -> None:
        now = time.monotonic()
        if self._last is None or (self._last.done() and now >= self._stale_at):
            self._last = self._thread.submit(self._store.check_writable)
            self._stale_at = now + FRESH_SECONDS
        try:
            await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(self._last)), PROBE_SECONDS)
        except TimeoutError as error:
            raise StoreError(
                f"the store has not written within {PROBE_SECONDS:g} seconds: check its "
                "disk or database"
            ) from error
        except Exception as error:
            raise StoreError(f"the store cannot write: {one_line(error)}") from error

    def close(self) -> None:
        self._thread.shutdown(wait=False)


def write_export(address: str, bandit: str, path: str) -> None:
    """Write the decisions of a bandit to a file; runs in another process."""
    with closing(open_store(address, read_only=True)) as store:
        export.export(store, bandit, path)
