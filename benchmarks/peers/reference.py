"""Two published methods that no peer has: kernel UCB and NeuralLinear, with numpy alone."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

MOST_ROWS = 1500
"""Kernel UCB keeps this many of the latest rows of an arm: its cost is cubic in them."""
SHAPE, RATE = 6.0, 6.0
"""The inverse Gamma prior of the noise variance, as in the paper on NeuralLinear."""


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
        self._alpha, self._ridge = parameters["alpha"], parameters["ridge"]
        self._scale = parameters["scale"]
        self._rng = np.random.default_rng([seed, 1])
        self._rows: list[tuple[np.ndarray, np.ndarray]] = []
        self._solved: list[tuple[np.ndarray, np.ndarray]] = []
        self._actions, self._width = actions, 0.0

    def decide(self, context: np.ndarray) -> np.ndarray:
        """Take the arms with the highest index; the first batch is random."""
        if not self._rows:
            return self._rng.integers(self._actions, size=len(context))
        index = np.empty((len(context), self._actions))
        for arm, ((rows, _), (inverse, weights)) in enumerate(
            zip(self._rows, self._solved, strict=True)
        ):
            near = self._kernel(context, rows)
            known = np.einsum("ni,ij,nj->n", near, inverse, near, optimize=True)
            index[:, arm] = near @ weights + self._alpha * np.sqrt(np.maximum(1 - known, 0))
        # Ties are broken at random.
        return (index + 1e-9 * self._rng.random(index.shape)).argmax(axis=1)

    def learn(self, context: np.ndarray, action: np.ndarray, reward: np.ndarray) -> None:
        """Add the rows to those of their arms, and solve again for these arms."""
        if not self._rows:
            distance = np.sqrt(_squared_distances(context, context))
            self._width = self._scale * max(float(np.median(distance[distance > 0])), 1e-9)
            nothing = np.zeros((0, context.shape[1])), np.zeros(0)
            self._rows = [nothing] * self._actions
            self._solved = [(np.zeros((0, 0)), np.zeros(0))] * self._actions
        for arm in np.unique(action):
            mine = action == arm
            old, rewards = self._rows[arm]
            rows = np.concatenate([old, context[mine]])[-MOST_ROWS:]
            rewards = np.concatenate([rewards, reward[mine]])[-MOST_ROWS:]
            inverse = np.linalg.inv(self._kernel(rows, rows) + self._ridge * np.eye(len(rows)))
            self._rows[arm], self._solved[arm] = (rows, rewards), (inverse, inverse @ rewards)

    def _kernel(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return np.exp(-_squared_distances(left, right) / (2 * self._width**2))


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
        self._rng = np.random.default_rng([seed, 1])
        sizes = (width, parameters["hidden"], parameters["hidden"], actions)
        self._weights: list[np.ndarray] = []
        for fan_in, fan_out in pairwise(sizes):
            spread = np.sqrt(2 / max(fan_in, 1))
            self._weights += [
                self._rng.normal(size=(fan_in, fan_out)) * spread,
                np.zeros(fan_out),
            ]
        self._moments = [(np.zeros_like(one), np.zeros_like(one)) for one in self._weights]
        self._taken, self._actions = 0, actions
        self._history: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def decide(self, context: np.ndarray) -> np.ndarray:
        """Take the best arm of the drawn coefficients; the first batch is random."""
        if not self._history:
            return self._rng.integers(self._actions, size=len(context))
        features = _with_ones(self._layers(context)[-1])
        contexts, actions, rewards = self._rows()
        learned = _with_ones(self._layers(contexts)[-1])
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
        contexts, actions, rewards = self._rows()
        for _ in range(self._steps):
            some = self._rng.integers(len(rewards), size=min(256, len(rewards)))
            self._step(contexts[some], actions[some], rewards[some])

    def _rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        contexts, actions, rewards = zip(*self._history, strict=True)
        return np.concatenate(contexts), np.concatenate(actions), np.concatenate(rewards)

    def _layers(self, context: np.ndarray) -> list[np.ndarray]:
        first = np.maximum(context @ self._weights[0] + self._weights[1], 0)
        return [context, first, np.maximum(first @ self._weights[2] + self._weights[3], 0)]

    def _step(self, context: np.ndarray, action: np.ndarray, reward: np.ndarray) -> None:
        """One step of Adam with its usual constants."""
        layers = self._layers(context)
        output = layers[-1] @ self._weights[4] + self._weights[5]
        slope = np.zeros_like(output)
        every = np.arange(len(action))
        slope[every, action] = (output[every, action] - reward) / len(action)
        gradients: list[np.ndarray] = []
        for layer in (2, 1, 0):
            gradients = [layers[layer].T @ slope, slope.sum(axis=0), *gradients]
            slope = (slope @ self._weights[2 * layer].T) * (layers[layer] > 0)
        self._taken += 1
        for number, gradient in enumerate(gradients):
            mean, square = self._moments[number]
            mean = 0.9 * mean + 0.1 * gradient
            square = 0.999 * square + 0.001 * gradient**2
            self._moments[number] = mean, square
            step = mean / (1 - 0.9**self._taken)
            size = np.sqrt(square / (1 - 0.999**self._taken)) + 1e-8
            self._weights[number] = self._weights[number] - 1e-3 * step / size


def _with_ones(features: np.ndarray) -> np.ndarray:
    return np.concatenate([features, np.ones((len(features), 1))], axis=1)


def _squared_distances(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    squares = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1)
    return np.maximum(squares - 2 * left @ right.T, 0)
