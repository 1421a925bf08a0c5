"""The names of a bandit's streams and blobs in a store."""

from submax.live.store.store import Store

SETTINGS = "/settings"
"""The end of the name of every stream of settings."""


def log_stream(name: str) -> str:
    """The stream of decisions and rewards of a bandit."""
    return f"{name}/log"


def settings_stream(name: str) -> str:
    """The stream of settings, choices and versions of a bandit."""
    return f"{name}{SETTINGS}"


def model_name(name: str, model: str) -> str:
    """The blob of a model, named by its hash: processes that fit at once write different blobs."""
    return f"{name}/models/{model}"


def bandit_names(store: Store) -> list[str]:
    """The names of all bandits in a store."""
    return [name.removesuffix(SETTINGS) for name in store.streams() if name.endswith(SETTINGS)]
