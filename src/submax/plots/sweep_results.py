"""The files in a result directory of a sweep."""

import json
from pathlib import Path
from typing import Any

from submax.core.arrays import Floats
from submax.simulation.running.result_table import ResultTable

CURVES, FINALS = "results", "finals"
"""The tables with the curves, and with the final values of all replicas."""

Labels = dict[str, Any]
"""The values of a configuration, by their names."""


def curves_of(directory: Path, panel: Labels) -> ResultTable:
    """Read the curves of all policies in one configuration."""
    return ResultTable.read(directory, CURVES).where(panel)


def specification_in(directory: Path) -> dict[str, Any]:
    """The specification of the experiment, as it is in its manifest."""
    manifest = json.loads((directory / "manifest.json").read_text(encoding="utf-8"))
    specification: dict[str, Any] = manifest["specification"]
    return specification


def configurations_in(directory: Path) -> list[Labels]:
    """The labels of all configurations that have results."""
    table = ResultTable.read(directory, CURVES)
    labels = table.labels
    return [dict(zip(labels, values, strict=True)) for values in table.distinct(*labels)]


def final_rewards(directory: Path, panel: Labels) -> dict[str, Floats]:
    """The final reward of every replica by policy, in one configuration."""
    table = ResultTable.read(directory, FINALS).where(panel)
    return {name: rows["reward"] for name, rows in table.by_policy().items()}
