"""Open a bandit, and declare it where it is new."""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

import msgspec
import numpy as np

from submax.core.checks import one_of
from submax.core.errors import Conflict, InvalidValue
from submax.core.policy import Policy
from submax.core.scale import Scale
from submax.live.bandit import Bandit
from submax.live.bandits import bandit_names, settings_stream
from submax.live.control import Control, control_of
from submax.live.event import Entry
from submax.live.guard_rails import GuardRails
from submax.live.history import (
    check_again,
    check_choices,
    check_propensities,
    check_start,
    declaration_of,
    history_of,
    start_from,
)
from submax.live.memory_store import MemoryStore
from submax.live.names import check_bandit
from submax.live.records import CHANGED, DECLARED
from submax.live.settings import Settings, declared, policy_of
from submax.live.sqlite_store import SQLiteStore
from submax.live.store import Store
from submax.schema.learned import Learned

MEMORY = ":memory:"
POSTGRES = ("postgres://", "postgresql://")


class ContextIgnored(UserWarning):
    """A context is declared, and the policy does not look at it."""


class Declaration(TypedDict, total=False):
    """What can be declared of a bandit.

    actions: names of arms, or a table of slots, each with names of choices or (low, high).
    action_features: a table of choices, each with a table of numbers and texts that describe it;
        with named slots, a table of slots with such tables.
    context: a table of fields: ``float``, a list of categories, or one with a default.
    policy: a name such as ``rcp-adaptive``, a table with a ``kind``, or a Policy.
    rewards: the scale of rewards, ``submax.Binary()`` if it is not given.
    combine: what several rewards of a decision are together: ``last``, ``first``, ``max``, ``sum``.
    reward_wait: seconds after which a decision matures: then it is learned from, not before.
    default_reward: that of a decision without any by then; None: it is not learned from.
    quarantine: seconds that a reward waits for a decision with its id.
    guard_rails: a ``GuardRails``, or a table of its fields.
    refit_rows: matured decisions after which a new version is fitted.
    refit_seconds: time after which this is done even if there are fewer.
    seed: of the fits: the same log and seed give the same version.
    keep_versions: versions whose models are kept.
    """

    actions: Sequence[str] | Mapping[str, Sequence[str] | Sequence[float]]
    action_features: Mapping[str, Mapping[str, Any]]
    context: Mapping[str, Any]
    policy: str | Mapping[str, Any] | Policy[Any]
    rewards: Scale | str | Mapping[str, Any]
    combine: Literal["first", "last", "max", "sum"]
    reward_wait: float | timedelta
    default_reward: float | None
    quarantine: float | timedelta
    guard_rails: GuardRails | Mapping[str, Any]
    refit_rows: int
    refit_seconds: float | timedelta
    seed: int
    keep_versions: int


def open_bandit(
    place: str | Path | Store,
    *,
    name: str | None = None,
    learned: str | Path | Learned | None = None,
    background: bool = True,
    clock: Callable[[], float] = time.time,
    rng: np.random.Generator | None = None,
    **declaration: Unpack[Declaration],
) -> Bandit:
    """Open the bandit ``name`` in a store, and declare it where it is new.

    ``place`` is a file, the address of a PostgreSQL database, ``":memory:"``, or a store. The
    name is that of the file where none is given. What is declared again must agree with what was
    declared before, but for the policy, the guard rails, and when and how versions are made.
    Without ``background`` versions are fitted only by ``refit``.

    With ``learned``, a policy that was learned from a log or its file, a new bandit is declared as
    the log was, decides by the policy from the start, and goes on learning from the log's rows and
    its own. A file whose policy is itself a file of code is read by ``Learned.read`` with
    ``trust=True``.

    >>> bandit = open_bandit(":memory:", actions=["A", "B"], reward_wait=60)
    >>> decision = bandit.decide()
    >>> bandit.reward(decision.id, 1.0).status
    'accepted'
    >>> bandit.close()
    """
    for word in declaration:
        one_of("part of a declaration:", word, Declaration.__annotations__)
    name = name if name is not None else default_name(place)
    check_bandit(name)
    before = None if learned is None else _read(learned)
    if is_new_file(place):
        # Before it is made.
        check_new(name, declaration, before)
    store = place if isinstance(place, Store) else open_store(place, clock=clock)
    try:
        own = (
            declare(store, name, declaration)
            if before is None
            else declare_from(store, name, before, declaration)
        )
        return Bandit(store, name, policy=own, background=background, clock=clock, rng=rng)
    except BaseException:
        if store is not place:
            store.close()
        raise


def _read(learned: str | Path | Learned) -> Learned:
    return learned if isinstance(learned, Learned) else Learned.read(learned)


def open_store(
    place: str | Path,
    *,
    read_only: bool = False,
    clock: Callable[[], float] = time.time,
) -> Store:
    """The store at a place."""
    if str(place) == MEMORY:
        return MemoryStore(clock)
    if str(place).startswith(POSTGRES):
        from submax.live.postgres_store import PostgresStore

        return PostgresStore(str(place), read_only=read_only)
    return SQLiteStore(Path(place), read_only=read_only, clock=clock)


def is_new_file(place: object) -> bool:
    """Whether a store would be a file that is not there yet."""
    if not isinstance(place, (str, Path)) or str(place).startswith((MEMORY, *POSTGRES)):
        return False
    return not Path(place).exists()


