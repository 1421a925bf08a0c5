"""Clients for bandits over HTTP; they need nothing but the standard library and msgspec.

>>> from submax.client import Client
>>> client = Client("http://127.0.0.1:8000", "homepage")
"""

from typing import TYPE_CHECKING

from submax.core.optional import lazy_names

if TYPE_CHECKING:
    from submax.bandit.decision import Decision as Decision
    from submax.bandit.decision import Receipt as Receipt
    from submax.core.errors import ConflictError as ConflictError
    from submax.core.errors import ForbiddenError as ForbiddenError
    from submax.core.errors import InputError as InputError
    from submax.core.errors import NotFoundError as NotFoundError
    from submax.core.errors import StoreError as StoreError
    from submax.core.errors import SubmaxError as SubmaxError
    from submax.web.server.client.async_client import AsyncClient as AsyncClient
    from submax.web.server.client.client import Client as Client
    from submax.web.server.client.messages.deadline_error import DeadlineError as DeadlineError

_HOME = {
    "AsyncClient": "submax.web.server.client.async_client",
    "Client": "submax.web.server.client.client",
    "ConflictError": "submax.core.errors",
    "DeadlineError": "submax.web.server.client.messages.deadline_error",
    "Decision": "submax.bandit.decision",
    "ForbiddenError": "submax.core.errors",
    "InputError": "submax.core.errors",
    "NotFoundError": "submax.core.errors",
    "Receipt": "submax.bandit.decision",
    "StoreError": "submax.core.errors",
    "SubmaxError": "submax.core.errors",
}
"""The module of each name; a program with one kind of client need not import the other."""

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

__getattr__, __dir__ = lazy_names(__name__, _HOME)
