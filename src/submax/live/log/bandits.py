"""Where the parts of a bandit are in a store."""

from submax.live.store.store import Store

SETTINGS = "/settings"


def log_stream(name: str) -> str:
    """The stream of decisions and rewards of a bandit."""
    return f"{name}/log"


def settings_stream(name: str) -> str:
    """The stream of its settings and versions."""
    return f"{name}{SETTINGS}"


def model_name(name: str, model: str) -> str:
    """Where a model is kept, by its hash: processes that fit at once do not meet."""
    return f"{name}/models/{model}"


def bandit_names(store: Store) -> list[str]:
    """The names of all bandits that were declared."""
    return [name.removesuffix(SETTINGS) for name in store.streams() if name.endswith(SETTINGS)]
