"""A policy that was trained on a log, as a file."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats
from submax.core.decoding import known_type
from submax.core.errors import InputError
from submax.core.policy import Policy, probabilities_among
from submax.core.registry import references_user_code
from submax.core.serialization import (
    atomic_write,
    hashed_bytes,
    hashed_facts,
    modules_of,
    read_state,
)
from submax.policies.specification import PolicySpecification
from submax.schema.actions import ChoiceIndices
from submax.schema.model import Model
from submax.schema.rows import Columns
from submax.schema.schema import Schema

MOST_ROWS = 1_000_000
"""Largest number of rows that are stored with a policy; later versions learn from them again."""
MOST_NUMBERS = 2**26
"""Largest number of context numbers in the stored rows, 256 MB as float32. A category takes one
number per value."""


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """Where a policy was learned from: the hash of the ``log``, and how many of its rows.

    The ``rows`` are a ``share`` of the log, either the first ones by time, or random ones by
    ``seed``. ``estimated_propensities`` counts rows whose propensity was estimated.
    """

    log: str
    rows: int
    log_rows: int = 0
    share: float = 1.0
    by: Literal["time", "random"] = "time"
    seed: int = 0
    estimated_propensities: int = 0


class TrainedPolicy(NamedTuple):
    """A policy with the model that it learned from a log.

    ``specification`` is the name or table of the policy; None if no table can describe it.
    ``rows`` are the last rows of the log, from which later versions learn again.
    """

    schema: Schema
    specification: str | dict[str, Any] | None
    policy: Policy[Any]
    model: Model
    rows: Columns
    origin: Provenance

    def __repr__(self) -> str:
        policy = self.specification or self.policy
        return f"Learned({policy!r:.80} from {self.origin.rows} rows)"

    @property
    def ignores_context(self) -> bool:
        """Whether there is a context, and the policy does not look at it."""
        return bool(self.schema.context.width) and not self.policy.traits.uses_context

    @classmethod
    def of(
        cls,
        schema: Schema,
        policy: object,
        parts: Sequence[Columns],
        origin: Provenance,
        keep_rows: int = MOST_ROWS,
    ) -> "TrainedPolicy":
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
        sizes = tuple(len(slot.choices) for slot in self.schema.menu.slots)
        table = np.zeros((len(context), math.prod(sizes)))
        known = self.model.active
        asked = known if eligible is None else eligible
        places = tuple(
            tuple(place for place, choice in enumerate(each) if choice in these)
            for each, these in zip(known, asked, strict=True)
        )
        if not all(places):
            chosen = np.ravel_multi_index(np.ix_(*asked), sizes).ravel()
            table[:, chosen] = 1.0 / len(chosen)
            return table
        seen = self.model.standardization.apply(context.astype(np.float64))[None]
        found = probabilities_among(self.policy, self.model.state, seen, places)[0]
        active = [[each[place] for place in kept] for each, kept in zip(known, places, strict=True)]
        table[:, np.ravel_multi_index(np.ix_(*active), sizes).ravel()] = found
        return table

    def write(self, path: Path | str) -> None:
        data = self.to_bytes()
        with atomic_write(Path(path)) as file:
            file.write(data)

    def to_bytes(self) -> bytes:
        if self.specification is None:
            raise InputError(
                "a policy object cannot be written: give its name or file, {'kind': "
                "'my_policy.py:MyPolicy'}"
            )
        facts = {"schema": self.schema, "policy": self.specification, "origin": self.origin}
        return hashed_bytes((self.model, self.rows), "learned", msgspec.to_builtins(facts))

    @classmethod
    def given(cls, learned: "str | Path | TrainedPolicy") -> "TrainedPolicy":
        """A learned policy, or the one in the file of this name."""
        return learned if isinstance(learned, TrainedPolicy) else cls.read(learned)

    @classmethod
    def read(cls, path: Path | str, *, trust: bool = False) -> "TrainedPolicy":
        """Read a file that ``write`` wrote.

        A file whose policy is user-defined code is refused without ``trust``, since reading it runs
        this code.
        """
        needed = "it holds no learned policy: write one with submax learn"
        facts, policy, (model, rows) = read_with_policy(
            path, "learned", LearnedFacts, needed, trust=trust
        )
        return cls(facts.schema, facts.policy, policy, model, rows, facts.origin)


class PolicyFacts(msgspec.Struct):
    """What a file with the state of a policy says besides its arrays."""

    policy: str | dict[str, Any]


class LearnedFacts(PolicyFacts):
    """What the file of a policy says that was trained on a log."""

    schema: Schema
    origin: Provenance


Facts = TypeVar("Facts", bound=PolicyFacts)


def read_with_policy(
    path: Path | str,
    kind: str,
    facts: type[Facts],
    needed: str,
    *,
    trust: bool,
    given: Policy[Any] | None = None,
) -> tuple[Facts, Policy[Any], Any]:
    """Return the facts, the policy and the state of a file that ``hashed_bytes`` wrote.

    The facts name the policy. If it is user-defined, its code is run only with ``trust``, unless
    the policy is ``given`` as an object. ``needed`` says what is wrong with a file of another kind.
    """
    try:
        data = Path(path).read_bytes()
        found = msgspec.convert(hashed_facts(data, kind, needed), known_type(facts))
        written = PolicySpecification.of(found.policy)
        if given is not None and PolicySpecification.of(given) != written:
            raise InputError(
                f"its policy is {written.data!r:.200}, and {given!r:.80} was given: give the "
                "policy that was written"
            )
        if given is None and references_user_code(written.data) and not trust:
            raise InputError(
                f"its policy {written.data!r:.200} names code outside submax, which would be run: "
                "if you know this code, pass trust=True (--trust)"
            )
        policy = given or written.build()
        return found, policy, read_state(data, modules_of(policy))[0]
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"cannot read {str(path)!r}: {reason}: check the path") from error
    except (TypeError, ValueError) as error:
        raise InputError(f"{str(path)!r} cannot be used: {error}") from error


def _last(parts: Sequence[Columns], count: int, schema: Schema) -> Columns:
    """Return the last ``count`` rows of all parts, or fewer if these are too many to store."""
    count = min(count, MOST_ROWS, MOST_NUMBERS // max(schema.context.width, 1))
    kept: list[Columns] = []
    for part in reversed(parts):
        rows = min(count, len(part.reward))
        if rows:
            kept.insert(0, part.rows(slice(len(part.reward) - rows, None)))
        count -= rows
    empty = Columns.empty(schema.context.width, len(schema.menu.parts))
    return Columns.joined([empty, *kept])
