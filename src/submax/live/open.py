"""Open a bandit, and declare it where it is new."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Unpack

import numpy as np

from submax.core.errors import InputError
from submax.live.bandit import Bandit
from submax.live.declaring.declare import check_new, check_words, declare, declare_from
from submax.live.declaring.names import check_bandit
from submax.live.declaring.settings import Declaration
from submax.live.store.memory_store import MemoryStore
from submax.live.store.sqlite_store import SQLiteStore
from submax.live.store.store import Store
from submax.schema.learned import Learned

MEMORY = ":memory:"
POSTGRES = ("postgres://", "postgresql://")


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
    check_words(declaration)
    if "learn_share" in declaration:
        raise InputError(
            "learn_share was given, and it is for bandits in memory, submax.Bandit(…): a bandit "
            "with a store fits versions, so give refit_rows and refit_seconds"
        )
    name = name if name is not None else default_name(place)
    check_bandit(name)
    before = None if learned is None else Learned.given(learned)
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
        return Bandit.of_store(store, name, policy=own, background=background, clock=clock, rng=rng)
    except BaseException:
        if store is not place:
            store.close()
        raise


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
        from submax.live.store.postgres_store import PostgresStore

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
