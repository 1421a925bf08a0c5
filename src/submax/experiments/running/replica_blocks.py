"""Replicas that were added to an experiment after it was run."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from submax.core.errors import InputError
from submax.experiments.running.cells import Cell
from submax.experiments.specification import Specification
from submax.experiments.storing.directory import read_manifest
from submax.simulation.cell_result import STORED_NUMBERS, CellResult
from submax.simulation.cell_store import CellStore

BLOCKS = "replica_blocks"
"""The key of the manifest with the size of every replica block, in order."""


def replica_blocks(directory: Path, specification: Specification) -> list[int]:
    """Return the size of every replica block: those in the directory, and the one to be added.

    The replicas that a directory has stay as they are. Further ones are a block of their own, with
    random numbers of their own, so that the first replicas equal those of the smaller run.
    """
    if not (directory / "manifest.json").is_file():
        return [specification.replicas]
    manifest = read_manifest(directory)
    held = manifest.get(BLOCKS) or [manifest["specification"]["replicas"]]
    added = specification.replicas - sum(held)
    if added <= 0:
        return [int(count) for count in held]
    if sum(held) * specification.points > STORED_NUMBERS:
        raise InputError(
            f"{directory} has {sum(held)} replicas with {specification.points} points, and further "
            f"ones can be added to at most {STORED_NUMBERS} numbers of each curve, because above "
            "that the curves of single replicas are not stored: choose a new --out or fewer points"
        )
    return [*held, added]


def in_blocks(cell: Cell, counts: Sequence[int]) -> list[Cell]:
    """Return the cell once for each block of replicas, with the block's number of replicas."""
    found, first = [], 0
    for count in counts:
        found.append(msgspec.structs.replace(cell, replicas=count, first_replica=first))
        first += count
    return found


def merged_result(cell: Cell, counts: Sequence[int], store: CellStore) -> CellResult | None:
    """The result of all replicas of a cell; None if a block is not finished."""
    blocks = in_blocks(cell, counts)
    if not all(store.finished(block.key) for block in blocks):
        return None
    return CellResult.joined([store.read(block.key) for block in blocks])


def all_in_blocks(cells: Iterable[Cell], counts: Sequence[int]) -> list[Cell]:
    """The blocks of all cells."""
    return [block for cell in cells for block in in_blocks(cell, counts)]
