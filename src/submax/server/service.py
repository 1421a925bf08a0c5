"""The bandits of one store."""

import logging
import time
from collections.abc import Mapping
from threading import Lock, Thread
from typing import Any

from submax.core.errors import InputError, NotFoundError
from submax.core.running.names_file import names_file
from submax.live.background import Background
from submax.live.bandit import Bandit
from submax.live.declaring.declare import declare
from submax.live.declaring.names import check_bandit
from submax.live.log.bandits import bandit_names, settings_stream
from submax.live.store.store import Store
from submax.server.keys import Keys

LOG = logging.getLogger("submax")
FOLLOW_SECONDS = 1.0
"""How soon keys that another process made or revoked are known."""
STOP_SECONDS = 3.0
"""How long a fit under way is waited for; without it the next process fits again."""


class Service:
    """Opens every bandit of a store, and new ones on demand."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.keys = Keys(store)
        self.ready = False
        self._bandits: dict[str, Bandit] = {}
        self._lock = Lock()
        self._stopping = self._closed = False
        self._beside: Background | None = None

    def start(self) -> None:
        """Open all bandits; those that cannot be are named in the log, the others serve."""
        self._beside = Background("submax-keys", self.keys.follow, FOLLOW_SECONDS)
        for name in self.names():
            if self._stopping:
                return
            try:
                self._open(name)
            except Exception as error:
                LOG.error("the bandit %s cannot be opened: %s", name, error)
        self.ready = True

    def stop(self) -> None:
        """Open no more bandits."""
        self._stopping = True

    def names(self) -> list[str]:
        """Those of all bandits."""
        return bandit_names(self.store)

    def opened(self) -> list[Bandit]:
        """Those that serve."""
        return list(self._bandits.values())

    def __contains__(self, name: str) -> bool:
        return name in self._bandits

    def __getitem__(self, name: str) -> Bandit:
        return self._bandits[name]

    def create(self, name: str, declaration: Mapping[str, Any]) -> Bandit:
        """Declare a bandit; one that is there already is refused."""
        check_bandit(name)
        refuse_files(declaration.get("policy"))
        declare(self.store, name, declaration, new=True)
        return self._open(name)

    def find(self, name: str) -> Bandit:
        """A bandit that another process may have made."""
        if name not in self._bandits:
            check_bandit(name)
            if self.store.find(settings_stream(name), "declared") is None:
                raise NotFoundError(f"there is no bandit {name!r}")
            self._open(name)
        return self._bandits[name]

    def close(self) -> None:
        """Stop everything, and close the store; a second call does nothing."""
        self.ready, self._stopping = False, True
        if self._closed:
            return
        self._closed = True
        if self._beside is not None:
            self._beside.stop()
        stopping = [Thread(target=bandit.stop, daemon=True) for bandit in self.opened()]
        for thread in stopping:
            thread.start()
        end = time.monotonic() + STOP_SECONDS
        for thread in stopping:
            thread.join(max(0.0, end - time.monotonic()))
        if any(thread.is_alive() for thread in stopping):
            LOG.warning("a fit is under way and not waited for: nothing is lost by this")
        self.store.close()

    def _open(self, name: str) -> Bandit:
        with self._lock:
            if name not in self._bandits:
                self._bandits[name] = Bandit.of_store(self.store, name)
            return self._bandits[name]


def refuse_files(specification: object) -> None:
    """A policy from a file is code: it is declared on the machine itself, not over HTTP."""
    if names_file(specification):
        raise InputError("a policy from a file is declared on the server's machine, not over HTTP")
