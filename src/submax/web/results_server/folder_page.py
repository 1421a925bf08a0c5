"""Makes the pages that show one result folder, and the list of all."""

import csv
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from submax.core.arrays import Floats
from submax.core.errors import NotFoundError
from submax.core.numerics.standard_error import standard_error
from submax.experiments.comparing.paired_differences import look_up
from submax.experiments.following.cell_progress import seconds_left
from submax.experiments.following.results_folder import ResultsFolder
from submax.experiments.storing.results import SUMMARY
from submax.web.dashboard.formats import machine_time, roughly
from submax.web.results_server import messages as m
from submax.web.results_server.folders import Folders

MOST_POINTS = 60
"""Points of a curve that are sent; a chart of this width shows no more."""
MOST_ROWS = 200
"""Rows of a table that are sent."""
DEVIATIONS = 1.959964
"""Standard errors on each side of a mean within which 95 of 100 means are expected."""
MEASURES = ("regret", "reward")
NOT_KNOWN = "how long the rest takes is not known yet"
CONTINUE = "give its command again, which continues it"


def home(folders: Folders) -> m.ResultsHome:
    """All result folders."""
    return m.ResultsHome(
        folders.root.name, [_row(folders.folder(name)) for name in folders.names()]
    )


def folder_page(folder: ResultsFolder, configuration: str | None, measure: str) -> m.FolderPage:
    """One result folder; without a ``configuration``, its first one."""
    row, described = _row(folder), described_configurations(folder.configurations())
    if configuration is not None and configuration not in described:
        raise NotFoundError(
            f"there is no configuration {configuration!r:.80}: choose one from the list on the "
            f"page of {folder.path.name}"
        )
    chosen = configuration or next(iter(described), "")
    labels = described.get(chosen)
    page = m.FolderPage(
        row.name,
        row.title,
        "sweep" if folder.specification is None else folder.specification.experiment,
        row.state,
        row.sentence,
        [],
        _counts(folder),
        row.done,
        row.total,
        row.seconds_left,
        _started(folder),
        _local(folder.manifest.get("finished")) if row.state == "finished" else "",
        _notes(folder, described),
        measure,
        chosen,
        list(described),
        m.Curves([], []) if labels is None else _curves(folder, labels, measure),
        [] if labels is None else _finals(folder, labels, measure),
        [] if labels is not None else _summary(folder.path),
    )
    # Damage is found while files are read, and so is known only now.
    page.problems.extend(folder.problems)
    return page


