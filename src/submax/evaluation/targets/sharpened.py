"""A variant of a policy that prefers its likely actions more, or less."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.core.errors import InputError
from submax.evaluation.learning import learn
from submax.evaluation.logs.log import Log
from submax.evaluation.targets.target_policy import TargetPolicy
from submax.schema.learned import Learned
from submax.schema.schema import Schema

SIGN, GREEDY, TEMPERATURE = "@", "greedy", "temperature="
"""``linucb@greedy`` is the greedy variant of linucb, ``linucb@temperature=0.5`` another one."""
TIES = 1e-9
"""Probabilities that differ by less than this are tied for the greedy action."""


class Sharpened(TargetPolicy):
    """π'(a | x) ∝ π(a | x)^(1/τ), τ the ``temperature``; 0 is greedy, the most likely action.

    Tied actions share the probability of the greedy one.
    """

    def __init__(self, policy: Any, temperature: float, name: str) -> None:
        self._policy, self._temperature, self.name = policy, temperature, name
        if not temperature >= 0 or not np.isfinite(temperature):
            raise InputError(
                f"the temperature of {name} is {temperature!r}; a number of at least 0 is allowed "
                "(0 is greedy, 1 the policy itself): change it"
            )

    @property
    def learns(self) -> bool:
        return not isinstance(self._policy, (Learned, TargetPolicy))

    @property
    def base(self) -> Learned | None:
        return self._policy if isinstance(self._policy, Learned) else None

    def learned_from(self, log: Log, seed: int) -> TargetPolicy:
        if not self.learns:
            return self
        learned = learn(log, self._policy, seed=seed, keep_rows=0)
        return Sharpened(learned, self._temperature, self.name)

    def probabilities(
        self, schema: Schema, context: NDArray[np.float32], numbers: Integers
    ) -> Floats:
        if isinstance(self._policy, TargetPolicy):
            table = self._policy.probabilities(schema, context, numbers)
        else:
            table = self._policy.probabilities(context)
        return sharpened(table, self._temperature)


def sharpened(table: Floats, temperature: float) -> Floats:
    """Return probabilities to the power of 1 / temperature, normalized; 0 is greedy.

    >>> sharpened(np.array([[0.2, 0.8]]), 0.5).round(3).tolist()
    [[0.059, 0.941]]
    """
    if temperature == 0:
        best = table >= table.max(axis=1, keepdims=True) - TIES
        greedy: Floats = best / best.sum(axis=1, keepdims=True)
        return greedy
    with np.errstate(divide="ignore"):
        score = np.log(table) / temperature
    power = np.exp(score - score.max(axis=1, keepdims=True))
    result: Floats = power / power.sum(axis=1, keepdims=True)
    return result


def parsed_variant(text: str) -> tuple[str, float] | None:
    """Return the policy and the temperature of a text such as ``linucb@greedy``, or None."""
    policy, sign, variant = text.rpartition(SIGN)
    if not sign:
        return None
    if variant == GREEDY:
        return policy, 0.0
    try:
        return policy, float(variant.removeprefix(TEMPERATURE))
    except ValueError:
        raise InputError(
            f"the variant of {text!r} is {variant!r}; {GREEDY!r} and '{TEMPERATURE}0.5' are "
            f"allowed: write {policy}{SIGN}{GREEDY}"
        ) from None
