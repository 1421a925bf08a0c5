"""Clients for bandits over HTTP; they need httpx and msgspec, and neither numpy nor the server.

>>> from submax.client import Client
>>> client = Client("http://127.0.0.1:8000", "homepage")
"""

from submax.bandit.decision import Decision, Receipt
from submax.client.client import AsyncClient, Client, DeadlineError
from submax.core.errors import (
    ConflictError,
    Error,
    ForbiddenError,
    InputError,
    NotFoundError,
    StoreError,
)

__all__ = [
    "AsyncClient", "Client", "ConflictError", "DeadlineError", "Decision", "Error",
    "ForbiddenError", "InputError", "NotFoundError", "Receipt", "StoreError",
]  # fmt: skip
