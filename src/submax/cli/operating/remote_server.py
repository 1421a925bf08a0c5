"""A server as commands use it: its bandits, its keys and its audit."""

import os
from typing import Any

from submax.core.processes import variable_text
from submax.web.server.client.connecting.caller import Caller
from submax.web.server.client.messages.address import Address
from submax.web.server.client.messages.bodies import encoded
from submax.web.server.client.messages.call import Call
from submax.web.server.client.messages.options import ClientOptions
from submax.web.server.interface.answers import (
    Audit,
    AuditedChange,
    Bandits,
    KeyDetails,
    KeyMade,
    Keys,
)
from submax.web.server.running.serve_options import KEY

ATTEMPTS = 3
"""How often a request is sent if there is no answer: a person who waits can repeat the command."""
TIMEOUT = 10.0
"""Seconds that a request may take."""


class RemoteServer:
    """The server at an address; the environment has the key that is sent to it."""

    def __init__(self, address: str) -> None:
        _, self.key = variable_text(KEY, os.environ)
        self._address = Address.of(address, None, self.key)

    def bandit_names(self) -> list[str]:
        """The names of the bandits that the key may see."""
        found: Bandits = self._send("GET", "/bandits", Bandits)
        return found.bandits

    def keys(self) -> list[KeyDetails]:
        """All keys, without their secrets."""
        found: Keys = self._send("GET", "/keys", Keys)
        return found.keys

    def add_key(self, **given: Any) -> tuple[str, str]:
        """Make a key, and return its id and its text; ``given`` are the fields of the request."""
        # Repeated after an answer that was lost, the request would make a second key.
        found: KeyMade = self._send("POST", "/keys", KeyMade, encoded(given), attempts=1)
        return found.id, found.key

    def revoke_key(self, number: str) -> None:
        """Revoke the key with an id."""
        self._send("DELETE", f"/keys/{number}", Keys)

    def changes(self, last: int) -> list[AuditedChange]:
        """The last changes, newest first; at most 1000."""
        found: Audit = self._send("GET", "/audit", Audit)
        return found.changes[:last]

    def _send(
        self, method: str, path: str, kind: Any, body: bytes | None = None, attempts: int = ATTEMPTS
    ) -> Any:
        options = ClientOptions(TIMEOUT, attempts, None, False, 0.0, 1)
        caller = Caller(self._address, options)
        try:
            return caller.call(Call(method, path, body, kind))
        finally:
            caller.close()
