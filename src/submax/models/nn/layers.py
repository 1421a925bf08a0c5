"""Layers of networks, and the ways in which the reward enters them."""

from abc import abstractmethod
from typing import Any, NamedTuple, Self, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy
from numpy.typing import NDArray

Parameter: TypeAlias = jax.Array | NDArray[np.float32]
"""A parameter of a layer: of numpy when it is drawn, of JAX in training."""


class Dense(eqx.Module):
    """W x + b, initially with Glorot-uniform W and zero b.

    A layer without inputs consists of b only. Then b is initialized like weights: behind a zero
    layer every ReLU would be inactive, and nothing would be learned.

    Reference: Glorot and Bengio (2010).
    """

    weight: Parameter
    bias: Parameter

    @classmethod
    def drawn(cls, inputs: int, outputs: int, rng: np.random.Generator) -> Self:
        """Return a layer with random initial weights ``[outputs, inputs]``."""
        limit = (6 / (inputs + outputs)) ** 0.5
        weight = rng.uniform(-limit, limit, (outputs, inputs)).astype(np.float32)
        bias = rng.uniform(-limit, limit, outputs) if inputs == 0 else np.zeros(outputs)
        return cls(weight, bias.astype(np.float32))

    def __call__(self, x: jax.Array) -> jax.Array:
        """Apply the layer: ``[inputs] -> [outputs]``."""
        return jnp.matmul(self.weight, x) + self.bias


class LevelLayer(NamedTuple):
    """A plain layer for each reward level: ``weight [R, L, H, I]``, ``bias [R, L, H]``."""

    weight: NDArray[np.float32]
    bias: NDArray[np.float32]


class Injection(eqx.Module):
    """h ← f(W h + b, r), with the encoding r of the reward, ``[E]``, one-hot at a bin edge."""

    @abstractmethod
    def __call__(self, x: jax.Array, reward: jax.Array) -> jax.Array:
        """Apply the layer: ``[I]`` and ``[E] -> [H]``."""

    @abstractmethod
    def moved(self, encoded_edges: NDArray[np.float32]) -> "Injection":
        """Return the layer for other bin edges that is the same function of the reward.

        ``encoded_edges [R, E, E]`` are the new bin edges, encoded by the old ones. The layer is
        linear in the encoding, so its values at the new bin edges determine it. Parameters are
        numpy arrays.
        """

    @abstractmethod
    def folded(self, levels: NDArray[np.float32]) -> LevelLayer:
        """Return the layers ReLU(W_l h + b_l) at encoded levels ``[R, L, E]``, for all replicas."""


class Plain(Injection):
    """h ← ReLU(W h + b), whatever the reward is."""

    dense: Dense

    @classmethod
    def drawn(cls, inputs: int, outputs: int, _reward_width: int, rng: np.random.Generator) -> Self:
        return cls(Dense.drawn(inputs, outputs, rng))

    def __call__(self, x: jax.Array, reward: jax.Array) -> jax.Array:
        return jax.nn.relu(self.dense(x))

    def moved(self, encoded_edges: NDArray[np.float32]) -> "Plain":
        return self

    def folded(self, levels: NDArray[np.float32]) -> LevelLayer:
        weight, bias = np.asarray(self.dense.weight), np.asarray(self.dense.bias)
        count = levels.shape[1]
        return LevelLayer(
            np.repeat(weight[:, None], count, axis=1), np.repeat(bias[:, None], count, axis=1)
        )


class Concatenation(Injection):
    """h ← ReLU(W [h, r] + b).

    The columns of W that belong to r are zero initially: all rewards start with the same function,
    as in `Modulation`.
    """

    dense: Dense
    reward_width: int = eqx.field(static=True)

    @classmethod
    def drawn(cls, inputs: int, outputs: int, reward_width: int, rng: np.random.Generator) -> Self:
        layer = Dense.drawn(inputs, outputs, rng)
        zeros = np.zeros((outputs, reward_width), dtype=np.float32)
        weight = np.concatenate([layer.weight, zeros], axis=1)
        return cls(Dense(weight, layer.bias), reward_width)

    def __call__(self, x: jax.Array, reward: jax.Array) -> jax.Array:
        return jax.nn.relu(self.dense(jnp.concatenate([x, reward])))

    def moved(self, encoded_edges: NDArray[np.float32]) -> Self:
        """Replace the columns of W that belong to r by their values at the new bin edges."""
        weight, columns = np.split(np.asarray(self.dense.weight), [-self.reward_width], axis=-1)
        moved = (encoded_edges @ columns.swapaxes(-1, -2)).swapaxes(-1, -2)
        joined: Any = np.concatenate([weight, moved], axis=-1)
        return type(self)(Dense(joined, self.dense.bias), self.reward_width)

    def folded(self, levels: NDArray[np.float32]) -> LevelLayer:
        """W_l are the columns of W for h; the columns of W for r, times r_l, are part of b_l."""
        weight, columns = np.split(np.asarray(self.dense.weight), [-self.reward_width], axis=-1)
        bias = np.asarray(self.dense.bias)[:, None] + levels @ columns.swapaxes(-1, -2)
        return LevelLayer(np.repeat(weight[:, None], levels.shape[1], axis=1), bias)


