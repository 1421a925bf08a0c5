import pytest

from submax.web.server.access.key_registry import KeyRegistry


@pytest.fixture
def key(store):
    """Make a key, and the header that shows it."""

    def key(*scopes, **limits):
        _, text = KeyRegistry(store).add(scopes, **limits)
        return {"authorization": f"Bearer {text}"}

    return key
