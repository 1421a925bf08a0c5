"""The columns of decisions in a segment, from bodies that are decoded together."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from submax.bandit.assignment import GROUPS
from submax.core.arrays import Floats
from submax.core.decoding import known_type
from submax.live.archive.segments.segment_schema import ACTION, CONTEXT
from submax.live.log.decisions.body_layout import (
    BodyLayout,
    are_shortest,
    floats_at,
    texts_at,
    values_at,
)
from submax.live.log.decisions.encoded_decisions import EncodedDecisions
from submax.live.log.decisions.layout_group import LayoutGroup, units_of
from submax.schema.actions import ChoiceIndices

ENCODER = msgspec.msgpack.Encoder()
ELIGIBLE = msgspec.msgpack.Decoder(known_type(ChoiceIndices))
Fields = dict[str, tuple[NDArray[Any], NDArray[np.bool_] | None]]
"""The values of decisions by the names of their columns, and which of them are missing."""


class DecisionFields:
    """The columns of decisions, whose bodies have layouts that many share.

    ``action`` and ``context`` are the types of the declared actions and context, ``i``, ``f`` or
    ``S``. ``of`` returns nothing if some body cannot be restored from columns alone; whoever
    writes the events must then look at each of them.
    """

    def __init__(self, action: Sequence[str], context: Sequence[str]) -> None:
        self._action, self._context = list(action), list(context)

    def of(self, made: EncodedDecisions) -> Fields | None:
        """Return the columns; None if the bodies are not those that msgspec writes for them."""
        groups = made.groups
        if groups is None or not all(self._fits(group) for group in groups):
            return None
        eligible = _eligible(groups, len(made))
        if eligible is None or np.isnan(made.propensity).any():
            return None
        fields: Fields = {
            **self._values(groups, len(made)),
            "version": (made.version, None),
            "eligible": (eligible, None),
            "activated": (made.activated, None),
            "holdout": (made.holdout, None),
            "paused": (made.paused, None),
            "unit": (_joined(groups, len(made), np.object_, units_of), None),
        }
        grouped = _joined(groups, len(made), np.bool_, _has_group)
        drawn = made.group
        names = np.array(GROUPS, np.object_)[drawn["group"]]
        fields |= {"group": (names, None), "group_since": (drawn["since"], ~grouped)}
        for name in ("holdout_share", "control_share"):
            fields[name] = drawn[name], ~grouped
        fields["propensity"] = made.propensity, _are_listed(made)
        return fields

    def _fits(self, group: LayoutGroup) -> bool:
        """Whether columns can hold the values of a group, and its bodies follow from them."""
        layout, bodies = group.layout, group.bodies
        types = [_type(leaf.kind) for leaf in layout.action]
        if not layout.is_shortest or types != self._action:
            return False
        if [_type(leaf.kind) for leaf in layout.context] != self._context:
            return False
        since = [] if layout.group is None else layout.group[:1]
        integers = [leaf for leaf in layout.action if leaf.kind != ">f8"]
        if not all(are_shortest(bodies, leaf) for leaf in (*integers, layout.version, *since)):
            return False
        return not any(np.isnan(one).any() for one in _floats(group))

    def _values(self, groups: Sequence[LayoutGroup], count: int) -> Fields:
        """Return the columns of actions and contexts."""
        found: Fields = {}
        for name, types, which in (
            (ACTION, self._action, _action_of),
            (CONTEXT, self._context, _context_of),
        ):
            for number, one in enumerate(types):
                kind = {"i": np.int64, "f": np.float64, "S": np.object_}[one]
                column: NDArray[Any] = np.zeros(count, kind)
                for group in groups:
                    leaf = which(group.layout)[number]
                    read = texts_at if one == "S" else values_at
                    column[group.places] = read(group.bodies, leaf)
                found[f"{name}{number}"] = column, None
        return found


def _action_of(layout: BodyLayout) -> list[Any]:
    return layout.action


def _context_of(layout: BodyLayout) -> list[Any]:
    return layout.context


def _type(kind: str) -> str:
    return {">f8": "f", "S": "S"}.get(kind, "i")


def _floats(group: LayoutGroup) -> list[NDArray[Any]]:
    """Return all numbers of a group that are floats."""
    layout = group.layout
    leaves = [*layout.action, *layout.context, *(layout.group or ())[2:]]
    found = [values_at(group.bodies, leaf) for leaf in leaves if leaf.kind == ">f8"]
    return [*found, floats_at(group.bodies, layout.probabilities or [])]


def _has_group(group: LayoutGroup) -> NDArray[np.bool_]:
    return np.full(len(group.places), group.layout.group is not None)


def _joined(groups: Sequence[LayoutGroup], count: int, kind: Any, read: Any) -> NDArray[Any]:
    """Return one column from the values of each group."""
    column = np.zeros(count, kind)
    for group in groups:
        column[group.places] = read(group)
    return column


def _eligible(groups: Sequence[LayoutGroup], count: int) -> NDArray[np.object_] | None:
    """Return the encoded eligible choices; None if one is not in the shortest form."""
    column, known = np.zeros(count, np.object_), dict[bytes, bool]()
    for group in groups:
        span = np.ascontiguousarray(group.bodies[:, group.layout.eligible_span])
        size, data = span.shape[1], span.tobytes()
        spans = [data[begin : begin + size] for begin in range(0, len(data), size)]
        for one in {*spans} - {*known}:
            known[one] = ENCODER.encode(ELIGIBLE.decode(one)) == one
        column[group.places] = spans
    return column if all(known.values()) else None


def _are_listed(made: EncodedDecisions) -> NDArray[np.bool_]:
    """Return whose propensity is the probability of its action in the list of probabilities."""
    listed = np.zeros(len(made), np.bool_)
    lists = made.probabilities()
    offsets, flat = lists.offsets.to_numpy(), lists.values.to_numpy()
    numbers, known = made.eligible()
    for number, slots in enumerate(known):
        here = (numbers == number).nonzero()[0]
        if made.action.shape[1] != len(slots):
            continue
        index, inside = np.zeros(len(here), np.int64), np.ones(len(here), np.bool_)
        for slot, indices in enumerate(slots):
            place = _place_of(made.action[here, slot], indices)
            inside &= place >= 0
            index = index * len(indices) + place
        begin = offsets[here]
        inside &= begin + index < offsets[here + 1]
        chosen = here[inside]
        found: Floats = flat[begin[inside] + index[inside]]
        same = found.view(np.int64) == made.propensity[chosen].view(np.int64)
        listed[chosen[same]] = True
    return listed


def _place_of(choice: Floats, indices: Sequence[int]) -> NDArray[np.int64]:
    """Return where each choice is among some indices, which may repeat; −1 if nowhere."""
    place = np.full(len(choice), -1)
    for number, one in reversed([*enumerate(indices)]):
        place[choice == one] = number
    return place
