"""The bandits of one store."""

import logging
from collections.abc import Mapping
from threading import Lock
from typing import Any

from submax.core.errors import Conflict, InvalidValue, StoreUnavailable, Unknown
from submax.live.bandit import Bandit
from submax.live.bandits import bandit_names
from submax.live.names import check_bandit
from submax.live.open import declare
from submax.live.refitter import settings_stream
from submax.live.store import Store
from submax.server.keys import Keys

LOG = logging.getLogger("submax")


class Service:
    """Opens every bandit of a store, and new ones on demand."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.keys = Keys(store)
        self.ready = False
        self._bandits: dict[str, Bandit] = {}
        self._lock = Lock()

    def start(self) -> None:
        """Open all bandits; those that cannot be are named in the log, the others serve."""
        for name in self.names():
            try:
                self._open(name)
            except (InvalidValue, StoreUnavailable) as error:
                LOG.error("the bandit %s cannot be opened: %s", name, error)
        self.ready = True

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
        if self.store.find(settings_stream(name), "declared") is not None:
            raise Conflict(f"there is a bandit {name!r} already")
        refuse_files(declaration.get("policy"))
        declare(self.store, name, declaration)
        return self._open(name)

    def find(self, name: str) -> Bandit:
        """A bandit that another process may have made."""
        if name not in self._bandits:
            check_bandit(name)
            if self.store.find(settings_stream(name), "declared") is None:
                raise Unknown(f"there is no bandit {name!r}")
            self._open(name)
        return self._bandits[name]

    def close(self) -> None:
        """Stop everything, and close the store."""
        self.ready = False
        for bandit in self.opened():
            bandit.stop()
        self.store.close()

    def _open(self, name: str) -> Bandit:
        with self._lock:
            if name not in self._bandits:
                self._bandits[name] = Bandit(self.store, name)
            return self._bandits[name]


def refuse_files(specification: object) -> None:
    """A policy from a file is code: it is declared on the machine itself, not over HTTP."""
    if isinstance(specification, str) and ":" in specification:
        raise InvalidValue(
            "a policy from a file is declared on the server's machine, not over HTTP"
        )
    if isinstance(specification, Mapping):
        for value in specification.values():
            refuse_files(value)
