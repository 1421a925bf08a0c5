"""A policy learned from a log: it evaluates offline, and a bandit can start from it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats
from submax.core.errors import InvalidValue
from submax.core.policy import Policy
from submax.core.whole_file import whole_file
from submax.networks.state_file import read_state, state_bytes
from submax.policies import make_policy
from submax.schema.columns import Columns
from submax.schema.model import Model
from submax.schema.schema import Schema

MOST_ROWS = 1_000_000
"""Rows that stay with the policy, for versions to come."""


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """The log that was learned from, by its hash, and which of its rows: ``share`` of them.

    With a share of 1 these are all; else the first by time, or random ones by ``seed``.
    """

    log: str
    rows: int
    share: float = 1.0
    by: str = "time"
    seed: int = 0
    estimated_propensities: int = 0


class Learned(NamedTuple):
    """What a policy made of a log; ``rows`` are the last ones it saw, to be learned from again.

    ``specification`` is the policy by name or table, None where it was given as an object.
    """

    schema: Schema
    specification: str | dict[str, Any] | None
    policy: Policy[Any]
    model: Model
    rows: Columns
    origin: Origin

    @classmethod
    def of(
        cls,
        schema: Schema,
        policy: object,
        parts: Sequence[Columns],
        origin: Origin,
        keep_rows: int = MOST_ROWS,
    ) -> "Learned":
        """Learn from all parts."""
        specification = None if isinstance(policy, Policy) else policy
        made = policy if isinstance(policy, Policy) else make_policy(specification)  # type: ignore[arg-type]  # it checks what it gets
        model = Model.fitted(schema, made, parts, origin.seed)
        kept = _last(parts, keep_rows, schema)
        return cls(schema, specification, made, model, kept, origin)  # type: ignore[arg-type]  # as above

    def probabilities(self, context: NDArray[np.float32]) -> Floats:
        """Of every joint action in encoded contexts: ``[n, D] -> [n, M]``."""
        seen = self.model.standardization.apply(context.astype(np.float64))[None]
        found = self.policy.probabilities(self.model.state, seen)[0]
        return np.broadcast_to(found, (len(context), found.shape[1]))

    def write(self, path: Path | str) -> None:
        """As safetensors; a file that is there is replaced as a whole."""
        data = self.to_bytes()
        with whole_file(Path(path)) as file:
            file.write(data)

    def to_bytes(self) -> bytes:
        """As safetensors."""
        if self.specification is None:
            raise InvalidValue(
                "a policy that was given as an object cannot be written: name it, or its file, "
                "{'kind': 'my_policy.py:MyPolicy'}"
            )
        facts = msgspec.to_builtins(
            {"schema": self.schema, "policy": self.specification, "origin": self.origin}
        )
        return state_bytes((self.model, self.rows), {"learned": facts})

    @classmethod
    def read(cls, path: Path | str) -> "Learned":
        """From a file that ``write`` wrote."""
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise InvalidValue(f"cannot read the policy {str(path)!r}: {error}") from error
        return cls.from_bytes(data, str(path))

    @classmethod
    def from_bytes(cls, data: bytes, name: str) -> "Learned":
        """From what ``to_bytes`` made; ``name`` is for messages."""
        facts = _state(data, name, facts_only=True)[1]
        if "learned" not in facts:
            raise InvalidValue(f"{name!r} holds no policy that was learned from a log")
        try:
            schema = msgspec.convert(facts["learned"]["schema"], Schema)
            origin = msgspec.convert(facts["learned"]["origin"], Origin)
            specification = facts["learned"]["policy"]
        except (msgspec.ValidationError, LookupError, TypeError) as error:
            raise InvalidValue(f"{name!r} is from another version of submax: {error}") from error
        policy = make_policy(specification)
        (model, rows), _ = _state(data, name, [type(policy).__module__])
        return cls(schema, specification, policy, model, rows, origin)


def _state(data: bytes, name: str, *arguments: Any, **options: Any) -> tuple[Any, Any]:
    try:
        return read_state(data, *arguments, **options)
    except InvalidValue as error:
        raise InvalidValue(f"{name!r} is damaged or no policy: {error}") from error


def _last(parts: Sequence[Columns], count: int, schema: Schema) -> Columns:
    """The last rows of all parts."""
    kept: list[Columns] = []
    for part in reversed(parts):
        if count <= 0:
            break
        first = max(len(part.reward) - count, 0)
        kept.insert(0, part.rows(slice(first, None)))
        count -= len(part.reward) - first
    slots = len(schema.menu.slots) + len(schema.menu.intervals)
    return Columns.joined(kept) if kept else Columns.empty(schema.context.width, slots)
