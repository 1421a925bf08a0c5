"""A cell that a run was asked for, as its record describes it."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from submax.experiments.running.cells import Cell
from submax.experiments.running.replica_blocks import in_blocks


class PlannedCell(msgspec.Struct, frozen=True):
    """One policy in one configuration; ``keys`` are those of its blocks of replicas."""

    policy: str
    labels: dict[str, Any]
    decisions: int
    keys: list[str]


def planned(cells: Iterable[Cell], counts: Sequence[int] = ()) -> list[PlannedCell]:
    """Describe cells; ``counts`` are the numbers of replicas that are run together."""
    found = []
    for cell in cells:
        blocks = in_blocks(cell, counts) if counts else [cell]
        decisions = sum(block.decisions for block in blocks)
        keys = [block.key for block in blocks]
        found.append(PlannedCell(cell.policy_name, cell.labels, decisions, keys))
    return found
