"""Contract of what can be trained."""

from abc import ABC, abstractmethod
from typing import Generic, NamedTuple, TypeVar

import jax

Model = TypeVar("Model")


class Example(NamedTuple):
    """One row, or a batch of them: ``context [..., D]``, ``action [..., S]``, ``level [...]``."""

    context: jax.Array
    action: jax.Array
    level: jax.Array


class Design(ABC, Generic[Model]):
    """The shape of a network and its loss: a frozen dataclass, so that equal designs compile once.

    A model is an Equinox module whose leaves are all parameters.
    """

    @abstractmethod
    def drawn(self, key: jax.Array) -> Model:
        """A model with new parameters."""

    @abstractmethod
    def losses(self, model: Model, batch: Example, key: jax.Array) -> jax.Array:
        """What training makes small, for each example of a batch: ``[B]``."""
