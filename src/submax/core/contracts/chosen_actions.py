"""The actions that a policy chose."""

from typing import NamedTuple

from submax.core.arrays import Actions, Floats


class ChosenActions(NamedTuple):
    """Actions ``[R, n, S]`` that a policy drew, and the log-probability ``[R, n]`` of each.

    ``log_prob`` is None if the policy would have to compute it at extra cost;
    ``Policy.log_prob`` computes it on request.
    """

    action: Actions
    log_prob: Floats | None
