"""A policy that was trained on a log, as a file."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats
from submax.core.decoding import known_type
from submax.core.errors import InputError, one_line
from submax.core.policy import Policy, probabilities_among
from submax.core.registry import references_user_code
from submax.core.serialization import atomic_write, modules_of, read_state, state_bytes
from submax.policies import make_policy
from submax.policies.specification import PolicySpecification
from submax.schema.actions import ActionSpec, ChoiceIndices
from submax.schema.context import ContextSchema
from submax.schema.model import Model
from submax.schema.rewards import rewards_of
from submax.schema.rows import Columns, Standardization
from submax.schema.schema import Schema


def check_schema(schema: Schema) -> None:
    """Raise an ``InputError`` unless a user could declare this schema, and can decide with it.

    A file can hold a schema that no declaration gives, such as one with two slots of one name. So
    actions and context are declared again and compared. To decide, every slot needs an active
    choice.
    """
    menu, context = schema.menu, schema.context
    if ActionSpec.of(menu.declaration, menu.features) != menu.revived:
        raise InputError("its actions could not be declared: a slot is named twice or not at all")
    if not all(menu.active):
        raise InputError("its actions have a slot without any active choice")
    table = dict(zip(context.names, context.fields, strict=False))
    if len(context.names) != len(context.fields) or ContextSchema.of(table) != context:
        raise InputError("its context could not be declared: each field has a name of its own")
    rewards_of(schema.rewards)


def check_contents(contents: Any, schema: Schema, policy: Policy[Any]) -> tuple[Model, Columns]:
    """Return the model and the rows, which ``contents`` must be a pair of.

    Raise an ``InputError`` if they do not fit the schema, or if the policy cannot decide with the
    state of the model.
    """
    pair = contents if isinstance(contents, tuple) and len(contents) == 2 else (None, None)
    model, rows = pair
    if not isinstance(model, Model) or not isinstance(rows, Columns):
        raise InputError("it does not hold a model and rows")
    width, menu = schema.context.width, schema.menu
    count = rows.reward.size if isinstance(rows.reward, np.ndarray) else 0
    slots = len(menu.slots) + len(menu.ranges)
    shapes = ((count, width), (count, slots), (count,), (count,))
    for name, shape in zip(rows._fields, shapes, strict=False):
        if not _has_shape(getattr(rows, name), shape):
            raise InputError(f"the column {name} of its rows must have the shape {shape}")
    limits = [(0.0, len(slot.choices) - 1.0) for slot in menu.slots]
    low, high = np.array(limits + [(one.low, one.high) for one in menu.ranges]).T
    whole = rows.action[:, : len(menu.slots)]
    if not ((rows.action >= low) & (rows.action <= high)).all() or (whole % 1).any():
        raise InputError("an action of its rows is not among its actions")
    schema.scale.check(rows.reward)
    columns = model.standardization if isinstance(model.standardization, Standardization) else ()
    if not columns or not all(_has_shape(one, (width,)) for one in columns):
        raise InputError(f"its contexts must be standardized by {width} numbers")
    if not all(np.isfinite(one).all() for one in (rows.context, *columns)):
        raise InputError("a context of its rows is not finite")
    if model.active != menu.active:
        raise InputError("its model is of other choices than the active ones")
    try:
        rng, problem = np.random.default_rng(0), schema.problem
        fresh = policy.init(problem, 1, rng)
        if type(model.state) is not type(fresh) or model.state.problem != fresh.problem:
            raise InputError("its state is of another policy or problem than it says")
        action = policy.act(model.state, np.zeros((1, 1, width)), rng).action
        if not problem.space.contains(action[0]):
            raise InputError("its policy chooses an action that is not among its actions")
    except InputError:
        raise
    except Exception as error:
        # Arrays of wrong shapes can fail anywhere, also in a user-defined policy.
        raise InputError(f"its policy cannot decide: {one_line(error)}") from error
    return model, rows


def _has_shape(column: Any, shape: tuple[int, ...]) -> bool:
    """Whether it is an array of floats of this shape."""
    floats = isinstance(column, np.ndarray) and column.dtype.kind == "f"
    return floats and column.shape == shape


MOST_ROWS = 1_000_000
"""Largest number of rows that are stored with a policy; later versions learn from them again."""
MOST_NUMBERS = 2**26
"""Largest number of context numbers in the stored rows, 256 MB as float32. A category takes one
number per value."""


def most_rows(width: int) -> int:
    """Return how many rows with contexts of this width can be stored with a policy."""
    return min(MOST_ROWS, MOST_NUMBERS // max(width, 1))


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
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
        table = np.zeros(math.prod(self._sizes))
        table[np.ravel_multi_index(np.ix_(*eligible), self._sizes).ravel()] = 1.0
        return np.broadcast_to(table / table.sum(), (rows, len(table)))

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
        facts = msgspec.to_builtins(
            {"schema": self.schema, "policy": self.specification, "origin": self.origin}
        )
        return state_bytes((self.model, self.rows), {"learned": facts})

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
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise InputError(
                f"cannot read the policy {str(path)!r}: {(error.strerror or str(error)).lower()}"
            ) from error
        return cls.from_bytes(data, str(path), trust=trust)

    @classmethod
    def from_bytes(cls, data: bytes, name: str, *, trust: bool = False) -> "TrainedPolicy":
        """Read what ``to_bytes`` returned; ``name`` is used in messages."""
        facts = _state(data, name, facts_only=True)[1]
        if not isinstance(facts, dict) or "learned" not in facts:
            raise InputError(
                f"{name!r} does not contain a learned policy: write one with submax learn"
            )
        try:
            schema = msgspec.convert(facts["learned"]["schema"], known_type(Schema))
            origin = msgspec.convert(facts["learned"]["origin"], known_type(Provenance))
            specification = facts["learned"]["policy"]
        except (msgspec.ValidationError, LookupError, TypeError) as error:
            raise InputError(f"{name!r} is from another version of submax: {error}") from error
        if references_user_code(specification) and not trust:
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
        raise InputError(f"{name!r} is damaged or not a policy: {error}") from error


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
