"""The result files of a sweep, written from its finished cells."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from submax.core.numerics.standard_error import standard_error
from submax.experiments.running.cells import Cell, Labels
from submax.experiments.storing.directory import write_csv
from submax.simulation.cell_result import QUANTILES, CellResult
from submax.simulation.running.result_table import PARQUET, Part, write_table

CURVE_TABLE, FINAL_TABLE = "results", "finals"
"""The tables with the curves of every cell, and with the final values of all of its replicas."""
RESULTS, FINALS = f"{CURVE_TABLE}{PARQUET}", f"{FINAL_TABLE}{PARQUET}"
"""The files of these tables; without pyarrow they are CSV files."""
SUMMARY = "summary.csv"
"""The file with one row for each cell."""


class FinishedCell(NamedTuple):
    """A cell and its result."""

    cell: Cell
    result: CellResult


def write_results(directory: Path, finished: Sequence[FinishedCell]) -> None:
    """Write the curves, the final values of all replicas, and one summary row for each cell."""
    write_table(directory, CURVE_TABLE, [_curves(*one) for one in finished])
    write_table(directory, FINAL_TABLE, [_finals(*one) for one in finished])
    write_csv(directory / SUMMARY, [_summary(*one) for one in finished])


def _curves(cell: Cell, result: CellResult) -> Part:
    columns: dict[str, Any] = {"step": result.steps}
    for measure in ("regret", "reward"):
        for name, values in getattr(result, measure)._asdict().items():
            columns[f"{measure}_{name}"] = values
    return _labelled(cell, columns)


def _finals(cell: Cell, result: CellResult) -> Part:
    return _labelled(
        cell,
        {
            "replica": np.arange(len(result.final_regret)),
            "regret": result.final_regret,
            "reward": result.final_reward,
            "late_slope": result.late_slope,
        },
    )


def _summary(cell: Cell, result: CellResult) -> Labels:
    final = result.final_regret
    low, high = np.quantile(final, QUANTILES)
    return {
        **cell.labels,
        "policy": cell.policy_name,
        "replicas": len(final),
        "observations": cell.observations,
        "final_mean": float(final.mean()),
        "final_standard_error": standard_error(final),
        "final_q025": float(low),
        "final_q975": float(high),
        "final_reward_mean": float(result.final_reward.mean()),
        "final_reward_standard_error": standard_error(result.final_reward),
        "fallbacks": result.fallbacks,
        "seconds": round(result.seconds.all, 4),
        "deciding_seconds": round(result.seconds.deciding, 4),
        "training_seconds": round(result.seconds.training, 4),
        "compiling_seconds": round(result.seconds.compiling, 4),
    }


def _labelled(cell: Cell, columns: dict[str, Any]) -> Part:
    """The columns, after those of the configuration and the policy."""
    return {**cell.labels, "policy": cell.policy_name, **columns}
