"""The names of a bandit's streams and blobs in a store."""

from submax.live.log.records import DECLARED
from submax.live.store.store import Store

SETTINGS = "/settings"
"""The end of the name of every stream of settings."""


def log_stream(name: str) -> str:
    """The stream of decisions and rewards of a bandit."""
    return f"{name}/log"


def settings_stream(name: str) -> str:
    """The stream of settings, choices and versions of a bandit."""
    return f"{name}{SETTINGS}"


def alarm_stream(name: str) -> str:
    """The stream of the alarms of a bandit."""
    return f"{name}/alarms"


def blob_prefix(name: str) -> str:
    """The beginning of the names of all blobs of a bandit."""
    return f"{name}/"


def model_name(name: str, model: str) -> str:
    """The blob of a model, named by its hash: processes that fit at once write different blobs."""
    return f"{name}/models/{model}"


def bandit_names(store: Store) -> list[str]:
    """The names of all bandits in a store.

    Of a bandit that was deleted, the stream of settings holds the event that says so.
    """
    return [
        stream.removesuffix(SETTINGS)
        for stream in store.streams()
        if stream.endswith(SETTINGS) and store.find(stream, DECLARED) is not None
    ]
