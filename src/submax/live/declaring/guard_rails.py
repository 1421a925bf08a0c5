"""Limits on the probabilities of actions, which hold for every policy."""

import msgspec

from submax.core.checks import below_one, whole_number
from submax.core.errors import InputError
from submax.schema.action import Action
from submax.schema.menu import LISTED, Menu


class GuardRails(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits that hold whatever the policy decides.

    Every eligible action has at least the probability ``minimum``. The action ``control`` has
    exactly the probability ``control_share`` if it is eligible. The first ``burn_in`` decisions are
    drawn uniformly within these two limits; each process on a shared store counts its own
    decisions. A share ``holdout`` of the decisions gets the action ``baseline`` and is not learned
    from, so that the policy can be compared with the baseline. With ``aa_test`` the holdout is
    decided by the policy as well, so that both groups are alike and every difference is an error.
    """

    minimum: float = 0.0
    control: Action | None = None
    control_share: float = 0.0
    burn_in: int = 0
    holdout: float = 0.0
    baseline: Action | None = None
    aa_test: bool = False

    def check(self, menu: Menu) -> None:
        """Refuse limits that contradict each other or the actions, with the code `guard-rail`."""
        try:
            self._check(menu)
        except InputError as error:
            raise InputError(str(error), code="guard-rail", parameter=error.parameter) from error

    def _check(self, menu: Menu) -> None:
        below_one("minimum", self.minimum)
        below_one("control_share", self.control_share)
        below_one("holdout", self.holdout)
        whole_number("burn_in", self.burn_in, at_least=0)
        if (self.control is None) != (self.control_share == 0):
            raise InputError(
                "control and control_share belong together: give both or neither",
                parameter="control_share",
            )
        if (self.baseline is None) != (self.holdout == 0):
            raise InputError(
                "holdout and baseline belong together: give both or neither", parameter="holdout"
            )
        if self.aa_test and not self.holdout:
            raise InputError(
                "aa_test was given without a holdout, and it compares the holdout with the other "
                "decisions: give holdout and baseline too",
                parameter="aa_test",
            )
        for action in (self.control, self.baseline):
            if action is not None:
                menu.encoded(action)
        if self.control is not None and self.control_share < self.minimum:
            raise InputError(
                f"control_share {self.control_share} is below minimum {self.minimum}, which holds "
                "for the control too: raise control_share or lower minimum",
                parameter="control_share",
            )
        if menu.can_list and self.minimum * (size := menu.space(menu.active).size) > 1:
            raise InputError(
                f"minimum {self.minimum} is more than each of {size} joint actions can have: give "
                f"at most {1 / size:.4g}, one over their number",
                parameter="minimum",
            )
        if not menu.can_list and (self.minimum or self.control_share):
            raise InputError(
                f"minimum and control are for up to {LISTED} joint actions without real-valued "
                "parts; burn_in and holdout work for all",
                parameter="minimum" if self.minimum else "control_share",
            )
