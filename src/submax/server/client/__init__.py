"""Clients for bandits over HTTP; they need nothing but the standard library and msgspec."""

from submax.server.client.async_client import AsyncClient as AsyncClient
from submax.server.client.client import Client as Client
