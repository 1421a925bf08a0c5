"""The file of a bandit in memory: arrays as safetensors, no code, and a hash of the whole."""

import hashlib
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from submax.core.decoding import known_type
from submax.core.errors import InputError
from submax.core.policy import Policy
from submax.core.registry import references_user_code
from submax.core.serialization import (
    atomic_write,
    modules_of,
    read_state,
    serializable,
    state_bytes,
)
from submax.policies.specification import PolicySpecification
from submax.schema.model import Model
from submax.schema.rows import Columns

KIND = "bandit"
"""The entry in the header of a state file that marks it as the file of a bandit."""
FORMAT = 4
"""The version of the format, raised whenever an older submax could not read the contents."""
NO_HASH = "0" * 64
"""Written in place of the file's hash while the hash is computed."""
SQLITE_HEADER = b"SQLite format 3\0"
"""The first bytes of every SQLite file, https://www.sqlite.org/fileformat.html section 1.3."""
GENERATORS = ("PCG64", "PCG64DXSM", "SFC64", "Philox", "MT19937")
"""The bit generators of numpy whose state can be saved."""
Bytes = NDArray[np.uint8]
State = TypeVar("State")


@serializable("saved-bandit")
class SavedBandit(NamedTuple):
    """Everything that makes up a bandit in memory.

    ``record`` has its settings, choices and decisions as MessagePack. ``learned`` is the policy's
    whole state, ``rows`` are those that the learner keeps, and ``generator`` is the state of the
    random generator that draws decisions.
    """

    record: Bytes
    learned: Model
    version: int
    rows: list[Columns]
    generator: dict[str, Any]

    def write(self, path: Path | str, policy: str | dict[str, Any]) -> None:
        """Write the file, with the specification of the policy; an existing file is replaced."""
        if not Path(path).parent.is_dir():
            raise InputError(f"cannot save to {str(path)!r}: create its folder first")
        facts = {KIND: {"format": FORMAT, "policy": policy, "hash": NO_HASH}}
        data = state_bytes(self, facts, for_learning=True)
        hashed = hashlib.sha256(data).hexdigest()
        with atomic_write(Path(path)) as file:
            file.write(data.replace(NO_HASH.encode(), hashed.encode(), 1))

    @classmethod
    def read(
        cls, path: Path | str, custom: Policy[Any] | None, *, trust: bool
    ) -> tuple[Self, Policy[Any]]:
        """The contents of a file, and its policy; ``custom`` is a policy object, if one was given.

        If the class of the policy is user-defined, its code is run only with ``trust``.
        """
        try:
            data = Path(path).read_bytes()
        except (OSError, TypeError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(
                f"{str(path)!r} cannot be read ({reason}): give the path of a saved bandit"
            ) from error
        if data.startswith(SQLITE_HEADER):
            raise InputError(f"{str(path)!r} is a store: open it with submax.open({str(path)!r})")
        try:
            facts = read_state(data, facts_only=True)[1]
        except InputError as error:
            raise InputError(
                f"{str(path)!r} was not written by Bandit.save, or is damaged: give the "
                "path of a saved bandit"
            ) from error
        header = _checked(str(path), data, facts)
        specification = PolicySpecification.of(header.get("policy"))
        if custom is not None and PolicySpecification.of(custom) != specification:
            raise InputError(
                f"{str(path)!r} holds a bandit with another policy than {custom!r:.80}, "
                f"{specification.data!r:.200}: give the policy that was saved, or start a new "
                "bandit with this one"
            )
        if custom is None and references_user_code(specification.data) and not trust:
            raise InputError(
                f"{str(path)!r} holds a bandit whose policy {specification.data!r:.200} names code "
                "outside submax, which would be run: if you know this code, pass trust=True"
            )
        policy = custom or specification.build()
        saved, _ = read_state(data, modules_of(policy))
        if not isinstance(saved, cls):
            raise InputError(f"{str(path)!r} is damaged: use another copy of the file")
        return saved, policy


def encoded(value: Any) -> Bytes:
    """A value as MessagePack in an array."""
    return np.frombuffer(msgspec.msgpack.encode(value), dtype=np.uint8)


def decoded(data: Bytes, kind: type[State]) -> State:
    """The value from which ``encoded`` made an array."""
    try:
        return msgspec.msgpack.decode(data.tobytes(), type=known_type(kind))
    except (ValueError, AttributeError) as error:
        raise InputError(
            f"the saved bandit is damaged ({error}): use another copy of the file"
        ) from error


def refuse_saved_bandit(path: Path) -> None:
    """Raise an ``InputError`` if a file is not a store but a bandit that ``Bandit.save`` wrote."""
    try:
        facts = read_state(path.read_bytes(), facts_only=True)[1]
    except (InputError, OSError):
        return
    if isinstance(facts, dict) and KIND in facts:
        raise InputError(
            f"{str(path)!r} was written by Bandit.save: read it with "
            f"submax.Bandit.load({str(path)!r}), or give the path of a store"
        )


def _checked(path: str, data: bytes, facts: Any) -> dict[str, Any]:
    """The header of a file, after a check that the file is a bandit and undamaged."""
    header = facts.get(KIND) if isinstance(facts, dict) else None
    if not isinstance(header, dict):
        raise InputError(
            f"{path!r} was not written by Bandit.save: give a saved bandit, or use a "
            "policy learned from a log with learned=…"
        )
    if header.get("format") != FORMAT:
        raise InputError(
            f"{path!r} has the format {header.get('format')!r}, and this submax reads {FORMAT}: "
            "load it with the submax that saved it"
        )
    claimed = str(header.get("hash"))
    if hashlib.sha256(data.replace(claimed.encode(), NO_HASH.encode(), 1)).hexdigest() != claimed:
        raise InputError(f"{path!r} is damaged: its hash is wrong; use another copy of the file")
    return header


def generator_state(rng: np.random.Generator) -> dict[str, Any]:
    """The state of a random generator, as numbers and arrays."""
    state = dict(rng.bit_generator.state)
    _check_kind(state)
    return state


def generator_at(state: dict[str, Any]) -> np.random.Generator:
    """A random generator in a state that ``generator_state`` gave."""
    _check_kind(state)
    bits = getattr(np.random, state["bit_generator"])()
    bits.state = state
    return np.random.Generator(bits)


def _check_kind(state: dict[str, Any]) -> None:
    if state.get("bit_generator") not in GENERATORS:
        raise InputError(
            f"an rng of the type {state.get('bit_generator')!r:.40} cannot be saved or loaded: "
            f"use one of {', '.join(GENERATORS)}"
        )
