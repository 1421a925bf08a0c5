"""Policies that are evaluated on a log: learned ones, their variants, and those given otherwise."""

import copy
import dataclasses
import fnmatch
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.checks import did_you_mean, whole_number
from submax.core.errors import InputError, one_line
from submax.core.numerics import sharpened
from submax.core.policy import Policy
from submax.core.summary import listed
from submax.evaluation.disk import IN_MEMORY
from submax.evaluation.log import By, Log, data_frame, divided, expanded
from submax.evaluation.propensities import ChoiceModel, random_rows
from submax.evaluation.reward_models import FoldModel, chosen_models
from submax.models.training_settings import Training, most_steps
from submax.policies import make_policy
from submax.policies.greedy_regression import Tempered
from submax.policies.specification import table_of
from submax.schema.context import Category
from submax.schema.schema import Schema
from submax.schema.trained_policy import MOST_ROWS, Provenance, TrainedPolicy


def refused(sentence: str) -> InputError:
    """Return the error about a policy that cannot be evaluated."""
    return InputError(sentence, parameter="policies")


class TargetPolicy(ABC):
    """Gives the probability of every joint action in every row of a log.

    ``name`` is that in tables, unless the caller gives one.
    """

    name: str

    @property
    def learns(self) -> bool:
        """Whether the policy still has to learn from a part of the log."""
        return False

    @property
    def base(self) -> TrainedPolicy | None:
        """The learned policy of which this one is a variant, if any."""
        return None

    def learned_from(self, log: Log, seed: int) -> "TargetPolicy":
        """Return the policy after it has learned from the rows of a log."""
        return self

    def in_rows(self, log: Log, numbers: Integers) -> "TargetPolicy":
        """Return the policy for some rows of a log, of which ``numbers`` are the numbers."""
        return self

    @abstractmethod
    def probabilities(
        self, schema: Schema, context: NDArray[np.float32], numbers: Integers
    ) -> Floats:
        """Return the probabilities of all joint actions, ``[n, M]``, the last slot fastest.

        ``context`` is encoded, as in ``Columns``; ``numbers`` are those of the rows in the log.
        """


SIGN, GREEDY, TEMPERATURE = "@", "greedy", "temperature="
"""``linucb@greedy`` is the greedy variant of linucb, ``linucb@temperature=0.5`` another one."""


def parsed_variant(text: str) -> tuple[str, float] | None:
    """Return the policy and the temperature of a text such as ``linucb@greedy``, or None."""
    policy, sign, variant = text.rpartition(SIGN)
    if not sign:
        return None
    if variant == GREEDY:
        return policy, 0.0
    try:
        return policy, float(variant.removeprefix(TEMPERATURE))
    except ValueError:
        raise refused(
            f"the variant of {text!r} is {variant!r}; {GREEDY!r} and '{TEMPERATURE}0.5' are "
            f"allowed: write {policy}{SIGN}{GREEDY}"
        ) from None


SUM_TOLERANCE = 1e-4
"""Difference from 1 up to which the probabilities of a row may add up: they are often rounded."""


def checked_probabilities(given: Any, rows: int, schema: Schema, what: str) -> Floats:
    """Return probabilities ``[n, M]``, or one chosen action for each row as such probabilities.

    They are divided by their sum, which must be 1 up to rounding.
    """
    table = np.asarray(given)
    if table.ndim == 1 and len(table) == rows:
        return _of_choices(table, schema, what)
    size = int(np.prod([len(slot.choices) for slot in schema.menu.slots]))
    if table.shape != (rows, size):
        raise refused(
            f"{what} are of the shape {list(table.shape)}; [{rows}, {size}] is allowed, a row for "
            f"each decision and a column for each action ({_names(schema)}), or the name of one "
            "action for each decision: give an array of this shape"
        )
    table = table.astype(np.float64)
    sums = table.sum(axis=1)
    bad = ~np.isfinite(sums) | (np.abs(sums - 1) > SUM_TOLERANCE) | (table < 0).any(axis=1)
    if bad.any():
        row = int(np.argmax(bad))
        raise refused(
            f"{what}, row {row}: the probabilities are from {table[row].min():g} to "
            f"{table[row].max():g} and add up to {sums[row]:g} ({int(bad.sum())} such "
            "rows): divide each row by its sum"
        )
    result: Floats = table / sums[:, None]
    return result


