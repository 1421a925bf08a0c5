"""Clients for bandits over HTTP; they need nothing but the standard library and msgspec.

>>> from submax.client import Client
>>> client = Client("http://127.0.0.1:8000", "homepage")
"""

from submax.core.errors import (
    ConflictError,
    ForbiddenError,
    InputError,
    NotFoundError,
    StoreError,
    SubmaxError,
)
from submax.live.serving.decision import Decision, Receipt
from submax.server.client.async_client import AsyncClient
from submax.server.client.client import Client
from submax.server.client.messages.deadline_error import DeadlineError

__all__ = [
    "AsyncClient",
    "Client",
    "ConflictError",
    "DeadlineError",
    "Decision",
    "ForbiddenError",
    "InputError",
    "NotFoundError",
    "Receipt",
    "StoreError",
    "SubmaxError",
]