def default_name(place: object) -> str:
    """That of the file, as far as it can be part of an address."""
    if not isinstance(place, (str, Path)) or str(place).startswith((MEMORY, *POSTGRES)):
        return "default"
    kept = [one if one.isascii() and one.isalnum() else "-" for one in Path(place).stem.lower()]
    return "".join(kept).strip("-")[:64] or "default"


def declare(
    store: Store, name: str, declaration: Mapping[str, Any], *, new: bool = False
) -> Policy[Any] | None:
    """Write down what is new; the policy, where it was given as an object.

    With ``new`` a bandit that is there already is refused.
    """
    given = dict(declaration)
    own, stream = _own(given), settings_stream(name)
    before = store.find(stream, "declared")
    if before is None:
        settings = _check(given, name, bandit_names(store))
        entry = Entry(DECLARED, msgspec.msgpack.encode(settings), "declared")
        # Another process may have been first: then its declaration stands, and is compared.
        (written,) = store.append(stream, [entry]).result()
        before, new = written.event, new and not written.new
    if new:
        raise Conflict(f"there is a bandit {name!r} already")
    control = Control(before, lambda after: store.read(stream, after))
    control.follow()
    _declare_again(store, stream, control, given, own)
    _warn(control.settings, policy_of(control.settings.policy, own))
    return own


def declare_from(
    store: Store, name: str, learned: Learned, declaration: Mapping[str, Any]
) -> Policy[Any] | None:
    """The same for a bandit that starts from a learned policy, where it is new declared like it.

    Nothing is written unless all goes together.
    """
    if name in bandit_names(store):
        given = declaration
        _check_standing(store, name, given, learned)
    else:
        given = {**declaration_of(learned), **declaration}
        check_new(name, declaration, learned)
    own = declare(store, name, given)
    start_from(store, name, learned, own)
    return own


def check_new(name: str, declaration: Mapping[str, Any], learned: Learned | None) -> None:
    """Refuse the declaration of a new bandit where something does not go together."""
    if learned is None:
        _check(declaration, name)
        return
    given = {**declaration_of(learned), **declaration}
    settings = _check(given, name)
    check_start(settings, settings.menu, learned, policy_of(settings.policy, _own(given)))
    check_choices(settings.menu, learned)


def _check_standing(store: Store, name: str, given: Mapping[str, Any], learned: Learned) -> None:
    """The same for a bandit that is there, with the settings as they would be."""
    control, own = control_of(store, name), _own(given)
    settings = _settings_again(control, given, own)
    check_start(settings, control.menu, learned, policy_of(settings.policy, own))
    if control.history is None:
        check_choices(control.menu, learned)
    else:
        check_again(control, name, learned, history_of(learned))


def _own(given: Mapping[str, Any]) -> Policy[Any] | None:
    """The policy, where it is given as an object."""
    policy = given.get("policy")
    return policy if isinstance(policy, Policy) else None


def _check(given: Mapping[str, Any], name: str, others: Sequence[str] = ()) -> Settings:
    """What is declared, if it goes together."""
    if "actions" not in given:
        there = f"; there are: {', '.join(others)}" if others else ""
        raise InvalidValue(
            f"the bandit {name!r} is new here: declare its actions, actions=['A', 'B']{there}"
        )
    settings = declared(**{"context": None, "policy": "rcp-adaptive", "rewards": "binary", **given})
    settings.check(policy_of(settings.policy, _own(given)))
    return settings


def _declare_again(
    store: Store, stream: str, control: Control, given: Mapping[str, Any], own: Policy[Any] | None
) -> None:
    """Compare with what stands, and write down what may change."""
    settings = _settings_again(control, given, own)
    if settings != control.settings:
        store.append(stream, [Entry(CHANGED, msgspec.msgpack.encode(settings))]).result()
        control.follow()


def _settings_again(
    control: Control, given: Mapping[str, Any], own: Policy[Any] | None
) -> Settings:
    """The settings as they stand, but what may change as given, if it goes together."""
    if not given:
        return control.settings
    menu = control.settings.menu
    base = {"actions": menu.declaration, "context": None, "policy": "random", "rewards": "binary"}
    again = declared(**{**base, **given})
    if again.menu.declaration != menu.declaration:
        raise InvalidValue(
            "this bandit was declared with other actions: leave them out, and use add, pause and "
            "retire"
        )
    if "action_features" in given and again.menu != menu:
        raise InvalidValue(
            "this bandit was declared with other action_features: leave them out; a choice that is "
            "added brings its own"
        )
    names = [name for name in given if name not in ("actions", "action_features")]
    settings = control.settings_with(again, names)
    policy = policy_of(settings.policy, own)
    if control.history is not None:
        check_propensities(settings, policy, control.history.without_propensity)
    if settings != control.settings:
        msgspec.structs.replace(settings, menu=control.menu).check(policy)
    return settings


def _warn(settings: Settings, policy: Policy[Any]) -> None:
    if settings.context.width and policy.ignores_context:
        warnings.warn(
            f"the policy {settings.policy!r} does not look at the context: the default, "
            "rcp-adaptive, does",
            ContextIgnored,
            stacklevel=4,
        )
