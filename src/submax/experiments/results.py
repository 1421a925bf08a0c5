"""The result files of a sweep, made from its finished cells."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from submax.experiments.cells import Cell, Labels
from submax.experiments.directory import write_csv
from submax.simulation.cell_result import CellResult

RESULTS = "results.parquet"
FINALS = "finals.parquet"
SUMMARY = "summary.csv"


class Finished(NamedTuple):
    """A cell and what came out of it."""

    cell: Cell
    result: CellResult


def write_results(directory: Path, finished: Sequence[Finished]) -> None:
    """Write the curves, every replica's last value, and one summary row for each cell."""
    _write_parquet(directory / RESULTS, [_curves(*one) for one in finished])
    _write_parquet(directory / FINALS, [_finals(*one) for one in finished])
    write_csv(directory / SUMMARY, [_summary(*one) for one in finished])


def _curves(cell: Cell, result: CellResult) -> pa.Table:
    columns: dict[str, Any] = {"step": result.steps}
    for measure in ("regret", "reward"):
        for name, values in getattr(result, measure)._asdict().items():
            columns[f"{measure}_{name}"] = values
    return _labelled(cell, columns)


def _finals(cell: Cell, result: CellResult) -> pa.Table:
    replica = np.arange(len(result.final_regret))
    return _labelled(
        cell, {"replica": replica, "regret": result.final_regret, "reward": result.final_reward}
    )


def _summary(cell: Cell, result: CellResult) -> Labels:
    final = result.final_regret
    replicas = len(final)
    error = final.std(ddof=1) / np.sqrt(replicas) if replicas > 1 else float("nan")
    low, high = np.quantile(final, [0.025, 0.975])
    return {
        **cell.labels,
        "policy": cell.policy_name,
        "replicas": replicas,
        "observations": cell.observations,
        "final_mean": float(final.mean()),
        "final_standard_error": float(error),
        "final_q025": float(low),
        "final_q975": float(high),
        "seconds": round(result.seconds, 4),
    }


def _labelled(cell: Cell, columns: dict[str, Any]) -> pa.Table:
    """The columns behind those of the configuration."""
    size = len(next(iter(columns.values())))
    labels = {**cell.labels, "policy": cell.policy_name}
    repeated = {key: pa.repeat(value, size) for key, value in labels.items()}
    return pa.table({**repeated, **columns})


def _write_parquet(path: Path, tables: Sequence[pa.Table]) -> None:
    partial = path.with_name(path.name + ".partial")
    joined = pa.concat_tables(tables, promote_options="permissive")
    pq.write_table(joined, partial, compression="zstd")
    partial.replace(path)