class NaiveConcatenation(Concatenation):
    """h ← ReLU(W [h, r] + b), in which all columns of W are drawn at random.

    This is the alternative in a footnote of section 4.3 of the paper, which says that later layers
    can ignore r. Different rewards begin with different functions.
    """

    @classmethod
    def drawn(cls, inputs: int, outputs: int, reward_width: int, rng: np.random.Generator) -> Self:
        return cls(Dense.drawn(inputs + reward_width, outputs, rng), reward_width)


class Gate(Injection):
    """h ← ReLU(W h + b) ⊙ σ(U r + d).

    For a one-hot r, U r + d is a row of the table ``opening [E, H]``, which is zero initially: all
    rewards start with the same function, as in `Modulation`.

    Reference: van den Oord et al. (2016); Kumar et al. (2019).
    """

    dense: Dense
    opening: Parameter

    @classmethod
    def drawn(cls, inputs: int, outputs: int, reward_width: int, rng: np.random.Generator) -> Self:
        zeros = np.zeros((reward_width, outputs), dtype=np.float32)
        return cls(Dense.drawn(inputs, outputs, rng), zeros)

    def __call__(self, x: jax.Array, reward: jax.Array) -> jax.Array:
        return jax.nn.relu(self.dense(x)) * jax.nn.sigmoid(reward @ self.opening)

    def moved(self, encoded_edges: NDArray[np.float32]) -> "Gate":
        """Replace each row of the table by U r + d of the new bin edge r."""
        return Gate(self.dense, encoded_edges @ np.asarray(self.opening))

    def folded(self, levels: NDArray[np.float32]) -> LevelLayer:
        """Multiply W and b by the gate g_l, which is positive and so commutes with the ReLU."""
        gate = scipy.special.expit(levels @ np.asarray(self.opening))
        return LevelLayer(
            gate[..., None] * self.dense.weight[:, None], gate * self.dense.bias[:, None]
        )


class Modulation(Injection):
    """h ← ReLU((1 + γ(r)) ⊙ (W h + b) + β(r)).

    γ and β are linear in the encoding of r, with the tables ``scale`` and ``shift``, ``[E, H]``.
    They are zero initially: all rewards start with the same function, and training separates them
    as far as the data do.

    Reference: Perez et al. (2018).
    """

    dense: Dense
    scale: Parameter
    shift: Parameter

    @classmethod
    def drawn(cls, inputs: int, outputs: int, reward_width: int, rng: np.random.Generator) -> Self:
        zeros = np.zeros((reward_width, outputs), dtype=np.float32)
        return cls(Dense.drawn(inputs, outputs, rng), zeros, zeros)

    def __call__(self, x: jax.Array, reward: jax.Array) -> jax.Array:
        return jax.nn.relu((1 + reward @ self.scale) * self.dense(x) + reward @ self.shift)

    def moved(self, encoded_edges: NDArray[np.float32]) -> "Modulation":
        """Replace each row of both tables by γ and β of the new bin edge."""
        scale, shift = (encoded_edges @ np.asarray(part) for part in (self.scale, self.shift))
        return Modulation(self.dense, scale, shift)

    def folded(self, levels: NDArray[np.float32]) -> LevelLayer:
        """Return the layers with W_l = (1 + γ_l) ⊙ W and b_l = (1 + γ_l) ⊙ b + β_l."""
        scale = 1 + levels @ np.asarray(self.scale)
        weight, bias = np.asarray(self.dense.weight), np.asarray(self.dense.bias)
        return LevelLayer(
            scale[..., None] * weight[:, None],
            scale * bias[:, None] + levels @ np.asarray(self.shift),
        )


Layer: TypeAlias = type[Modulation] | type[Gate] | type[Concatenation] | type[Plain]

INJECTIONS: dict[str, tuple[Layer, Layer]] = {
    "modulation": (Modulation, Modulation),
    "gate": (Gate, Gate),
    "concatenation": (Concatenation, Concatenation),
    "input-concatenation": (NaiveConcatenation, Plain),
    "plain": (Plain, Plain),
}
"""The first and the second layer of every form of injection; "plain" has no reward at all."""


class Trunk(eqx.Module):
    """The hidden layers of the encoder, the decoder and the softmax network."""

    first: Injection
    second: Injection

    @classmethod
    def drawn(
        cls, inputs: int, hidden: int, reward_width: int, injection: str, rng: np.random.Generator
    ) -> Self:
        """Return two layers of ``hidden`` units with random initial parameters."""
        first, second = INJECTIONS[injection]
        return cls(
            first.drawn(inputs, hidden, reward_width, rng),
            second.drawn(hidden, hidden, reward_width, rng),
        )

    def __call__(self, x: jax.Array, reward: jax.Array) -> jax.Array:
        """Apply both layers: ``[I]`` and an encoded reward ``[E] -> [H]``."""
        return self.second(self.first(x, reward), reward)
