"""What a log says about one policy, row by row."""

from typing import NamedTuple

from submax.core.arrays import Floats


class Evidence(NamedTuple):
    """For each row i with context x, action a, reward r, logged with propensity p; all ``[n]``.

    ``weight`` is π(a | x) / p and ``probability`` π(a | x). A model of the rewards, fitted on
    other rows, has ``predicted`` q̂(x, a) and ``expected`` Σ_a' π(a' | x) q̂(x, a'). In a log of
    slots ``slot_weight [n, S]`` is π_s(a_s | x) / p_s for the choice in each slot alone.
    """

    reward: Floats
    weight: Floats
    probability: Floats
    predicted: Floats
    expected: Floats
    slot_weight: Floats | None = None
