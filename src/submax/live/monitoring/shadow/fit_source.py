"""Contract of what a shadow learns from."""

from typing import Any, Protocol

from submax.core.contracts.policy import Policy
from submax.live.fitting.version_fitter import FitInput
from submax.live.log.records import Fitted


class FitSource(Protocol):
    """Gives the rows of the log that have matured, to fit a second policy to."""

    def input_for(self, policy: Policy[Any], versions: dict[int, Fitted]) -> FitInput:
        """The input of a fit by another policy with these ``versions``, as it is now."""

    def try_lead(self) -> bool:
        """Whether this process fits versions, or does so from now on."""
