"""The bandits in a store."""

from submax.live.store import Store

SETTINGS = "/settings"


def bandit_names(store: Store) -> list[str]:
    """The names of all that were declared."""
    return [name.removesuffix(SETTINGS) for name in store.streams() if name.endswith(SETTINGS)]
