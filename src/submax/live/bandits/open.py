"""Open a bandit in a store, and declare it if it is new."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Unpack

import numpy as np

from submax.bandit.names import check_bandit
from submax.bandit.saving import refuse_saved_bandit
from submax.bandit.settings import MEMORY_ONLY, Declaration
from submax.core.errors import InputError
from submax.live.bandits.bandit import LiveBandit
from submax.live.declaring.declare import check_new, check_options, declare, declare_from
from submax.live.store.memory_store import MemoryStore
from submax.live.store.sqlite_store import SQLiteStore
from submax.live.store.store import Store
from submax.schema.trained_policy import TrainedPolicy

MEMORY = ":memory:"
POSTGRES = ("postgres://", "postgresql://")
SERVERS = ("http://", "https://")


def open_bandit(
    place: str | Path | Store,
    *,
    name: str | None = None,
    learned: str | Path | TrainedPolicy | None = None,
    background: bool = True,
    clock: Callable[[], float] = time.time,
    rng: np.random.Generator | None = None,
    **declaration: Unpack[Declaration],
) -> LiveBandit:
    """Open the bandit ``name`` in a store, and declare it if it is new.

    ``place`` is a file, the address of a PostgreSQL database, ``":memory:"``, or a store. If no
    name is given, it is that of the file. ``submax.bandit.settings`` describes every word
    of the ``declaration``. If the bandit exists, policy, guard rails and the settings of versions
    may be given anew, and all others must be as they were declared. Without ``background`` versions
    are fitted only by ``refit``.

    With ``learned``, a policy that was learned from a log or its file, a new bandit has the
    actions, context, rewards and policy of the log, decides by the learned policy from the start,
    and goes on learning from the log's rows and its own. If the policy's class is in somebody's own
    file, read the learned policy by ``TrainedPolicy.read`` with ``trust=True``.

    >>> bandit = open_bandit(":memory:", actions=["A", "B"], reward_wait=60)
    >>> decision = bandit.decide()
    >>> bandit.reward(decision.id, 1.0).status
    'accepted'
    >>> bandit.close()
    """
    check_options(declaration)
    for word in MEMORY_ONLY:
        if word in declaration:
            raise InputError(
                f"{word} was given, and it is for bandits in memory, submax.Bandit(…): a bandit "
                "with a store fits versions, so give refit_rows and refit_seconds",
                parameter=word,
            )
    name = name if name is not None else default_name(place)
    check_bandit(name)
    before = None if learned is None else TrainedPolicy.given(learned)
    if is_new_file(place):
        # Checked before a file is created.
        check_new(name, declaration, before)
    store = place if isinstance(place, Store) else _opened(place, clock)
    try:
        own = (
            declare(store, name, declaration)
            if before is None
            else declare_from(store, name, before, declaration)
        )
        return LiveBandit.of_store(
            store, name, policy=own, background=background, clock=clock, rng=rng
        )
    except BaseException:
        if store is not place:
            store.close()
        raise


def _opened(place: str | Path, clock: Callable[[], float]) -> Store:
    """Open a store; if the file is a bandit that ``Bandit.save`` wrote, the error says so."""
    try:
        return open_store(place, clock=clock)
    except InputError:
        refuse_saved_bandit(Path(place))
        raise


def open_store(
    place: str | Path,
    *,
    read_only: bool = False,
    clock: Callable[[], float] = time.time,
) -> Store:
    """Open the store at a place: memory, PostgreSQL or SQLite; addresses of servers are refused."""
    if str(place) == MEMORY:
        return MemoryStore(clock)
    if str(place).startswith(SERVERS):
        raise InputError(
            f"{str(place)!r} is the address of a server, and a store is needed here: give its file "
            "or database, or use submax.Client(address, name)"
        )
    if str(place).startswith(POSTGRES):
        from submax.live.store.postgres_store import PostgresStore

        return PostgresStore(str(place), read_only=read_only)
    return SQLiteStore(Path(place), read_only=read_only, clock=clock)


def is_new_file(place: object) -> bool:
    """Whether opening a place would create a new file."""
    if not isinstance(place, (str, Path)) or str(place).startswith((MEMORY, *POSTGRES)):
        return False
    return not Path(place).exists()


def default_name(place: object) -> str:
    """The name of a bandit at a place: that of the file, made of characters that names may have."""
    if not isinstance(place, (str, Path)) or str(place).startswith((MEMORY, *POSTGRES)):
        return "default"
    allowed = [one if one.isascii() and one.isalnum() else "-" for one in Path(place).stem.lower()]
    return "".join(allowed).strip("-")[:64] or "default"
