"""What a policy decided."""

from typing import NamedTuple

from submax.core.arrays import Floats, Integers


class Decision(NamedTuple):
    """Actions ``[R, n, S]`` and, where it is free, the log-probability ``[R, n]`` of each."""

    action: Integers
    log_prob: Floats | None
