"""What a shadow may cost before it is switched off."""

from typing import NamedTuple


class ShadowLimits(NamedTuple):
    """After so many ``failures`` in a row, a shadow is switched off.

    A failure is an error, a decision that takes more than ``decision_seconds`` of computing time in
    the mean of a batch, and a fit that takes more than ``fit_seconds``. If a call does not return
    within ``call_seconds``, the shadow is switched off at once.
    """

    failures: int = 5
    decision_seconds: float = 0.05
    fit_seconds: float = 300.0
    call_seconds: float = 600.0
