"""The files in a result directory of a sweep."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from submax.core.arrays import Floats

Labels = dict[str, Any]
"""The values of a configuration, by their names."""


def rows_of(file: Path, panel: Labels) -> pa.Table:
    """Read the rows of one configuration."""
    # Not `read_table`, which imports pandas if there is one, and takes half a second for it.
    table = pq.ParquetFile(file).read()
    for key, value in panel.items():
        table = table.filter(pc.equal(table[key], value))
    return table


def specification_in(directory: Path) -> dict[str, Any]:
    """The specification of the experiment, as it is in its manifest."""
    manifest = json.loads((directory / "manifest.json").read_text(encoding="utf-8"))
    specification: dict[str, Any] = manifest["specification"]
    return specification


def configurations_in(directory: Path) -> list[Labels]:
    """The labels of all configurations that have results."""
    schema = pq.read_schema(directory / "results.parquet").names
    # The columns before the policy are the labels of a configuration.
    labels = schema[: schema.index("policy")]
    table = pq.ParquetFile(directory / "results.parquet").read(labels)
    rows = dict.fromkeys(zip(*(table[label].to_pylist() for label in labels), strict=True))
    return [dict(zip(labels, row, strict=True)) for row in rows]


def final_rewards(directory: Path, panel: Labels) -> dict[str, Floats]:
    """The final reward of every replica by policy, in one configuration."""
    table = rows_of(directory / "finals.parquet", panel)
    return {
        name: table.filter(pc.equal(table["policy"], name))["reward"].to_numpy()
        for name in pc.unique(table["policy"]).to_pylist()
    }