def action_names(schema: Schema, what: str) -> list[str]:
    """Return the names of plain actions; refuse slots and real-valued actions."""
    if len(schema.menu.slots) != 1 or schema.menu.ranges:
        raise refused(
            f"{what} is for plain actions, but this log has slots or real-valued "
            "actions: name a policy, or give probabilities [rows, joint actions]"
        )
    return [choice.name for choice in schema.menu.slots[0].choices]


def _of_choices(chosen: Any, schema: Schema, what: str) -> Floats:
    names = action_names(schema, what)
    index = {name: place for place, name in enumerate(names)}
    places = [index.get(str(one), -1) for one in chosen.tolist()]
    if -1 in places:
        row = places.index(-1)
        raise refused(
            f"{what}, row {row}: {str(chosen[row])!r} is not an action of the log: give "
            f"one of {listed(names)} for each decision"
        )
    return np.eye(len(names))[places]


def _names(schema: Schema) -> str:
    return listed([choice.name for slot in schema.menu.slots for choice in slot.choices])


def decoded_context(schema: Schema, context: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
    """Return a column for each field: numbers, and the names of categories."""
    columns: dict[str, NDArray[Any]] = {}
    first = 0
    for name, field in zip(schema.context.names, schema.context.fields, strict=True):
        if isinstance(field, Category):
            width = len(field.values)
            code = context[:, first : first + width].argmax(axis=1)
            columns[name] = np.array(field.values, dtype=object)[code]
        else:
            width = 1
            columns[name] = context[:, first].astype(np.float64)
        first += width
    return columns


def check_same_schema(learned: TrainedPolicy, log: Log) -> None:
    """Refuse a policy that was learned for other actions or contexts than those of the log.

    Whether choices are still active makes no difference.
    """
    same_menu = learned.schema.menu.revived == log.schema.menu.revived
    if not same_menu or learned.schema.context != log.schema.context:
        raise refused(
            "the policy was learned for other actions or contexts than this log has: read the "
            "log with its schema, Log.read(..., schema=learned.schema)"
        )


ALWAYS = "always="
"""``always=A`` is the policy that takes the action A in every row."""
EVERY = "*"
"""``always=*`` stands for one such policy for each action of the log."""


class FixedAction(TargetPolicy):
    """π(a | x) = 1 for one action, given by its name."""

    def __init__(self, action: str, schema: Schema) -> None:
        names = action_names(schema, f"{ALWAYS}{action}")
        if action not in names:
            raise refused(
                f"the policy is {ALWAYS}{action}, and the actions of the log are {listed(names)}: "
                f"name one of them, or {ALWAYS}{EVERY} for each{did_you_mean(action, names)}"
            )
        self.name, self.place, self._size = f"{ALWAYS}{action}", names.index(action), len(names)

    def probabilities(
        self, schema: Schema, context: NDArray[np.float32], numbers: Integers
    ) -> Floats:
        table = np.zeros((len(context), self._size))
        table[:, self.place] = 1.0
        return table


def with_every_action(candidates: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """Return policies by name, with one for each action in place of ``always=*``.

    If the caller gave it another name, such as ``mine``, they are called ``mine=A``, ``mine=B``.
    """
    found: dict[str, Any] = {}
    for name, one in candidates.items():
        added = {name: one}
        if isinstance(one, str) and one == ALWAYS + EVERY:
            prefix = ALWAYS if name == one else f"{name}="
            added = {
                f"{prefix}{action}": f"{ALWAYS}{action}" for action in action_names(schema, one)
            }
        for twice in added.keys() & found.keys():
            if not isinstance(found[twice], str) or found[twice] != added[twice]:
                raise refused(f"two policies are called {twice}: give one of them another name")
        found |= added
    return found


class FunctionPolicy(TargetPolicy):
    """A function from columns of context to actions, or to probabilities of all actions.

    The function gets a table from the names of fields to arrays ``[n]`` (numbers, or names of
    categories) and returns the name of an action for each row, or probabilities ``[n, M]``.
    """

    def __init__(self, function: Callable[[dict[str, NDArray[Any]]], Any]) -> None:
        self._function = function
        self.name = getattr(function, "__name__", repr(function))

    def probabilities(
        self, schema: Schema, context: NDArray[np.float32], numbers: Integers
    ) -> Floats:
        found = self._function(decoded_context(schema, context))
        return checked_probabilities(found, len(numbers), schema, f"the results of {self.name}")


class GivenProbabilities(TargetPolicy):
    """A policy with known probabilities ``[N, M]`` of all actions in all N rows of a log."""

    def __init__(self, table: Any, name: str = "given probabilities") -> None:
        self._table, self.name = np.asarray(table), name

    def check_rows(self, rows: int) -> None:
        """Refuse an array that has not one row for each row of the log."""
        if len(self._table) != rows:
            raise refused(
                f"{self.name} has {len(self._table)} rows, but the log has {rows}: compute the "
                "probabilities for all rows, in their order"
            )

    def of_rows(self, numbers: Integers) -> "GivenProbabilities":
        """Return the policy in some of the rows, given by their numbers."""
        return GivenProbabilities(self._table[numbers], self.name)

    def probabilities(
        self, schema: Schema, context: NDArray[np.float32], numbers: Integers
    ) -> Floats:
        return checked_probabilities(self._table[numbers], len(numbers), schema, self.name)


COLUMNS = "columns="
"""``columns=prob_*`` is the policy whose probability of the action A is the column prob_A."""
ANY = "*"


def check_pattern(pattern: str) -> None:
    """Refuse a pattern without exactly one star, which stands for the name of the action."""
    if pattern.count(ANY) != 1 or any(sign in pattern for sign in "?[]"):
        raise refused(
            f"the policy is {COLUMNS}{pattern}: give a pattern with one {ANY}, which "
            f"stands for the action, such as {COLUMNS}prob_{ANY}"
        )


class ColumnPolicy(TargetPolicy):
    """The policy ``columns=PATTERN``: its probability of an action is a column of the log.

    The part of a column's name that the star of the pattern stands for is the name of an action.
    Every action of the log needs a column. The probabilities are known for rows of a log, given to
    ``in_rows``.
    """

    def __init__(self, pattern: str, log: Log) -> None:
        check_pattern(pattern)
        self.name = f"{COLUMNS}{pattern}"
        names = action_names(log.schema, self.name)
        before, after = (len(part) for part in pattern.split(ANY))
        place = {
            name[before : len(name) - after]: number
            for number, name in enumerate(log.probability_names)
            if fnmatch.fnmatchcase(name, pattern)
        }
        if set(place) != set(names) or log.probability is None:
            found = f"columns for {listed(list(place))}" if place else "no such column was read"
            raise refused(
                f"{self.name}: {found}, and the actions of the log are {listed(names)}: "
                "declare all actions, and read a column for each with "
                f"columns={{'probability': {pattern!r}}}"
            )
        self._places, self._numbers = [place[one] for one in names], np.zeros(0, dtype=np.int64)
        self._table: Floats | None = None

    def in_rows(self, log: Log, numbers: Integers) -> "ColumnPolicy":
        found = copy.copy(self)
        found._numbers = numbers
        found._table = None if log.probability is None else log.probability[:, self._places]
        return found

    def probabilities(
        self, schema: Schema, context: NDArray[np.float32], numbers: Integers
    ) -> Floats:
        if self._table is None:
            raise InputError(
                f"{self.name} was asked for probabilities without rows of the log; it knows them "
                "for rows of a log: call in_rows first"
            )
        rows = self._table[np.searchsorted(self._numbers, numbers)]
        return checked_probabilities(rows, len(numbers), schema, self.name)


class ClassifierPolicy(TargetPolicy):
    """π(a | x) is the probability that a fitted classifier gives to the class a.

    If the classifier was fitted to a data frame, it gets a data frame with the same columns.
    Otherwise it gets the encoded context: the fields in their order, categories one-hot.
    """

    def __init__(self, classifier: Any) -> None:
        self._classifier = classifier
        self.name = type(classifier).__name__
        if not hasattr(classifier, "classes_"):
            raise refused(
                f"the policy is a {self.name} that is not fitted: fit it to the actions "
                'first, or let a policy learn with it, {"kind": "reward-conditioned", '
                '"estimator": {"kind": "classifier", …}}'
            )

    def probabilities(
        self, schema: Schema, context: NDArray[np.float32], numbers: Integers
    ) -> Floats:
        names = action_names(schema, self.name)
        classes = [str(one) for one in self._classifier.classes_]
        unknown = [one for one in classes if one not in names]
        if unknown:
            raise refused(
                f"the classes of {self.name} are {listed(classes)}, but the actions of the "
                f"log are {listed(names)}: fit it to the names of actions"
            )
        try:
            found = self._classifier.predict_proba(self._inputs(schema, context))
        except Exception as error:
            raise refused(
                f"{self.name} cannot predict the rows of the log ({one_line(error)}): fit "
                f"it to the columns {listed(schema.context.names)}"
            ) from error
        table = np.zeros((len(context), len(names)))
        table[:, [names.index(one) for one in classes]] = found
        return checked_probabilities(table, len(context), schema, f"probabilities of {self.name}")

    def _inputs(self, schema: Schema, context: NDArray[np.float32]) -> Any:
        columns = getattr(self._classifier, "feature_names_in_", None)
        if columns is None:
            return context.astype(np.float64)
        return data_frame(decoded_context(schema, context))[list(columns)]


REWARD_MODEL = "reward-model"
"""The name of the policy for callers."""


class RewardModelPolicy(TargetPolicy):
    """π(a | x) = 1 for the action with the highest q̂(x, a); ties share the probability.

    q̂ is the mean of the reward models of all folds, fitted to the rows from which policies learn.
    """

    def __init__(
        self, reward_model: Any = None, models: Sequence[FoldModel] = (), name: str = REWARD_MODEL
    ) -> None:
        self._reward_model, self._models, self.name = reward_model, models, name

    @property
    def learns(self) -> bool:
        return not self._models

    def learned_from(self, log: Log, seed: int) -> TargetPolicy:
        choice = chosen_models(log, self._reward_model, seed)
        return RewardModelPolicy(self._reward_model, choice.models, self.name)

    def probabilities(
        self, schema: Schema, context: NDArray[np.float32], numbers: Integers
    ) -> Floats:
        menu = schema.menu.revived
        actions = menu.space(menu.active).listing()
        predicted = np.zeros((len(context), len(actions)))
        powers = np.zeros((len(context), 0))
        for model in self._models:
            features = model.features(context)
            for place, action in enumerate(actions):
                repeated = np.broadcast_to(action, (len(context), len(action)))
                predicted[:, place] += model.predict(features, repeated, powers)
        return sharpened(predicted - predicted.min(axis=1, keepdims=True), 0.0)


FEWEST_PASSES = 10.0
"""Passes over the rows below which a network counts as under-trained. With four passes over 20,000
rows, policies with networks earned 4 to 24 points less than after training to convergence."""


class UnderTrainedWarning(UserWarning):
    """A network was trained on fewer passes over the rows than it needs."""


def training_warnings(policy: Any, rows: int) -> list[str]:
    """Return a sentence for every training of a policy that is too short for this many rows.

    >>> training_warnings(Training(300), 20_000)[0][:47]
    'a network is trained for 300 steps of 256 rows,'
    """
    found = []
    for training in _trainings(policy):
        steps, most = _most_steps(training, rows)
        passes = steps * training.batch / max(rows, 1)
        if passes < FEWEST_PASSES:
            advice = (
                "give a higher learning rate"
                if training.steps == "converged"
                else ("give training.steps=converged")
            )
            found.append(
                f"a network is trained for {most}{steps} steps of {training.batch} rows, "
                f"{passes:.2g} passes over the {rows} rows of the log; at least "
                f"{FEWEST_PASSES:g} are recommended: {advice}"
            )
    return found


def _most_steps(training: Training, rows: int) -> tuple[int, str]:
    """Return the largest number of steps, and words that say whether there may be fewer."""
    if not isinstance(training.steps, str):
        return training.steps, ""
    return int(most_steps(np.array([rows]), training)[0]), "at most "


def _trainings(part: Any) -> Iterator[Training]:
    if isinstance(part, Training):
        yield part
    elif dataclasses.is_dataclass(part) and not isinstance(part, type):
        for field in dataclasses.fields(part):
            yield from _trainings(getattr(part, field.name))


Specification = str | Mapping[str, Any] | Policy[Any]
"""A policy by name (also with a variant, ``linucb@greedy``), as a table, or as an object."""


def learn_one(
    log: Log,
    policy: Specification,
    *,
    share: float = 1.0,
    by: By = "time",
    seed: int = 0,
    keep_rows: int = MOST_ROWS,
) -> TrainedPolicy:
    """Return one policy learned from a log, or from a ``share`` of its rows; see ``learn``."""
    whole_number("keep_rows", keep_rows, at_least=0)
    whole_number("seed", seed, at_least=0)
    policy = without_name(policy)
    made = policy if isinstance(policy, Policy) else make_policy(policy)
    part = expanded(log if share == 1.0 else log.split(share, by, seed)[0])
    if made.traits.needs_propensities:
        part = part.with_estimated_propensities(seed)
    origin = Provenance(
        log=log.fingerprint,
        rows=len(part),
        log_rows=len(log),
        share=share,
        by=by,
        seed=seed,
        estimated_propensities=int(part.estimated.sum()),
    )
    return TrainedPolicy.of(part.schema, policy, part.parts, origin, keep_rows)


def without_name(policy: Specification) -> Specification:
    """Return what ``make_policy`` accepts: no name for reports, and a variant as a table."""
    if isinstance(policy, Mapping):
        return {key: value for key, value in policy.items() if key != "name"}
    variant = parsed_variant(policy) if isinstance(policy, str) else None
    return policy if variant is None else tempered_table(make_policy(variant[0]), variant[1])


def tempered_table(policy: Policy[Any], temperature: float) -> dict[str, Any]:
    """Return the table of a variant of a policy that is sharper or softer."""
    return {"kind": "tempered", "policy": table_of(policy), "temperature": temperature}


def variant_of(learned: TrainedPolicy, temperature: float) -> TrainedPolicy:
    """Return the variant of a learned policy; nothing is learned again."""
    return learned._replace(
        policy=Tempered(learned.policy, temperature),
        specification=tempered_table(learned.policy, temperature),
    )


class Sharpened(TargetPolicy):
    """π'(a | x) ∝ π(a | x)^(1/τ), τ the ``temperature``; 0 is greedy, the most likely action.

    Tied actions share the probability of the greedy one.
    """

    def __init__(self, policy: Any, temperature: float, name: str) -> None:
        self._policy, self._temperature, self.name = policy, temperature, name
        if not temperature >= 0 or not np.isfinite(temperature):
            raise refused(
                f"the temperature of {name} is {temperature!r}: give a number from 0 "
                "(greedy) on; 1 is the policy itself"
            )

    @property
    def learns(self) -> bool:
        return not isinstance(self._policy, (TrainedPolicy, TargetPolicy))

    @property
    def base(self) -> TrainedPolicy | None:
        return self._policy if isinstance(self._policy, TrainedPolicy) else None

    def learned_from(self, log: Log, seed: int) -> TargetPolicy:
        if not self.learns:
            return self
        learned = learn_one(log, self._policy, seed=seed, keep_rows=0)
        return Sharpened(learned, self._temperature, self.name)

    def in_rows(self, log: Log, numbers: Integers) -> TargetPolicy:
        if not isinstance(self._policy, TargetPolicy):
            return self
        return Sharpened(self._policy.in_rows(log, numbers), self._temperature, self.name)

    def probabilities(
        self, schema: Schema, context: NDArray[np.float32], numbers: Integers
    ) -> Floats:
        if isinstance(self._policy, TargetPolicy):
            table = self._policy.probabilities(schema, context, numbers)
        else:
            table = self._policy.probabilities(context)
        return sharpened(table, self._temperature)


class PolicyOfLog(TargetPolicy):
    """The policy that wrote another log, as a model of its choices.

    π(a | x) = softmax(θ · (1, x))[a], fitted to the actions of that log, which was read with the
    schema of the log on which the policy is evaluated: ``Log.read(other, schema=log.schema)``.
    """

    def __init__(self, log: Log, name: str = "other log") -> None:
        action_names(log.schema, name)
        self.name, self._schema = name, log.schema
        row = np.arange(0, len(log), -(-len(log) // MOST_MODELLED))
        chosen = log.action[:, 0].astype(np.int64)
        self._model = ChoiceModel.fitted(log, chosen, log.eligible_choices(0), row)

    def probabilities(
        self, schema: Schema, context: NDArray[np.float32], numbers: Integers
    ) -> Floats:
        if schema.menu != self._schema.menu or schema.context != self._schema.context:
            raise refused(
                f"{self.name} has other actions or another context than the log: read it with the "
                "schema of the log, Log.read(other, schema=log.schema)"
            )
        return self._model.table(context)


MOST_MODELLED = 200_000
"""Rows of another log to which a model of its choices is fitted, evenly spread."""


def split_of(
    log: Log, candidates: Mapping[str, Any], share: float, by: By, seed: int
) -> tuple[Log, Booleans, Integers | None]:
    """Return the log, which of its rows policies learn from, and their numbers for the caller.

    The rows are those of the caller's log and need no numbers (None), unless they stand for several
    decisions: then they may be divided.
    """
    if not any(learns(one) for one in candidates.values()):
        return log, np.zeros(len(log), dtype=bool), None
    found = divided(log, [share, 1 - share], by, seed)
    return found.log, found.part == 0, found.number


def learned_target(candidate: Any, log: Log, first: Booleans, seed: int) -> Any:
    """Return a candidate after it has learned from some rows of a log, if it has to learn."""
    if not learns(candidate):
        return candidate
    rows = np.flatnonzero(first)
    if log.disk is not None:
        # A log on disk may be larger than memory.
        rows = rows[random_rows(len(rows), IN_MEMORY, seed)]
    learning = log.rows(rows)
    if isinstance(candidate, TargetPolicy):
        return candidate.learned_from(learning, seed)
    return learn_one(learning, candidate, seed=seed, keep_rows=0)


def learns(candidate: Any) -> bool:
    """Return whether a candidate has to learn from a part of the log before it is evaluated."""
    if isinstance(candidate, TargetPolicy):
        return candidate.learns
    return not isinstance(candidate, TrainedPolicy)


def policy_notes(name: str, candidate: Any, target: Any, rows: int) -> Iterator[str]:
    """Yield sentences about a policy that has learned from some ``rows`` of a log."""
    if learns(candidate) and not isinstance(candidate, TargetPolicy):
        for sentence in training_warnings(target.policy, rows):
            yield f"{name}: {sentence}"
    learned = target.base if isinstance(target, TargetPolicy) else target
    if learned is None or learned.policy.traits.uses_context:
        return
    if learned.schema.context.width:
        yield f"{name} ignores the context"
