"""What a policy decided."""

from typing import NamedTuple

from submax.core.arrays import Actions, Floats


class Decision(NamedTuple):
    """Actions ``[R, n, S]`` and, where it is free, the log-probability ``[R, n]`` of each."""

    action: Actions
    log_prob: Floats | None
