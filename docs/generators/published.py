"""The published results: one folder in docs/results for each experiment that comes with submax.

A folder has the tables of a result directory, ``settings.json`` with the settings they were made
with, and some of its figures. The pages are written from these files.
"""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

from submax.simulation.experiment import GROUPS, experiment_groups
from submax.simulation.results import read_manifest

RESULTS = Path(__file__).parents[1] / "results"
TABLES = ("summary.csv", "statements.csv", "calibration.csv")
SETTINGS = "settings.json"

Rows = list[dict[str, str]]


def group_of(name: str) -> str:
    """The folder of docs/results that has this experiment."""
    return next(GROUPS[group] for group, names in experiment_groups().items() if name in names)


def folder_of(name: str) -> Path:
    """The folder of an experiment's published results."""
    return RESULTS / group_of(name) / name


def publish(results: Path, name: str, figures: dict[str, str], accelerator: str = "") -> None:
    """Copy tables, settings and figures of a finished experiment; nothing if it was not run.

    ``figures`` has patterns of the figures' names in the result directory, and their new names.
    ``accelerator`` is written behind the machine, whose GPU a result directory does not name.
    """
    directory, folder = results / name, folder_of(name)
    if not (directory / "summary.csv").is_file():
        return
    folder.mkdir(parents=True, exist_ok=True)
    for table in TABLES:
        if (directory / table).is_file():
            shutil.copy(directory / table, folder / table)
    manifest = read_manifest(directory)
    settings = {
        "version": manifest["versions"]["submax"],
        "run": {
            "date": str(manifest.get("finished", ""))[:10],
            "machine": ", ".join(filter(None, [manifest.get("machine", ""), accelerator])),
        },
        "specification": manifest["specification"],
    }
    text = json.dumps(settings, indent=1, ensure_ascii=False)
    (folder / SETTINGS).write_text(f"{text}\n", encoding="utf-8")
    for pattern, target in figures.items():
        for figure in (directory / "figures").glob(pattern):
            shutil.copy(figure, folder / target)


def is_published(name: str) -> bool:
    """Whether there are published results of this experiment."""
    return (folder_of(name) / "summary.csv").is_file()


def rows_of(name: str, table: str = "summary") -> Rows:
    """The rows of a published table; none if the experiment has no such table."""
    path = folder_of(name) / f"{table}.csv"
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def cell(row: dict[str, str]) -> tuple[str, ...]:
    """The labels of a row and its policy, which are its columns up to the policy."""
    keys = list(row)
    return tuple(row[key] for key in keys[: keys.index("policy") + 1])


def settings_of(name: str) -> dict[str, Any]:
    """The version of submax and the specification that the published results were made with."""
    settings: dict[str, Any] = json.loads((folder_of(name) / SETTINGS).read_text(encoding="utf-8"))
    return settings


def provenance(name: str) -> str:
    """A sentence with the command, the size, the version, the date and the machine of a run."""
    settings = settings_of(name)
    given, run = settings["specification"], settings["run"]
    machine = run["machine"] or "machine not recorded"
    return (
        f"`submax reproduce {name}`: seed {given['seed']}, {given['replicas']} replicas, "
        f"{given['observations']} observations, submax {settings['version']}, "
        f"{run['date']}, {machine} ([data]({group_of(name)}/{name}/summary.csv))."
    )
