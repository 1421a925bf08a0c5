"""What the page of decisions shows."""

import msgspec

from submax.live.lookup.found_decision import FoundReward
from submax.schema.names import Action


class ActionRow(msgspec.Struct, frozen=True):
    """An action that could have been taken: its probability, and what it was believed to earn."""

    action: Action
    probability: float | None
    believed: float | None
    taken: bool


class DecisionDetails(msgspec.Struct, frozen=True):
    """A decision with everything that is known about it.

    ``state`` says what became of it, and ``why`` how the action was chosen. ``actions`` are those
    that could have been taken, the most probable first, and ``unlisted`` is how many more there
    were. ``group`` is empty if no guard rail sets decisions apart.
    """

    id: str
    at: float
    action: Action
    propensity: float
    version: int
    unit: str | None
    group: str
    state: str
    archived: bool
    context: dict[str, float | str]
    why: list[str]
    actions: list[ActionRow]
    unlisted: int
    rewards: list[FoundReward]


class ListedDecision(msgspec.Struct, frozen=True):
    """A decision in a list."""

    id: str
    at: float
    action: Action
    propensity: float
    version: int
    unit: str | None
    holdout: bool


class DecisionsPage(msgspec.Struct, frozen=True):
    """One decision, or a list of the newest ones.

    ``id`` and ``unit`` are what was asked for. ``problem`` is a sentence if nothing was found, and
    its ``code`` is malformed, unknown or quarantined.
    """

    name: str
    id: str
    unit: str
    problem: str
    code: str
    decision: DecisionDetails | None
    newest: list[ListedDecision]
