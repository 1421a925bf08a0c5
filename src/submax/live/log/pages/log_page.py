"""A page of a bandit's log, by columns."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats
from submax.live.log.decisions.decision_columns import DecisionColumns
from submax.live.log.decisions.encoded_decisions import EncodedDecisions
from submax.live.log.pages.page_names import PageNames, StoredNames
from submax.live.log.pages.reward_values import Parts, reward_values
from submax.live.store.columns.event_columns import NO_EVENTS, EventColumns
from submax.live.store.columns.event_kinds import ACTIVATION_KIND, DECISION_KIND, REWARD_KIND


@dataclass(frozen=True, slots=True)
class LogPage:
    """``n`` events of a log, in order.

    ``position``, ``at``, ``kind``, ``about_position`` and ``value`` are ``[n]``; ``value`` is the
    value of a reward, and NaN for other events. ``parts`` has the parts of those rewards that have
    some, by their places. ``decisions`` are the places of the decisions, in the order of ``made``;
    ``feedback`` those of rewards and activations. ``is_last`` says that the log ended with the page
    when it was read; if it is not set, there may be more.
    """

    position: NDArray[np.int64]
    at: Floats
    kind: NDArray[np.uint8]
    about_position: NDArray[np.int64]
    value: Floats
    parts: Parts
    decisions: NDArray[np.int64]
    feedback: NDArray[np.int64]
    made: DecisionColumns
    names: PageNames
    is_last: bool = False

    def __len__(self) -> int:
        return len(self.position)

    @classmethod
    def of(cls, events: EventColumns, *, is_last: bool = False) -> "LogPage":
        """Decode a page; an ``InputError`` is raised if a body is damaged."""
        if not len(events):
            return EMPTY_PAGE
        return cls._decoded(events, is_last)

    @classmethod
    def _decoded(cls, events: EventColumns, is_last: bool) -> "LogPage":
        decisions, feedback, rewards = places_of(events.kind)
        value = np.full(len(events), np.nan)
        value[rewards], parts = reward_values(events.body.take(rewards), events.position[rewards])
        made = EncodedDecisions(events.body.take(decisions), events.position[decisions])
        return cls(
            events.position,
            events.at,
            events.kind,
            events.about_position,
            value,
            {int(rewards[number]): one for number, one in parts.items()},
            decisions,
            feedback,
            made,
            StoredNames(events),
            is_last,
        )

    def after(self, position: int) -> int:
        """Return the place of the first event after a position."""
        return int(np.searchsorted(self.position, position, "right"))


def places_of(kind: NDArray[np.uint8]) -> tuple[NDArray[np.int64], ...]:
    """Return the places of decisions, of rewards and activations, and of rewards."""
    is_reward = kind == REWARD_KIND
    return (
        (kind == DECISION_KIND).nonzero()[0],
        (is_reward | (kind == ACTIVATION_KIND)).nonzero()[0],
        is_reward.nonzero()[0],
    )


EMPTY_PAGE = LogPage._decoded(NO_EVENTS, is_last=True)
"""The page at the end of a log."""
