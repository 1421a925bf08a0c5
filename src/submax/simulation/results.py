"""The result files of an experiment."""

import csv
import io
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from submax._version import __version__
from submax.core.arrays import Floats
from submax.core.decoding import known_type
from submax.core.errors import InputError
from submax.core.numerics import standard_error
from submax.core.optional import require_extra
from submax.core.serialization import PARTIAL, atomic_write
from submax.simulation.experiment import Cell, Labels, Specification
from submax.simulation.trace import Trace

CURVE_TABLE, FINAL_TABLE = "results", "finals"
"""The tables with the curves of every cell, and with the final values of all of its replicas."""
SUMMARY = "summary.csv"
"""The file with one row for each cell."""

Part = Mapping[str, Any]
"""Rows of a table: an array or a list for each column, or one value that all rows have."""


class ResultTable(dict[str, NDArray[Any]]):
    """The columns of a table by name, each an array with one value for each row.

    >>> table = ResultTable({"policy": np.array(["a", "a", "b"]), "regret": np.array([3, 1, 2])})
    >>> table.where({"policy": "a"})["regret"]
    array([3, 1])
    >>> list(table.groups("policy"))
    [('a',), ('b',)]
    """

    @classmethod
    def read(cls, folder: Path, name: str) -> Self:
        path = folder / f"{name}.parquet"
        if not path.exists():
            raise InputError(
                f"{folder} has no {path.name}: repeat the command of the run to write it"
            )
        require_extra("plots", f"reading {path}", "pyarrow")
        import pyarrow.parquet as pq

        table = pq.read_table(path)
        columns = zip(table.column_names, table.columns, strict=True)
        return cls({name: _array(column) for name, column in columns})

    @property
    def labels(self) -> list[str]:
        """The names of the columns before the policy, which describe a configuration."""
        return list(self)[: list(self).index("policy")]

    def where(self, values: Mapping[str, Any]) -> Self:
        """Return the rows that have these values in these columns."""
        if not values:
            return self
        return self._taken(np.all([self[name] == value for name, value in values.items()], axis=0))

    def groups(self, *names: str) -> dict[tuple[Any, ...], Self]:
        """Return the rows of each combination of values in some columns, in order."""
        rows: dict[tuple[Any, ...], list[int]] = {}
        for row, values in enumerate(zip(*(self[name].tolist() for name in names), strict=True)):
            rows.setdefault(values, []).append(row)
        return {values: self._taken(np.array(chosen)) for values, chosen in rows.items()}

    def by_policy(self) -> dict[str, Self]:
        return {name: rows for (name,), rows in self.groups("policy").items()}

    def _taken(self, rows: Any) -> Self:
        return type(self)({name: column[rows] for name, column in self.items()})


def _array(column: Any) -> NDArray[Any]:
    """The values of a column; texts, and missing values as None, are objects."""
    if column.null_count or str(column.type) == "string":
        return np.array(column.to_pylist(), dtype=object)
    return np.asarray(column.to_numpy())


