"""A bandit compared with its holdout and its control, as a ledger reads the log."""

from submax.live.declaring.settings import Settings
from submax.live.lift.group_comparison import ComparedDecision, GroupComparison
from submax.live.log.group_draw import GroupDraw

HOLDOUT, CONTROL = "holdout", "control"
"""The groups with which the other decisions are compared."""


class GroupComparisons:
    """Collects matured decisions, and adds them to the comparisons many at a time."""

    def __init__(self, start: float) -> None:
        self.by_group = {group: GroupComparison(start=start) for group in (HOLDOUT, CONTROL)}
        self._noted: dict[str, list[ComparedDecision]] = {HOLDOUT: [], CONTROL: []}

    @classmethod
    def of(cls, settings: Settings) -> "GroupComparisons":
        """The comparisons of a bandit before its first decision."""
        bounds = settings.scale.bounds
        return cls(settings.default_reward or 0.0 if bounds is None else bounds[0])

    def note(self, group: GroupDraw, reward: float, unit: str | None) -> None:
        """Take a matured decision into account at the next call of ``save``."""
        if group.holdout_share:
            held_out = group.group == HOLDOUT
            self._noted[HOLDOUT].append(
                ComparedDecision(group.since, group.holdout_share, held_out, reward, unit)
            )
        if group.control_share and group.group != HOLDOUT:
            is_control = group.group == CONTROL
            self._noted[CONTROL].append(
                ComparedDecision(group.since, group.control_share, is_control, reward, unit)
            )

    def save(self) -> None:
        """Add the decisions that were noted."""
        for group, noted in self._noted.items():
            if noted:
                self.by_group[group].add(noted)
                noted.clear()
