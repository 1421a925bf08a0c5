"""A variant of a policy that prefers its likely actions more, or less."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.core.errors import InputError
from submax.core.numerics import sharpened
from submax.evaluation.choosing.one_policy import learn_one
from submax.evaluation.logs.log import Log
from submax.evaluation.targets.target_policy import TargetPolicy
from submax.schema.learned import Learned
from submax.schema.schema import Schema


class Sharpened(TargetPolicy):
    """π'(a | x) ∝ π(a | x)^(1/τ), τ the ``temperature``; 0 is greedy, the most likely action.

    Tied actions share the probability of the greedy one.
    """

    def __init__(self, policy: Any, temperature: float, name: str) -> None:
        self._policy, self._temperature, self.name = policy, temperature, name
        if not temperature >= 0 or not np.isfinite(temperature):
            raise InputError(
                f"the temperature of {name} is {temperature!r}; a number of at least 0 is allowed "
                "(0 is greedy, 1 the policy itself): change it",
                parameter="policies",
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
        learned = learn_one(log, self._policy, seed=seed, keep_rows=0)
        return Sharpened(learned, self._temperature, self.name)

    def probabilities(
        self, schema: Schema, context: NDArray[np.float32], numbers: Integers
    ) -> Floats:
        if isinstance(self._policy, TargetPolicy):
            table = self._policy.probabilities(schema, context, numbers)
        else:
            table = self._policy.probabilities(context)
        return sharpened(table, self._temperature)
