"""Contract of what can be trained."""

from abc import ABC, abstractmethod
from typing import Any, Generic, NamedTuple, TypeVar

import jax

Model = TypeVar("Model")


class Example(NamedTuple):
    """One row, or a batch: ``context [..., D]``, ``action [..., S]``, ``reward [..., E]``.

    Choices are whole numbers as floats, real-valued parts of an action lie between 0 and 1.
    """

    context: jax.Array
    action: jax.Array
    reward: jax.Array

    @classmethod
    def of(cls, rows: jax.Array, design: "Design[Any]") -> "tuple[Example, jax.Array]":
        """From rows ``[..., D + S + E + 1]`` as minibatches hold them; and their weight."""
        width = design.context_width
        end = width + len(design.sizes) + design.reals
        return cls(rows[..., :width], rows[..., width:end], rows[..., end:-1]), rows[..., -1]


class Design(ABC, Generic[Model]):
    """The shape of a network and its loss: a frozen dataclass, so that equal designs compile once.

    A model is an Equinox module whose leaves are all parameters.
    """

    sizes: tuple[int, ...]
    reals: int
    context_width: int
    reward_width: int

    @property
    def columns(self) -> int:
        """The length of a row, its weight included."""
        return self.context_width + len(self.sizes) + self.reals + self.reward_width + 1

    @abstractmethod
    def drawn(self, key: jax.Array) -> Model:
        """A model with new parameters."""

    @abstractmethod
    def losses(self, model: Model, batch: Example, key: jax.Array) -> jax.Array:
        """What training makes small, for each example of a batch: ``[B]``."""

    @abstractmethod
    def held_out_losses(
        self, model: Model, batch: Example, share: jax.Array, key: jax.Array
    ) -> jax.Array:
        """What must fall for training to go on, for examples that are held out: ``[B, T]``.

        Of T losses the one counts whose mean is lowest. ``share [E]`` is how often each reward
        occurs, as it is embedded. The likelihood of actions alone would favour a network that
        knows what the logging policy does, and that of rewards alone one that does not.
        """

    @property
    def least_steps(self) -> int:
        """Steps that new parameters are trained for, whatever the held-out rows say."""
        return 0

    def informed(self, model: Model, share: jax.Array) -> Model:
        """A new model that knows how often each reward occurs, and nothing else."""
        return model