def write_table(folder: Path, name: str, parts: Sequence[Part]) -> None:
    """Write all parts as one table of a result folder; a file with the same content is kept."""
    require_extra("plots", "writing results", "pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = []
    for part in parts:
        many = {key: pa.array(values) for key, values in part.items() if np.ndim(values)}
        size = len(next(iter(many.values())))
        columns = {
            key: many[key] if key in many else pa.repeat(value, size) for key, value in part.items()
        }
        tables.append(pa.table(columns))
    content, path = io.BytesIO(), folder / f"{name}.parquet"
    joined = pa.concat_tables(tables, promote_options="permissive")
    pq.write_table(joined, content, compression="zstd")
    # Figures that are older than the tables are drawn again.
    if not path.exists() or path.read_bytes() != content.getvalue():
        with atomic_write(path) as file:
            file.write(content.getbuffer())


def configurations_in(directory: Path) -> list[Labels]:
    """The labels of all configurations that have results."""
    table = ResultTable.read(directory, CURVE_TABLE)
    return [dict(zip(table.labels, one, strict=True)) for one in table.groups(*table.labels)]


def varying_labels(configurations: Sequence[Labels]) -> list[str]:
    """The labels with more than one value among environments of the same kind, and the kind."""
    kinds: dict[Any, list[Labels]] = {}
    for labels in configurations:
        kinds.setdefault(labels.get("environment"), []).append(labels)
    return [
        key
        for key in configurations[0]
        if (key == "environment" and len(kinds) > 1)
        or any(len({str(labels[key]) for labels in group}) > 1 for group in kinds.values())
    ]


QUANTILES = (0.025, 0.975)
"""The ends of the central 95 % range over replicas."""
LATE_SHARE = 0.9
"""The share of a run after which its late part begins, over which the slope of regret is taken."""


def curve_of(values: Floats) -> dict[str, Floats]:
    """Mean, central 95 % range and standard error over replicas: ``[R, P]`` to ``[P]`` each."""
    low, high = np.quantile(values, QUANTILES, axis=0)
    count = len(values)
    error = values.std(axis=0, ddof=min(1, count - 1)) / np.sqrt(count)
    return {"mean": values.mean(axis=0), "q025": low, "q975": high, "error": error}


def late_slope(trace: Trace) -> Floats:
    """The mean regret per decision from 90 % of the decisions to the last, in each replica."""
    last = len(trace.steps) - 1
    first = min(int(np.searchsorted(trace.steps, LATE_SHARE * trace.steps[last])), last)
    added = trace.accumulated_regret[:, last] - trace.accumulated_regret[:, first]
    return added / max(int(trace.steps[last] - trace.steps[first]), 1)


def summarized(trace: Trace, **facts: Any) -> dict[str, dict[str, Any]]:
    """The result of a cell: columns of the tables of curves and finals, and its row of the summary.

    The curves are over replicas, the finals have a value for each of them.
    """
    curves = {
        f"{measure}_{name}": values
        for measure in ("regret", "reward")
        for name, values in curve_of(getattr(trace, f"accumulated_{measure}")).items()
    }
    final, earned = trace.final_regret, trace.final_reward
    low, high = np.quantile(final, QUANTILES).tolist()
    return {
        CURVE_TABLE: {"step": trace.steps, **curves},
        FINAL_TABLE: {
            "replica": np.arange(len(final)),
            "regret": final,
            "reward": earned,
            "late_slope": late_slope(trace),
        },
        SUMMARY: {
            "replicas": len(final),
            "observations": int(trace.steps[-1]),
            "final_mean": float(final.mean()),
            "final_standard_error": standard_error(final),
            "final_q025": low,
            "final_q975": high,
            "final_reward_mean": float(earned.mean()),
            "final_reward_standard_error": standard_error(earned),
            **facts,
        },
    }


def write_results(directory: Path, finished: Sequence[tuple[Cell, Any]]) -> None:
    """Write the curves, the final values of all replicas, and one summary row for each cell."""
    # Environments of several kinds have different labels; delay stays the last one.
    names = dict.fromkeys(name for cell, _ in finished for name in cell.labels if name != "delay")
    curves, finals, rows = (
        [
            {name: cell.labels.get(name) for name in (*names, "delay")}
            | {"policy": cell.policy_name}
            | found[part]
            for cell, found in finished
        ]
        for part in (CURVE_TABLE, FINAL_TABLE, SUMMARY)
    )
    write_table(directory, CURVE_TABLE, curves)
    write_table(directory, FINAL_TABLE, finals)
    write_csv(directory / SUMMARY, rows)


class CellStore:
    """A folder with one file for each finished cell, each file written atomically.

    A result is plain data with arrays, which are lists when they are read again.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def finished(self, key: str) -> bool:
        with suppress(OSError, msgspec.DecodeError):
            self.read(key)
            return True
        return False

    def keys(self) -> set[str]:
        """The keys of all cells in the folder, of whatever experiment."""
        return {path.stem for path in self._directory.glob("*.msgpack")}

    def write(self, key: str, result: Any) -> None:
        """Store a result; after a crash the file is the old or the new one, never a partial one."""
        self._directory.mkdir(parents=True, exist_ok=True)
        with atomic_write(self._path(key)) as file:
            file.write(msgspec.msgpack.encode(result, enc_hook=lambda array: array.tolist()))

    def read(self, key: str) -> Any:
        return msgspec.msgpack.decode(self._path(key).read_bytes())

    def _path(self, key: str) -> Path:
        return self._directory / f"{key}.msgpack"


ESTIMATES = "estimates.csv"
"""The estimates of an experiment on logs beside the truth."""
MANIFEST = "manifest.json"
"""The file with the specification, versions and times of an experiment."""
VERSIONED = ("numpy", "scipy", "pyarrow", "matplotlib", "jax", "equinox", "optax", "scikit-learn")
"""Packages on which results can depend: the manifest has the versions of those installed."""


def check_directory(directory: Path, specification: Specification) -> None:
    """Refuse a directory with other contents; nothing is written."""
    require_extra("plots", "writing results", "pyarrow")
    if not directory.exists() or all(path.suffix == PARTIAL for path in directory.iterdir()):
        return
    if not (directory / MANIFEST).is_file():
        raise InputError(f"{directory} contains other files than results: choose another --out")
    held = read_manifest(directory)["specification"]
    # The title is compared last, because it often differs together with another value.
    for key, value in sorted(_plain(specification).items(), key=lambda item: item[0] == "title"):
        if held.get(key) != value:
            raise InputError(
                f"{directory} has results of another experiment, with {key} = "
                f"{_short(held.get(key))} instead of {_short(value)}: choose another --out, or "
                "remove the directory"
            )


def claim_directory(directory: Path, specification: Specification) -> None:
    """Create the directory with a manifest, or check that it belongs to the experiment."""
    check_directory(directory, specification)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if not (directory / MANIFEST).exists():
            _write_manifest(directory, specification, started=_now(), finished=None)
    except OSError as error:
        raise InputError(
            f"cannot write to {directory}: {error.strerror}; choose another --out"
        ) from error


def close_directory(directory: Path, specification: Specification, seconds: float) -> None:
    """Write into the manifest that all results are there, and how long the run took."""
    started = read_manifest(directory).get("started")
    done = {"finished": _now(), "seconds": round(seconds, 2)}
    _write_manifest(directory, specification, started=started, **done)


def read_manifest(directory: Path) -> dict[str, Any]:
    """Read the manifest of a result directory."""
    path = directory / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or error
        found = sorted(directory.glob(f"*/{MANIFEST}"))
        example = f"such as {found[0].parent}" if found else "which is inside the --out of a run"
        raise InputError(
            f"{directory} is not a directory with results: {path} cannot be read: "
            f"{reason}; give the folder of one experiment, {example}"
        ) from error
    if not (isinstance(manifest, dict) and isinstance(manifest.get("specification"), dict)):
        raise InputError(f"{path} was not written by submax; choose another directory")
    return manifest


def read_specification(directory: Path) -> Specification:
    """The experiment whose results are in the directory; an unfinished one is refused."""
    manifest = read_manifest(directory)
    if not manifest.get("finished"):
        raise InputError(
            f"the run in {directory} is not finished: repeat its command to continue it"
        )
    try:
        return msgspec.convert(manifest["specification"], known_type(Specification))
    except msgspec.ValidationError as error:
        raise InputError(
            f"the specification in {directory / MANIFEST} cannot be read: {error}; run "
            "the experiment again with another --out"
        ) from error


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows, all with the keys of the first one, as a CSV file."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    with atomic_write(path) as file:
        file.write(text.getvalue().encode())


def read_csv(path: Path) -> list[dict[str, str]]:
    """Read the rows of a CSV file, as texts."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _write_manifest(directory: Path, specification: Specification, **facts: Any) -> None:
    versions = {"submax": __version__, "python": platform.python_version()}
    for name in VERSIONED:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    # None if submax does not run from its repository.
    root = Path(__file__).parents[3]
    in_repository = (root / "src" / "submax").is_dir()
    commit = _said("git", "-C", str(root), "rev-parse", "HEAD") if in_repository else ""
    manifest = {
        "specification": _plain(specification),
        "seed": specification.seed,
        **facts,
        "versions": versions,
        "commit": commit.strip() or None,
        "machine": machine(),
    }
    with atomic_write(directory / MANIFEST) as file:
        file.write((json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode())


def machine() -> str:
    """The cores, the system and the GPUs of this machine, in words that a page can repeat."""
    gpus = _said("nvidia-smi", "--query-gpu=name", "--format=csv,noheader").splitlines()
    return ", ".join([f"{os.cpu_count()} cores {platform.machine()}", platform.system(), *gpus])


def _said(*command: str) -> str:
    """What a command prints; nothing if it is missing or fails."""
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
        return done.stdout
    return ""


def record_run(results: Path) -> None:
    """Write which command makes a file of results, and where: ``NAME.run.json`` beside it."""
    run = {
        "command": f"python {' '.join(sys.orig_argv[1:])}",
        "version": __version__,
        "date": _now()[:10],
        "machine": machine(),
    }
    text = json.dumps(run, indent=1, ensure_ascii=False) + "\n"
    results.with_suffix(".run.json").write_text(text, encoding="utf-8")


def _plain(specification: Specification) -> dict[str, Any]:
    return json.loads(msgspec.json.encode(specification))


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
