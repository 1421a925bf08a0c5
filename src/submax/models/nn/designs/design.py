"""Base class of network designs."""

from abc import ABC, abstractmethod
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import numpy as np
from numpy.typing import NDArray

Model = TypeVar("Model")


class Example(NamedTuple):
    """One row or a batch: ``context [..., D]``, ``action [..., S]``, encoded ``reward [..., E]``.

    Choices are whole numbers as floats; real-valued parts of an action lie between 0 and 1.
    """

    context: jax.Array
    action: jax.Array
    reward: jax.Array

    @classmethod
    def of(cls, rows: jax.Array, design: "Design[Any]") -> "tuple[Example, jax.Array]":
        """Split rows of minibatches, ``[..., D + S + E + 1]``, into examples and weights."""
        width = design.context_width
        end = width + len(design.sizes) + design.reals
        return cls(rows[..., :width], rows[..., width:end], rows[..., end:-1]), rows[..., -1]


class Design(ABC, Generic[Model]):
    """The architecture of a network, and its loss.

    A design is a frozen dataclass, so that equal designs are compiled only once. A model is an
    Equinox module whose leaves are all trainable parameters.
    """

    sizes: tuple[int, ...]
    reals: int
    context_width: int
    reward_width: int

    @property
    def columns(self) -> int:
        """Number of columns of a row, including its weight."""
        return self.context_width + len(self.sizes) + self.reals + self.reward_width + 1

    @abstractmethod
    def drawn(self, rng: np.random.Generator) -> Model:
        """Return a model with random initial parameters.

        They are drawn by numpy: to compile a program that draws them takes as long as to compile
        one that trains.
        """

    @abstractmethod
    def losses(self, model: Model, batch: Example, key: jax.Array) -> jax.Array:
        """Return the training loss of each example of a batch: ``[B]``."""

    @abstractmethod
    def held_out_losses(
        self, model: Model, batch: Example, share: jax.Array, key: jax.Array
    ) -> jax.Array:
        """Return T losses of each held-out example: ``[B, T]``.

        Training goes on as long as the lowest of the T means decreases. ``share [E]`` is the mean
        of the encoded rewards: how often each reward occurs. The likelihood of the actions alone
        would favour a network that imitates the logging policy, and the likelihood of the rewards
        alone one that does not model it at all.
        """

    @property
    def least_steps(self) -> int:
        """Smallest number of steps from new parameters, whatever the held-out loss."""
        return 0

    def informed(self, model: Model, share: NDArray[np.float32]) -> Model:
        """Return a new model whose initial outputs reflect how often each reward occurs."""
        return model
