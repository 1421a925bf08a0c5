"""The file of a bandit in memory: arrays as safetensors, no code, and a hash of the whole."""

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
    hashed_bytes,
    hashed_facts,
    modules_of,
    read_state,
    serializable,
)
from submax.policies.specification import PolicySpecification
from submax.schema.model import Model
from submax.schema.rows import Columns

KIND = "bandit"
"""The entry in the header of a state file that marks it as the file of a bandit."""
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
    rows: Columns
    generator: dict[str, Any]

    def write(self, path: Path | str, policy: str | dict[str, Any]) -> None:
        """Write the file, with the specification of the policy; an existing file is replaced."""
        if not Path(path).parent.is_dir():
            raise InputError(f"cannot save to {str(path)!r}: create its folder first")
        data = hashed_bytes(self, KIND, {"policy": policy}, for_learning=True)
        with atomic_write(Path(path)) as file:
            file.write(data)

    @classmethod
    def read(
        cls, path: Path | str, custom: Policy[Any] | None, *, trust: bool
    ) -> tuple[Self, Policy[Any]]:
        """The contents of a file, and its policy; ``custom`` is a policy object, if one was given.

        If the class of the policy is user-defined, its code is run only with ``trust``.
        """
        try:
            data = Path(path).read_bytes()
            if data.startswith(SQLITE_HEADER):
                raise InputError(f"it is a store: open it with submax.open({str(path)!r})")
            needed = "Bandit.save did not write it, or it is damaged: give a saved bandit"
            written = hashed_facts(data, KIND, needed).get("policy")
            specification = PolicySpecification.of(written)
            if custom is not None and PolicySpecification.of(custom) != specification:
                raise InputError(
                    f"it holds a bandit with another policy than {custom!r:.80}, {written!r:.200}: "
                    "give the policy that was saved, or start a new bandit with this one"
                )
            if custom is None and references_user_code(specification.data) and not trust:
                raise InputError(
                    f"the policy {written!r:.200} names code outside submax, which would be run: "
                    "if you know this code, pass trust=True"
                )
            policy = custom or specification.build()
            saved, _ = read_state(data, modules_of(policy))
            if not isinstance(saved, cls):
                raise InputError("it is damaged: use another copy of the file")
        except OSError as error:
            raise InputError(
                f"{str(path)!r} cannot be read ({error.strerror}): give the path of a saved bandit"
            ) from error
        except (TypeError, ValueError) as error:
            raise InputError(f"{str(path)!r} cannot be loaded: {error}") from error
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
