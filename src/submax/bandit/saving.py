"""The file of a bandit in memory: arrays as safetensors, no code, and a hash of the whole."""

from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from submax.core.decoding import known_type
from submax.core.errors import InputError
from submax.core.serialization import atomic_write, hashed_bytes, serializable
from submax.schema.model import Model
from submax.schema.rows import Columns

KIND = "bandit"
"""The entry in the header of a state file that marks it as the file of a bandit."""
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


def decoded(data: Bytes, kind: type[State]) -> State:
    """A value that was written as MessagePack into an array."""
    try:
        return msgspec.msgpack.decode(data.tobytes(), type=known_type(kind))
    except (ValueError, AttributeError) as error:
        raise InputError(
            f"the saved bandit is damaged ({error}): use another copy of the file"
        ) from error


def generator_state(rng: np.random.Generator) -> dict[str, Any]:
    """The state of a random generator, as numbers and arrays."""
    state = dict(rng.bit_generator.state)
    # What could not be loaded is refused when it is saved.
    generator_at(state)
    return state


def generator_at(state: dict[str, Any]) -> np.random.Generator:
    """A random generator in a state that ``generator_state`` gave."""
    kind = state.get("bit_generator")
    if kind not in GENERATORS:
        raise InputError(
            f"an rng of the type {kind!r:.40} cannot be saved or loaded: "
            f"use one of {', '.join(GENERATORS)}"
        )
    bits = getattr(np.random, kind)()
    bits.state = state
    return np.random.Generator(bits)
