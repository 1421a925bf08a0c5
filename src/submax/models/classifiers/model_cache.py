"""A cache of fitted models that can be restored from the rest of a state."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from submax.core.running.stored import stored

Models = tuple[Any, ...]
"""A fitted model for each replica, None if it has none: of a classifier or of regressors."""


@stored("model-cache")
@dataclass(eq=False)
class ModelCache:
    """The fitted models of all replicas, or nothing yet.

    It is a dataclass without fields, so that files do not contain models: those of other libraries
    could be stored only as pickles, which run code when they are read. After a state was read from
    a file, its models are fitted again from its rows and seeds when they are first needed.
    """

    def __post_init__(self) -> None:
        self._models: Models | None = None

    @classmethod
    def holding(cls, models: Models) -> "ModelCache":
        """Return a cache that holds fitted models."""
        cache = cls()
        cache._models = models
        return cache

    def get(self, fit: Callable[[], Models]) -> Models:
        """Return the models; call ``fit`` for them if the cache is empty."""
        if self._models is None:
            self._models = fit()
        return self._models
