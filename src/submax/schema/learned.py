"""Policies learned from a log, for offline evaluation and as the start of a live bandit."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats
from submax.core.errors import InputError
from submax.core.policy import Policy, probabilities_among
from submax.core.registry import names_file
from submax.core.serialization import atomic_write, modules_of, read_state, state_bytes
from submax.policies import make_policy
from submax.policies.specification import PolicySpecification
from submax.schema.columns import Columns
from submax.schema.known_type import known_type
from submax.schema.learned_checks import check_contents, check_schema
from submax.schema.menu import ChoiceIndices
from submax.schema.model import Model
from submax.schema.schema import Schema

MOST_ROWS = 1_000_000
"""Largest number of rows that are stored with a policy; later versions learn from them again."""
MOST_NUMBERS = 2**26
"""Largest number of context numbers in the stored rows, 256 MB as float32. A category takes one
number per value."""


def most_rows(width: int) -> int:
    """Return how many rows with contexts of this width can be stored with a policy."""
    return min(MOST_ROWS, MOST_NUMBERS // max(width, 1))


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a policy was learned from.

    ``log`` is the hash of the log, ``log_rows`` its number of rows, and ``rows`` the number of rows
    that were learned from: a ``share`` of the log, either the first rows by time, or random ones by
    ``seed``. ``estimated_propensities`` counts rows whose propensity was estimated.
    """

    log: str
    rows: int
    log_rows: int = 0
    share: float = 1.0
    by: Literal["time", "random"] = "time"
    seed: int = 0
    estimated_propensities: int = 0