def described_configurations(found: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The configurations by a text of the labels that differ between them."""
    if not found:
        return {}
    varying = [key for key in found[0] if len({str(one.get(key)) for one in found}) > 1]
    return {
        ", ".join(f"{key} = {one.get(key)}" for key in varying) or "the only configuration": one
        for one in found
    }


def _row(folder: ResultsFolder) -> m.FolderRow:
    counts = _counts(folder)
    done, total = counts.get("done", 0), sum(counts.values())
    left = seconds_left(folder.cells) if folder.going else None
    state = folder_state(folder)
    specification = folder.specification
    title = "" if specification is None else specification.title
    sentence = _sentence(state, folder, done, total, left)
    return m.FolderRow(folder.path.name, title, state, sentence, done, total, left)


def folder_state(folder: ResultsFolder) -> m.State:
    """What has become of the run that writes to a folder."""
    if folder.going:
        return "running"
    if not folder.manifest:
        return "damaged"
    if any(one.status == "failed" for one in folder.cells) or folder.ended == "failed":
        return "failed"
    if folder.ended:
        return "stopped"
    return "finished" if folder.finished else "unfinished"


def _sentence(
    state: m.State, folder: ResultsFolder, done: int, total: int, left: float | None
) -> str:
    if state == "running" and total and done == total:
        return f"All {total:,} cells are done, and the result files are being written."
    if state == "running":
        rest = f"about {roughly(left)} are left" if left is not None else NOT_KNOWN
        return f"{done:,} of {total:,} cells are done, and {rest}."
    if state == "stopped" and folder.ended == "silent":
        return (
            f"The process of the run has ended without a word after {done:,} of {total:,} cells, "
            f"perhaps because memory ran out: {CONTINUE}."
        )
    return {
        "damaged": "The manifest of this folder cannot be read, so that nothing is known of it.",
        "failed": f"A cell failed, and {done:,} of {total:,} cells are done: correct what the "
        f"error below says, then {CONTINUE}.",
        "stopped": f"The run was stopped after {done:,} of {total:,} cells: {CONTINUE}.",
        "unfinished": f"The run is not finished, and nothing writes to this folder: {CONTINUE}.",
        "finished": f"All results are written, of {done:,} cells."
        if done
        else "All results are written.",
    }[state]


def _counts(folder: ResultsFolder) -> dict[str, int]:
    """The numbers of cells by status; all are done if no run is recorded."""
    if not folder.cells:
        stored = folder.stored_cells()
        return {"done": stored} if stored else {}
    words = ("done", "running", "failed", "damaged", "waiting")
    found = {word: sum(one.status == word for one in folder.cells) for word in words}
    if not folder.going:
        # Without a process nothing runs, whatever an old note says.
        found["waiting"] += found.pop("running")
    return {word: count for word, count in found.items() if count or word == "done"}


def _notes(folder: ResultsFolder, described: dict[str, dict[str, Any]]) -> list[m.CellNote]:
    """The cells about which there is something to say."""
    where = {tuple(labels.items()): text for text, labels in described.items()}
    words = ("failed", "damaged", "running") if folder.going else ("failed", "damaged")
    found = [one for word in words for one in folder.cells if one.status == word]
    return [
        m.CellNote(
            one.cell.policy,
            where[tuple(one.cell.labels.items())],
            one.status,
            one.seconds,
            one.error,
        )
        for one in found[:MOST_ROWS]
    ]


def _curves(folder: ResultsFolder, labels: dict[str, Any], measure: str) -> m.Curves:
    found = folder.curves(labels, measure)
    if not found:
        return m.Curves([], [])
    steps, policies = found[0].steps, folder.policies()
    kept = np.unique(np.linspace(0, len(steps) - 1, min(MOST_POINTS, len(steps))).astype(int))
    lines = [
        m.CurveLine(
            one.policy,
            policies.index(one.policy),
            one.mean[kept].tolist(),
            (one.mean - DEVIATIONS * one.error)[kept].tolist(),
            (one.mean + DEVIATIONS * one.error)[kept].tolist(),
        )
        for one in found
        if np.array_equal(one.steps, steps)
    ]
    return m.Curves(steps[kept].tolist(), lines)


def _finals(folder: ResultsFolder, labels: dict[str, Any], measure: str) -> list[m.FinalRow]:
    """The final values of all finished policies, the best first."""
    finals = folder.finals(labels)
    if finals is None:
        return []
    find, rows = look_up(finals, measure), []
    for policy in finals.policies():
        side = find(policy, **labels)
        if side is not None:
            rows.append(_final(policy, side.values))
    return sorted(rows, key=lambda row: row.mean if measure == "regret" else -row.mean)


def _final(policy: str, values: Floats) -> m.FinalRow:
    mean, count = float(values.mean()), len(values)
    if count < 2:
        return m.FinalRow(policy, mean, None, None, None, count)
    error = standard_error(values)
    ends = mean - DEVIATIONS * error, mean + DEVIATIONS * error
    return m.FinalRow(policy, mean, error, *ends, count)


def _summary(path: Path) -> list[dict[str, Any]]:
    """The rows of summary.csv; none if it cannot be read."""
    try:
        with (path / SUMMARY).open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))[:MOST_ROWS]
    except (OSError, ValueError, csv.Error):
        return []
    return [{str(name): _number(text) for name, text in row.items()} for row in rows]


def _number(text: Any) -> float | str:
    try:
        return float(text)
    except (TypeError, ValueError):
        return str(text)


def _started(folder: ResultsFolder) -> str:
    if folder.started is not None:
        return machine_time(folder.started)
    return _local(folder.manifest.get("started"))


def _local(text: Any) -> str:
    """A time of a manifest in the form that pages show in the viewer's zone."""
    try:
        return machine_time(datetime.fromisoformat(str(text)).timestamp())
    except ValueError:
        return ""
