"""Fitted models that follow from the rest of a state."""

from collections.abc import Callable
from dataclasses import dataclass

from submax.classifiers.fitted_classifier import FittedClassifier
from submax.core.running.stored import stored

Models = tuple[FittedClassifier | None, ...]


@stored("model-cache")
@dataclass(eq=False)
class ModelCache:
    """The models of all replicas, or nothing yet.

    It has no field, so that a file holds no model: models of other libraries could be stored as
    pickles alone, which run code when they are read. A state from a file fits them again from its
    rows and seeds, once, when it is first asked.
    """

    def __post_init__(self) -> None:
        self._models: Models | None = None

    @classmethod
    def holding(cls, models: Models) -> "ModelCache":
        """A cache with models that are fitted already."""
        cache = cls()
        cache._models = models
        return cache

    def get(self, fit: Callable[[], Models]) -> Models:
        """The models; ``fit`` makes them if there are none yet."""
        if self._models is None:
            self._models = fit()
        return self._models
