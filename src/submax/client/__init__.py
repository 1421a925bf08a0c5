"""Clients for bandits over HTTP; they need httpx and msgspec, and neither numpy nor the server.

>>> from submax.client import Client
>>> client = Client("http://127.0.0.1:8000", "homepage")
"""

from submax.bandit.decision import Decision as Decision
from submax.bandit.decision import Receipt as Receipt
from submax.client.client import AsyncClient as AsyncClient
from submax.client.client import Client as Client
from submax.client.messages import DeadlineError as DeadlineError
from submax.core.errors import ConflictError as ConflictError
from submax.core.errors import Error as Error
from submax.core.errors import ForbiddenError as ForbiddenError
from submax.core.errors import InputError as InputError
from submax.core.errors import NotFoundError as NotFoundError
from submax.core.errors import StoreError as StoreError

__all__ = [
    "AsyncClient",
    "Client",
    "ConflictError",
    "DeadlineError",
    "Decision",
    "Error",
    "ForbiddenError",
    "InputError",
    "NotFoundError",
    "Receipt",
    "StoreError",
]
