"""The values of many rewards."""

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats
from submax.live.log.records import RewardGiven, decoded_bodies
from submax.live.store.columns.byte_column import ByteColumn

HEADER = np.frombuffer(b"\x93\xcb", np.uint8)
"""The first bytes of the body of a reward: an array of three, and a float of 64 bits."""
VALUE = slice(2, 10)
FEWEST = 32
"""Fewer rewards are faster decoded by msgspec."""


Parts = dict[int, dict[str, float]]
"""The parts of rewards, by the numbers of those that have parts."""


def reward_values(bodies: ByteColumn, positions: NDArray[np.int64]) -> tuple[Floats, Parts]:
    """Return the values of rewards from their bodies, and the parts of those that have some.

    ``positions`` name the events in errors.
    """
    if not len(bodies):
        return np.zeros(0), {}
    if len(bodies) >= FEWEST and bodies.size[0] > VALUE.stop and _is_constant(bodies.size):
        rows = bodies.rows()
        # The same last bytes are the same sender, and the same parts.
        if (rows[:, :2] == HEADER).all() and _is_constant(rows[:, VALUE.stop :]):
            # If the first one can be decoded, all can.
            (first,) = decoded_bodies([bodies[0]], positions[:1].tolist(), RewardGiven)
            if first.parts is None:
                values = np.ascontiguousarray(rows[:, VALUE]).view(">f8")[:, 0]
                return values.astype(np.float64), {}
    given = decoded_bodies([*bodies], positions.tolist(), RewardGiven)
    parts = {place: one.parts for place, one in enumerate(given) if one.parts is not None}
    return np.array([one.value for one in given], np.float64), parts


def _is_constant(values: NDArray[np.integer]) -> bool:
    """Whether all rows are the same."""
    return bool((values == values[0]).all())
