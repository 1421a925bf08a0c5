"""Clients for bandits over HTTP; they need httpx and msgspec, and neither numpy nor the server.

>>> from submax.client import Client
>>> client = Client("http://127.0.0.1:8000", "homepage")
"""

from typing import TYPE_CHECKING

from submax.core.optional import lazy_names

if TYPE_CHECKING:
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

_HOME = {
    "AsyncClient": "submax.client.client",
    "Client": "submax.client.client",
    "ConflictError": "submax.core.errors",
    "DeadlineError": "submax.client.messages",
    "Decision": "submax.bandit.decision",
    "ForbiddenError": "submax.core.errors",
    "InputError": "submax.core.errors",
    "NotFoundError": "submax.core.errors",
    "Receipt": "submax.bandit.decision",
    "StoreError": "submax.core.errors",
    "Error": "submax.core.errors",
}
"""The module of each name."""

__all__ = list(_HOME)
__getattr__, __dir__ = lazy_names(__name__, _HOME)
