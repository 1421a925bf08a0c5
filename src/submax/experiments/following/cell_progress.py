"""How far the cells of a run are, and how long the rest takes."""

import time
import zipfile
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
import numpy as np

from submax.experiments.following.noted_run import FAILED, RUNNING
from submax.experiments.following.planned_cell import PlannedCell
from submax.experiments.following.run_record import PROGRESS

Status: TypeAlias = Literal["done", "running", "failed", "damaged", "waiting"]
CELLS = "cells"


class CellProgress(msgspec.Struct, frozen=True):
    """A cell with its ``status``.

    ``seconds`` is how long it took, or has been running; ``error`` is why it failed or cannot be
    read.
    """

    cell: PlannedCell
    status: Status
    seconds: float = 0.0
    error: str = ""


def cell_progress(directory: Path, cells: Sequence[PlannedCell]) -> list[CellProgress]:
    """Look up every cell in a result directory that may be written at the same time."""
    return [_progress(directory, cell) for cell in cells]


def seconds_left(found: Sequence[CellProgress]) -> float | None:
    """Estimate the seconds until all cells are done; None if nothing is known to go by.

    A cell is expected to take as long for each decision as finished cells of the same policy. If
    there is none, as all finished cells, or as long as a cell of the policy has been running if
    this is longer. As many cells run at a time as now.
    """
    done = [one for one in found if one.status == "done"]
    running = [one for one in found if one.status == "running"]
    decisions = sum(one.cell.decisions for one in done)
    if not decisions or not running:
        return None
    overall = sum(one.seconds for one in done) / decisions
    rates = dict(_rates(done))
    for one in running:
        if one.cell.policy not in {other.cell.policy for other in done}:
            so_far = max(rates.get(one.cell.policy, overall), one.seconds / one.cell.decisions)
            rates[one.cell.policy] = so_far

    def expected(one: CellProgress) -> float:
        return rates.get(one.cell.policy, overall) * one.cell.decisions

    rest = [max(expected(one) - one.seconds, 0.0) for one in running]
    waiting = sum(expected(one) for one in found if one.status in ("waiting", "damaged"))
    return max((sum(rest) + waiting) / len(running), *rest)


def _rates(done: Sequence[CellProgress]) -> Iterator[tuple[str, float]]:
    """The seconds for each decision, by policy."""
    for policy in dict.fromkeys(one.cell.policy for one in done):
        of_policy = [one for one in done if one.cell.policy == policy]
        decisions = sum(one.cell.decisions for one in of_policy)
        yield policy, sum(one.seconds for one in of_policy) / decisions


def _progress(directory: Path, cell: PlannedCell) -> CellProgress:
    seconds, missing, damage = 0.0, [], ""
    for key in cell.keys:
        try:
            seconds += _stored_seconds(directory / CELLS, key)
        except FileNotFoundError:
            missing.append(key)
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            damage = f"its file {CELLS}/{key} cannot be read ({error}): it is run again"
    notes = directory / PROGRESS
    for key in missing:
        failed = _text(notes / f"{key}{FAILED}")
        if failed is not None:
            return CellProgress(cell, "failed", error=failed)
        began = _modified(notes / f"{key}{RUNNING}")
        if began is not None:
            return CellProgress(cell, "running", max(time.time() - began, 0.0))
    if damage:
        return CellProgress(cell, "damaged", error=damage)
    return CellProgress(cell, "waiting") if missing else CellProgress(cell, "done", seconds)


def _stored_seconds(folder: Path, key: str) -> float:
    """The seconds that a finished cell took; 0 for a cell on logs, whose file has no times."""
    path = folder / f"{key}.npz"
    try:
        found = path.stat()
    except FileNotFoundError:
        (folder / f"{key}.json").stat()
        return 0.0
    return _read_seconds(str(path), found.st_mtime_ns)


@lru_cache(20_000)
def _read_seconds(path: str, written: int) -> float:
    """The seconds in a file; a file that was ``written`` again is read again."""
    with np.load(path, allow_pickle=False) as file:
        return float(file["seconds"][0])


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _modified(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except OSError:
        return None
