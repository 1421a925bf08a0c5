"""Layers of networks, and the ways in which the reward enters them."""

from collections.abc import Iterable, Iterator
from typing import Self, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from submax.models.networks.choices import SlotNetwork

Weights: TypeAlias = NDArray[np.float32]
Parameter: TypeAlias = jax.Array | NDArray[np.float32]
"""A parameter of a layer: of numpy when it is drawn, of JAX in training."""


def contiguous(arrays: Iterable[ArrayLike]) -> Iterator[Weights]:
    """Yield the arrays as numpy reads them fastest."""
    return (np.ascontiguousarray(array, dtype=np.float32) for array in arrays)


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
        limit = (6 / (inputs + outputs)) ** 0.5
        weight = rng.uniform(-limit, limit, (outputs, inputs)).astype(np.float32)
        bias = rng.uniform(-limit, limit, outputs) if inputs == 0 else np.zeros(outputs)
        return cls(weight, bias.astype(np.float32))

    def __call__(self, x: jax.Array) -> jax.Array:
        """Apply the layer: ``[inputs] -> [outputs]``."""
        return jnp.matmul(self.weight, x) + self.bias


class Injection(eqx.Module):
    """h ← ReLU(s(r) ⊙ (W h + b) + t(r)), with the encoding r of the reward, ``[E]``.

    The tables ``scale`` and ``shift``, ``[E, H]``, say how the reward enters; a one-hot r picks a
    row of them. Forms differ in the tables they have; see `INJECTIONS`:

    - "modulation": s(r) = 1 + r · ``scale``, t(r) = r · ``shift`` (Perez et al., 2018).
    - "gate": s(r) = σ(r · ``scale``) (van den Oord et al., 2016; Kumar et al., 2019).
    - "concatenation": t(r) = r · ``shift``, which are the columns for r of ReLU(W [h, r] + b).
    - "plain": neither, whatever the reward is.

    The tables are zero initially: all rewards start with the same function, and training separates
    them as far as the data do. Only with "naive", the alternative in a footnote of section 4.3 of
    the paper, which says that later layers can ignore r, the columns for r are drawn at random.
    """

    dense: Dense
    scale: Parameter | None
    shift: Parameter | None
    form: str = eqx.field(static=True)

    @classmethod
    def drawn(
        cls, form: str, inputs: int, outputs: int, reward_width: int, rng: np.random.Generator
    ) -> Self:
        if form == "naive":
            whole = Dense.drawn(inputs + reward_width, outputs, rng)
            weight, columns = np.split(np.asarray(whole.weight), [inputs], axis=1)
            return cls(Dense(weight, whole.bias), None, np.ascontiguousarray(columns.T), form)
        zeros = np.zeros((reward_width, outputs), dtype=np.float32)
        return cls(
            Dense.drawn(inputs, outputs, rng),
            zeros if form in ("modulation", "gate") else None,
            zeros if form in ("modulation", "concatenation") else None,
            form,
        )

    def __call__(self, x: jax.Array, reward: jax.Array) -> jax.Array:
        """Apply the layer: ``[I]`` and ``[E] -> [H]``."""
        out = self.dense(x)
        if self.scale is not None:
            part = reward @ self.scale
            out = (jax.nn.sigmoid(part) if self.form == "gate" else 1 + part) * out
        return jax.nn.relu(out if self.shift is None else out + reward @ self.shift)

    def moved(self, encoded_edges: NDArray[np.float32]) -> "Injection":
        """Return the layer for other bin edges that is the same function of the reward.

        ``encoded_edges [R, E, E]`` are the new bin edges, encoded by the old ones: the layer is
        linear in the encoding.
        """
        scale, shift = (
            None if table is None else encoded_edges @ np.asarray(table)
            for table in (self.scale, self.shift)
        )
        return Injection(self.dense, scale, shift, self.form)

    def folded(self, levels: Weights) -> tuple[Weights, Weights]:
        """Return W_lᵀ = (s_l ⊙ W)ᵀ ``[R, L, I, H]`` and b_l = s_l ⊙ b + t_l ``[R, L, 1, H]``.

        They are the layers ReLU(W_l h + b_l) at encoded levels ``[R, L, E]``.
        """
        weight, bias = (np.asarray(part)[:, None] for part in (self.dense.weight, self.dense.bias))
        factor = np.ones((*levels.shape[:2], weight.shape[-2]), dtype=np.float32)
        if self.scale is not None:
            part = levels @ np.asarray(self.scale)
            factor = scipy.special.expit(part) if self.form == "gate" else 1 + part
        shift = 0.0 if self.shift is None else levels @ np.asarray(self.shift)
        return (factor[..., None] * weight).swapaxes(-1, -2), (factor * bias + shift)[:, :, None]


INJECTIONS = {
    "modulation": ("modulation", "modulation"),
    "gate": ("gate", "gate"),
    "concatenation": ("concatenation", "concatenation"),
    "input-concatenation": ("naive", "plain"),
    "plain": ("plain", "plain"),
}
"""The forms of the first and the second layer; "plain" has no reward at all."""


class Trunk(eqx.Module):
    """The hidden layers of the encoder, the decoder and the softmax network."""

    first: Injection
    second: Injection

    @classmethod
    def drawn(
        cls, inputs: int, hidden: int, reward_width: int, injection: str, rng: np.random.Generator
    ) -> Self:
        first, second = INJECTIONS[injection]
        return cls(
            Injection.drawn(first, inputs, hidden, reward_width, rng),
            Injection.drawn(second, hidden, hidden, reward_width, rng),
        )

    def __call__(self, x: jax.Array, reward: jax.Array) -> jax.Array:
        """Apply both layers: ``[I]`` and an encoded reward ``[E] -> [H]``."""
        return self.second(self.first(x, reward), reward)


class Network(eqx.Module):
    """A trunk and a linear head: the outputs for inputs and an encoded reward."""

    trunk: Trunk
    head: Dense

    @classmethod
    def drawn(
        cls,
        inputs: int,
        outputs: int,
        hidden: int,
        reward_width: int,
        injection: str,
        rng: np.random.Generator,
    ) -> Self:
        trunk = Trunk.drawn(inputs, hidden, reward_width, injection, rng)
        return cls(trunk, Dense.drawn(hidden, outputs, rng))

    def __call__(self, x: jax.Array, reward: jax.Array) -> jax.Array:
        """Return the outputs ``[O]`` for inputs ``[I]`` and an encoded reward ``[E]``."""
        return self.head(self.trunk(x, reward))

    def exported(self, levels: Weights, latent: ArrayLike) -> SlotNetwork:
        """Return the network, with inputs (z ⊕ c), at encoded ``levels [R, L, E]`` and draws of z.

        Each injection becomes a plain layer per level, and the draws ``latent [R, L or 1, Z, J]``
        become part of the first bias.
        """
        draws = np.asarray(latent, dtype=np.float32)
        weight, bias = self.trunk.first.folded(levels)
        from_latent, from_context = np.split(weight, [draws.shape[-1]], axis=2)
        arrays = (
            from_context,
            bias + draws @ from_latent,
            *self.trunk.second.folded(levels),
            np.asarray(self.head.weight).swapaxes(-1, -2)[:, None],
            np.asarray(self.head.bias)[:, None, None],
        )
        return SlotNetwork(*contiguous(arrays))