class Learned(NamedTuple):
    """A policy with the model that it learned from a log.

    ``specification`` is the name or table of the policy; None if no table can describe it.
    ``rows`` are the last rows of the log, from which later versions learn again.
    """

    schema: Schema
    specification: str | dict[str, Any] | None
    policy: Policy[Any]
    model: Model
    rows: Columns
    origin: Origin

    def __repr__(self) -> str:
        policy = self.specification or self.policy
        return f"Learned({policy!r:.80} from {self.origin.rows} rows)"

    @classmethod
    def of(
        cls,
        schema: Schema,
        policy: object,
        parts: Sequence[Columns],
        origin: Origin,
        keep_rows: int = MOST_ROWS,
    ) -> "Learned":
        """Learn from all parts of a log; the last ``keep_rows`` rows are stored with the policy."""
        written = PolicySpecification.of(policy)
        made = written.build(policy if isinstance(policy, Policy) else None)
        specification = None if written.is_object else written.data
        model = Model.fitted(schema, made, parts, origin.seed)
        kept = _last(parts, keep_rows, schema)
        return cls(schema, specification, made, model, kept, origin)

    def probabilities(
        self, context: NDArray[np.float32], eligible: ChoiceIndices | None = None
    ) -> Floats:
        """Return the probability of every joint action in encoded contexts: ``[n, D] -> [n, M]``.

        The joint actions are those of all choices in the log, with the last slot fastest. A joint
        action with a paused or retired choice has probability 0. If choices are ``eligible``, the
        policy decides among these alone, and all others have probability 0; among eligible choices
        that the model does not know, the decision is uniform.
        """
        active = self.model.active
        if eligible is not None:
            active = tuple(
                tuple(choice for choice in known if choice in asked)
                for known, asked in zip(active, eligible, strict=True)
            )
            if not all(active):
                return self._uniform(eligible, len(context))
        seen = self.model.standardization.apply(context.astype(np.float64))[None]
        places = tuple(
            tuple(known.index(choice) for choice in kept)
            for known, kept in zip(self.model.active, active, strict=True)
        )
        found = probabilities_among(self.policy, self.model.state, seen, places)[0]
        found = np.broadcast_to(found, (len(context), found.shape[1]))
        if found.shape[1] == math.prod(self._sizes):
            return found
        table = np.zeros((len(context), math.prod(self._sizes)))
        table[:, np.ravel_multi_index(np.ix_(*active), self._sizes).ravel()] = found
        return table

    @property
    def _sizes(self) -> tuple[int, ...]:
        return tuple(len(slot.choices) for slot in self.schema.menu.slots)

    def _uniform(self, eligible: ChoiceIndices, rows: int) -> Floats:
        """Return equal probabilities of the eligible joint actions, ``[n, M]``."""
        table = np.zeros(math.prod(self._sizes))
        table[np.ravel_multi_index(np.ix_(*eligible), self._sizes).ravel()] = 1.0
        return np.broadcast_to(table / table.sum(), (rows, len(table)))

    def write(self, path: Path | str) -> None:
        """Write a safetensors file; an existing file is replaced atomically."""
        data = self.to_bytes()
        with atomic_write(Path(path)) as file:
            file.write(data)

    def to_bytes(self) -> bytes:
        """Return the contents of a safetensors file."""
        if self.specification is None:
            raise InputError(
                "a policy that was given as an object cannot be written: give its name or file, "
                "{'kind': 'my_policy.py:MyPolicy'}"
            )
        facts = msgspec.to_builtins(
            {"schema": self.schema, "policy": self.specification, "origin": self.origin}
        )
        return state_bytes((self.model, self.rows), {"learned": facts})

    @classmethod
    def given(cls, learned: "str | Path | Learned") -> "Learned":
        """A learned policy, or the one in the file of this name."""
        return learned if isinstance(learned, Learned) else cls.read(learned)

    @classmethod
    def read(cls, path: Path | str, *, trust: bool = False) -> "Learned":
        """Read a file that ``write`` wrote.

        A file whose policy is user-defined code is refused without ``trust``, since reading it runs
        this code.
        """
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise InputError(f"cannot read the policy {str(path)!r}: {error}") from error
        return cls.from_bytes(data, str(path), trust=trust)

    @classmethod
    def from_bytes(cls, data: bytes, name: str, *, trust: bool = False) -> "Learned":
        """Read what ``to_bytes`` returned; ``name`` is used in messages."""
        facts = _state(data, name, facts_only=True)[1]
        if not isinstance(facts, dict) or "learned" not in facts:
            raise InputError(
                f"{name!r} does not hold a policy that was learned from a log: write one with "
                "Learned.write or submax learn"
            )
        try:
            schema = msgspec.convert(facts["learned"]["schema"], known_type(Schema))
            origin = msgspec.convert(facts["learned"]["origin"], known_type(Origin))
            specification = facts["learned"]["policy"]
        except (msgspec.ValidationError, LookupError, TypeError) as error:
            raise InputError(f"{name!r} is from another version of submax: {error}") from error
        if names_file(specification) and not trust:
            raise InputError(
                f"{name!r} holds a policy from a file, which would be run: if you know the file, "
                "pass trust=True (--trust)"
            )
        with _named(name):
            check_schema(schema)
            policy = make_policy(specification)
        contents, _ = _state(data, name, modules_of(policy))
        with _named(name):
            model, rows = check_contents(contents, schema, policy)
        return cls(schema, specification, policy, model, rows, origin)


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Prefix errors in the block with the name of the file."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{name!r} cannot be used: {error}") from error


def _state(data: bytes, name: str, *arguments: Any, **options: Any) -> tuple[Any, Any]:
    try:
        return read_state(data, *arguments, **options)
    except InputError as error:
        raise InputError(f"{name!r} is damaged or no policy: {error}") from error


def _last(parts: Sequence[Columns], count: int, schema: Schema) -> Columns:
    """Return the last ``count`` rows of all parts, or fewer if these are too many to store."""
    count = min(count, most_rows(schema.context.width))
    kept: list[Columns] = []
    for part in reversed(parts):
        if count <= 0:
            break
        first = max(len(part.reward) - count, 0)
        kept.insert(0, part.rows(slice(first, None)))
        count -= len(part.reward) - first
    slots = len(schema.menu.slots) + len(schema.menu.ranges)
    return Columns.joined(kept) if kept else Columns.empty(schema.context.width, slots)
