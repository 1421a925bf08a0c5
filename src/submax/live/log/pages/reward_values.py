"""The values of many rewards."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats
from submax.live.log.records import RewardGiven, decoded_bodies

HEADER = np.frombuffer(b"\x93\xcb", np.uint8)
"""The first bytes of the body of a reward: an array of three, and a float of 64 bits."""
VALUE = slice(2, 10)
FEWEST = 32
"""Fewer rewards are faster decoded by msgspec."""


Parts = dict[int, dict[str, float]]
"""The parts of rewards, by the numbers of those that have parts."""


def reward_values(bodies: Sequence[bytes], positions: NDArray[np.int64]) -> tuple[Floats, Parts]:
    """Return the values of rewards from their bodies, and the parts of those that have some.

    ``positions`` name the events in errors.
    """
    if not bodies:
        return np.zeros(0), {}
    size = len(bodies[0])
    if len(bodies) >= FEWEST and size > VALUE.stop:
        data = b"".join(bodies)
        same = {*map(len, bodies)} == {size}
        rows = np.frombuffer(data, np.uint8).reshape(-1, size) if same else None
        # The same last bytes are the same sender, and the same parts.
        if (
            rows is not None
            and (rows[:, :2] == HEADER).all()
            and (rows[:, VALUE.stop :] == rows[0, VALUE.stop :]).all()
        ):
            # If the first one can be decoded, all can.
            (first,) = decoded_bodies(bodies[:1], positions[:1].tolist(), RewardGiven)
            if first.parts is None:
                values = np.ascontiguousarray(rows[:, VALUE]).view(">f8")[:, 0]
                return values.astype(np.float64), {}
    given = decoded_bodies(bodies, positions.tolist(), RewardGiven)
    parts = {place: one.parts for place, one in enumerate(given) if one.parts is not None}
    return np.array([one.value for one in given], np.float64), parts
