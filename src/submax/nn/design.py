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

    @classmethod
    def of(cls, rows: jax.Array, context_width: int) -> "tuple[Example, jax.Array]":
        """From rows ``[..., D + S + 2]`` as minibatches hold them; and their weight ``[...]``."""
        context, action = rows[..., :context_width], rows[..., context_width:-2]
        example = cls(context, action.astype(int), rows[..., -2].astype(int))
        return example, rows[..., -1]


class Design(ABC, Generic[Model]):
    """The shape of a network and its loss: a frozen dataclass, so that equal designs compile once.

    A model is an Equinox module whose leaves are all parameters.
    """

    sizes: tuple[int, ...]
    context_width: int

    @abstractmethod
    def drawn(self, key: jax.Array) -> Model:
        """A model with new parameters."""

    @abstractmethod
    def losses(self, model: Model, batch: Example, key: jax.Array) -> jax.Array:
        """What training makes small, for each example of a batch: ``[B]``."""
