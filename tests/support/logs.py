"""Logs made of arrays."""

from typing import Any

from submax.evaluation import Log


def log_of_arrays(action: Any, reward: Any, **more: Any) -> Log:
    """A log with these arrays; ``more`` are propensities and contexts, and options of reading."""
    table = {name: more.pop(name) for name in ("propensity", "context") if name in more}
    return Log.read({"action": action, "reward": reward, **table}, **more)
