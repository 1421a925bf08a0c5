"""The probabilities by which the decisions of a unit are drawn for a while."""

import msgspec

from submax.schema.actions import ChoiceIndices, EncodedAction


class StickyAssignment(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the first decision of a unit in a period was drawn from, as the log holds it.

    The fields are those of ``DecisionMade``. As long as the pin lasts, the unit's decisions are
    drawn from these probabilities; without probabilities they repeat the action.
    """

    action: EncodedAction
    propensity: float
    version: int
    eligible: ChoiceIndices
    probabilities: list[float] | None
