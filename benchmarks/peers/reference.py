"""Two published methods that no peer has: kernel UCB and NeuralLinear, for the bake-off."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import pairwise_distances

MOST_ROWS = 1500
"""Kernel UCB keeps this many of the latest rows of an arm: its cost is cubic in them."""
SHAPE, RATE = 6.0, 6.0
"""The inverse Gamma prior of the noise variance, as in the paper on NeuralLinear."""
OPTIMIZER = optax.adam(1e-3)


class KernelUCB:
    """An arm's index is kᵀ (K + λI)⁻¹ y + α √(1 − kᵀ (K + λI)⁻¹ k).

    K has the kernel exp(−‖c − c′‖² / 2ℓ²) of the arm's rows, k that of the context and these rows,
    y their rewards. ℓ is ``scale`` times the median distance of rows of the first batch, λ is
    ``ridge``, α is ``alpha``.

    Reference: Valko, Korda, Munos, Flaounas and Cristianini (2013), Finite-time analysis of
    kernelised contextual bandits. *Departs from the paper:* every arm has a model of its own, and
    ``MOST_ROWS`` rows.
    """

    def __init__(self, parameters: Mapping[str, Any], actions: int, width: int, seed: int) -> None:
        self._parameters = parameters
        self._rng = np.random.default_rng([seed, 1])
        self._rows = [(np.zeros((0, width)), np.zeros(0))] * actions
        self._models: list[GaussianProcessRegressor] = []

    def decide(self, context: np.ndarray) -> np.ndarray:
        """Take the arms with the highest index; the first batch is random."""
        if not self._models:
            return self._rng.integers(len(self._rows), size=len(context))
        found = [model.predict(context, return_std=True) for model in self._models]
        alpha = self._parameters["alpha"]
        index = np.stack([mean + alpha * deviation for mean, deviation in found], axis=1)
        # Ties are broken at random.
        return (index + 1e-9 * self._rng.random(index.shape)).argmax(axis=1)

    def learn(self, context: np.ndarray, action: np.ndarray, reward: np.ndarray) -> None:
        """Add the rows to those of their arms, and fit these arms again."""
        if not self._models:
            distance = pairwise_distances(context)
            width = self._parameters["scale"] * max(np.median(distance[distance > 0]), 1e-9)
            kernel, ridge = RBF(width, "fixed"), self._parameters["ridge"]
            self._models = [GaussianProcessRegressor(kernel, alpha=ridge) for _ in self._rows]
        for arm in np.unique(action):
            new = context[action == arm], reward[action == arm]
            both = zip(self._rows[arm], new, strict=True)
            rows, rewards = (np.concatenate(parts)[-MOST_ROWS:] for parts in both)
            self._rows[arm] = rows, rewards
            self._models[arm].fit(rows, rewards)


class NeuralLinear:
    """Thompson sampling of Bayesian regressions on the last layer of a network.

    Two layers of ``hidden`` ReLU units with an output for each arm are trained on the squared error
    of the chosen arm's output, by ``steps`` steps of Adam after every batch, from the last
    parameters. Each arm has the normal inverse Gamma posterior of a regression on the last layer,
    with prior precision ``precision``, from which coefficients are drawn for every decision.

    Reference: Riquelme, Tucker and Snoek (2018), Deep Bayesian bandits showdown.
    """

    def __init__(self, parameters: Mapping[str, Any], actions: int, width: int, seed: int) -> None:
        self._steps, self._precision = parameters["steps"], parameters["precision"]
        self._rng, self._actions = np.random.default_rng([seed, 1]), actions
        sizes = (width, parameters["hidden"], parameters["hidden"], actions)
        self._weights: list[Any] = []
        for fan_in, fan_out in pairwise(sizes):
            drawn = self._rng.normal(size=(fan_in, fan_out)) * np.sqrt(2 / max(fan_in, 1))
            self._weights.append((jnp.array(drawn), jnp.zeros(fan_out)))
        self._moments = OPTIMIZER.init(self._weights)
        self._history: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def decide(self, context: np.ndarray) -> np.ndarray:
        """Take the best arm of the drawn coefficients; the first batch is random."""
        if not self._history:
            return self._rng.integers(self._actions, size=len(context))
        features, (contexts, actions, rewards) = self._features(context), self._rows()
        learned = self._features(contexts)
        drawn = np.empty((len(context), self._actions))
        for arm in range(self._actions):
            rows, reward = learned[actions == arm], rewards[actions == arm]
            precision = rows.T @ rows + self._precision * np.eye(features.shape[1])
            root = np.linalg.cholesky(precision)
            mean = np.linalg.solve(precision, rows.T @ reward)
            rate = RATE + 0.5 * max(float(reward @ reward - mean @ precision @ mean), 0.0)
            variance = rate / self._rng.gamma(SHAPE + len(rows) / 2, size=len(context))
            normal = self._rng.normal(size=(features.shape[1], len(context)))
            offsets = np.linalg.solve(root.T, normal).T * np.sqrt(variance)[:, None]
            drawn[:, arm] = (features * (mean + offsets)).sum(axis=1)
        return drawn.argmax(axis=1)

    def learn(self, context: np.ndarray, action: np.ndarray, reward: np.ndarray) -> None:
        """Train the network on samples of all rows."""
        self._history.append((context, action, reward))
        rows = self._rows()
        for _ in range(self._steps):
            some = self._rng.integers(len(rows[2]), size=min(256, len(rows[2])))
            sample = [part[some] for part in rows]
            self._weights, self._moments = step(self._weights, self._moments, *sample)

    def _rows(self) -> list[np.ndarray]:
        return [np.concatenate(parts) for parts in zip(*self._history, strict=True)]

    def _features(self, context: np.ndarray) -> np.ndarray:
        last = np.asarray(layers(self._weights, context), dtype=np.float64)
        return np.concatenate([last, np.ones((len(last), 1))], axis=1)


def layers(weights: list[Any], context: Any) -> Any:
    """The last hidden layer."""
    for matrix, offset in weights[:-1]:
        context = jax.nn.relu(context @ matrix + offset)
    return context


@jax.jit
def step(weights: Any, moments: Any, context: Any, action: Any, reward: Any) -> tuple[Any, Any]:
    """One step on the squared error of the chosen arms."""

    def loss(weights: Any) -> Any:
        output = layers(weights, context) @ weights[-1][0] + weights[-1][1]
        return 0.5 * ((output[jnp.arange(len(action)), action] - reward) ** 2).mean()

    changes, moments = OPTIMIZER.update(jax.grad(loss)(weights), moments)
    return optax.apply_updates(weights, changes), moments
