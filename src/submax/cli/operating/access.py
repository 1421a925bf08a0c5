"""Where the bandit of a command is: in a store, or on a server."""

from submax.cli.inspection import chosen_bandit
from submax.cli.operating.operated_bandit import OperatedBandit
from submax.cli.operating.remote_server import ATTEMPTS, RemoteServer
from submax.cli.operating.served_bandit import ServedBandit
from submax.cli.operating.stored_bandit import StoredBandit
from submax.live.bandits.open import SERVERS
from submax.web.server.client.client import Client


def operated(place: str, name: str | None) -> OperatedBandit:
    """The bandit of a store or of a server; without a name, the only one there."""
    if not place.startswith(SERVERS):
        return StoredBandit(place, name)
    server = RemoteServer(place)
    if name is None:
        name = chosen_bandit(server.bandit_names(), None)
    client = Client(place, name, key=server.key, attempts=ATTEMPTS, batching=False)
    return ServedBandit(client, name)
