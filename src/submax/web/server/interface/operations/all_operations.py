"""All operations of the interface."""

from submax.web.server.interface.operation import Operation
from submax.web.server.interface.operations.bandits import bandit_operations
from submax.web.server.interface.operations.operating import operating_operations
from submax.web.server.interface.operations.requests import request_operations
from submax.web.server.interface.operations.server import server_operations


def operations() -> list[Operation]:
    """All operations, but those about the description and the metrics of the server."""
    return [
        *request_operations(),
        *bandit_operations(),
        *operating_operations(),
        *server_operations(),
    ]
