"""What a bandit learned before its first decision: a policy from a log, and the rows of the log."""

from typing import Any

import msgspec
import numpy as np

from submax.core.errors import Conflict, InvalidValue
from submax.live.bandits import model_name, settings_stream
from submax.live.control import Control, control_of
from submax.live.event import Entry
from submax.live.records import HISTORY, PUBLISHED, VERSION, Fitted, History, Published, body_of
from submax.live.settings import OWN, Settings
from submax.live.store import Store
from submax.networks.state_file import read_state, state_bytes
from submax.policies import make_policy
from submax.schema.columns import Columns
from submax.schema.learned import Learned
from submax.schema.model import hash_of

SEGMENT = 65_536
"""Rows that are kept together."""


def declaration_of(learned: Learned) -> dict[str, Any]:
    """What a bandit that starts from a learned policy is declared with, unless told otherwise."""
    schema = learned.schema
    return {
        "actions": schema.menu.declaration,
        "context": dict(zip(schema.context.names, schema.context.fields, strict=True)),
        "rewards": schema.rewards,
        "policy": learned.specification,
    }


def start_from(store: Store, name: str, learned: Learned) -> None:
    """Make a learned policy the first version, and its rows part of all that follow.

    The same again changes nothing; another one is refused.
    """
    stream, control = settings_stream(name), control_of(store, name)
    check_start(control.settings, learned)
    parts = [
        learned.rows.rows(slice(first, first + SEGMENT))
        for first in range(0, len(learned.rows.reward), SEGMENT)
    ]
    data = learned.model.to_bytes()
    history = History(
        rows=len(learned.rows.reward),
        segments=[part.hash for part in parts],
        log=learned.origin.log,
        model=hash_of(data),
    )
    before = store.find(stream, HISTORY)
    if before is None:
        # The pieces first: what an entry speaks of must be there.
        for number, part in enumerate(parts):
            store.keep(_segment_name(name, number, history), state_bytes(part, {}))
        store.keep(model_name(name, history.model), data)
        entries = _entries(control, learned, history)
        before = store.append(stream, entries).result()[0].event
    if body_of(before, History) != history or not _agrees(control_of(store, name), learned):
        raise Conflict(f"the bandit {name!r} was started from another learned policy")


def read_history(store: Store, name: str, history: History | None) -> list[Columns]:
    """The rows that a bandit was started with, in parts."""
    if history is None:
        return []
    return [_segment(store, name, number, history) for number in range(len(history.segments))]


def _entries(control: Control, learned: Learned, history: History) -> list[Entry]:
    number = max(control.versions, default=0) + 1
    fitted = Fitted(
        version=number,
        model=history.model,
        policy=learned.specification or "",
        rows=history.rows,
        learned=0,
        read=0,
        rows_hash=learned.rows.hash,
        seed=learned.origin.seed,
        shown=learned.model.shown,
    )
    published = Published(number, model=history.model)
    return [
        Entry(HISTORY, msgspec.msgpack.encode(history), HISTORY),
        Entry(VERSION, msgspec.msgpack.encode(fitted), f"version {number}"),
        Entry(PUBLISHED, msgspec.msgpack.encode(published)),
    ]


def _agrees(control: Control, learned: Learned) -> bool:
    """Whether a version with this model is of this policy: two may have learned the same."""
    model = hash_of(learned.model.to_bytes())
    # As it was written, so that a tuple is the list that it became.
    policy = msgspec.msgpack.decode(msgspec.msgpack.encode(learned.specification))
    found = [one.policy for one in control.versions.values() if one.model == model]
    return policy in found or not found


def check_start(settings: Settings, learned: Learned) -> None:
    """Refuse what does not go together, best before the bandit is declared."""
    if learned.specification is None:
        raise InvalidValue("a bandit starts from a policy that has a name or a file")
    schema = learned.schema
    for what, declared, given in (
        ("actions", settings.menu, schema.menu),
        ("contexts", settings.context, schema.context),
        ("rewards", settings.rewards, schema.rewards),
    ):
        if declared != given:
            raise InvalidValue(
                f"the policy was learned for other {what} than those of the bandit: declare the "
                "bandit as the log was read"
            )
    own = isinstance(settings.policy, dict) and settings.policy.get("kind") == OWN
    needs = not own and make_policy(settings.policy).needs_propensities
    if needs and np.isnan(learned.rows.log_prob).any():
        raise InvalidValue(
            f"the policy {settings.policy!r} needs propensities, and the rows that were learned "
            "from have none: learn by this policy, so that they are estimated"
        )


def _segment(store: Store, name: str, number: int, history: History) -> Columns:
    data = store.kept(_segment_name(name, number, history))
    try:
        columns: Any = None if data is None else read_state(data)[0]
    except InvalidValue:
        columns = None
    if not isinstance(columns, Columns) or columns.hash != history.segments[number]:
        raise InvalidValue(f"part {number} of what {name} was started with is missing or damaged")
    return columns


def _segment_name(name: str, number: int, history: History) -> str:
    return f"{name}/history/{history.model[:16]}/{number}"
