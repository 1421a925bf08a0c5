"""Where the bandit of a command is: in a store, or on a server."""

import os

from submax.cli.inspection import chosen_bandit
from submax.cli.operating.operated_bandit import OperatedBandit
from submax.cli.operating.served_bandit import ServedBandit
from submax.cli.operating.stored_bandit import StoredBandit
from submax.core.running.variables import variable_text
from submax.live.open import SERVERS
from submax.server.client.client import Client
from submax.server.client.connecting.caller import Caller
from submax.server.client.messages.address import Address
from submax.server.client.messages.call import Call
from submax.server.client.messages.options import ClientOptions
from submax.server.running.serve_options import KEY

ATTEMPTS = 3
"""How often a request is sent if there is no answer: a person who waits can repeat the command."""


def operated(place: str, name: str | None) -> OperatedBandit:
    """The bandit of a store or of a server; without a name, the only one there."""
    if not place.startswith(SERVERS):
        return StoredBandit(place, name)
    _, key = variable_text(KEY, os.environ)
    if name is None:
        name = chosen_bandit(_served_names(place, key), None)
    client = Client(place, name, key=key, attempts=ATTEMPTS, batching=False)
    return ServedBandit(client, name)


def _served_names(address: str, key: str | None) -> list[str]:
    """The names of the bandits of a server that the key may see."""
    options = ClientOptions(10.0, ATTEMPTS, None, False, 0.0, 1)
    caller = Caller(Address.of(address, None, key), options)
    try:
        names: list[str] = caller.call(Call("GET", "", None, dict[str, list[str]]))["bandits"]
        return names
    finally:
        caller.close()
