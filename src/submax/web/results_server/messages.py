"""What each page shows, which is also its answer in JSON."""

from typing import Any, Literal, TypeAlias

import msgspec

State: TypeAlias = Literal["running", "finished", "stopped", "failed", "unfinished", "damaged"]


class FolderRow(msgspec.Struct, frozen=True):
    """A result folder in the list of all; ``sentence`` says what its state means."""

    name: str
    title: str
    state: State
    sentence: str
    done: int
    total: int
    seconds_left: float | None


class ResultsHome(msgspec.Struct, frozen=True):
    """All result folders below ``root``, the folder that was given."""

    root: str
    folders: list[FolderRow]


class CellNote(msgspec.Struct, frozen=True):
    """A cell that runs, failed or is damaged; ``where`` is its configuration."""

    policy: str
    where: str
    status: str
    seconds: float
    error: str


class CurveLine(msgspec.Struct, frozen=True):
    """The mean of a policy at each step, and the ends of its 95 % interval.

    ``place`` is the policy's place among all policies of the folder, which gives it its colour.
    """

    policy: str
    place: int
    values: list[float]
    low: list[float]
    high: list[float]


class Curves(msgspec.Struct, frozen=True):
    """The curves of all finished policies in one configuration, after some numbers of decisions."""

    steps: list[int]
    lines: list[CurveLine]


class FinalRow(msgspec.Struct, frozen=True):
    """The value of a policy after the last decision, over all replicas.

    The standard ``error`` and the ends of the 95 % interval are absent if there is one replica.
    """

    policy: str
    mean: float
    error: float | None
    low: float | None
    high: float | None
    replicas: int


class FolderPage(msgspec.Struct, frozen=True):
    """A result folder: how far the run is, and what its finished cells say.

    ``kind`` is sweep, offline or illustration, of which only sweeps have curves. ``counts`` has
    the numbers of cells by status. ``table`` is summary.csv, for folders without curves.
    """

    name: str
    title: str
    kind: str
    state: State
    sentence: str
    problems: list[str]
    counts: dict[str, int]
    done: int
    total: int
    seconds_left: float | None
    started: str
    ended: str
    notes: list[CellNote]
    measure: str
    configuration: str
    configurations: list[str]
    curves: Curves
    finals: list[FinalRow]
    table: list[dict[str, Any]]


class PairedDifferenceRow(msgspec.Struct, frozen=True):
    """A difference left − right in one configuration, with its 95 % interval.

    ``p_value`` is corrected for all differences of the page. ``decided`` says that it is below
    0.05.
    """

    where: str
    left: str
    right: str
    difference: float
    low: float | None
    high: float | None
    p_value: float
    decided: bool
    replicas: int
    replicas_needed: int | None


class ComparePage(msgspec.Struct, frozen=True):
    """Policies of one folder, compared replica by replica; ``message`` says why if there are none.

    Of ``total`` differences, ``differences`` are those that are decided most clearly.
    """

    name: str
    title: str
    state: State
    measure: str
    policies: list[str]
    chosen: list[str]
    message: str
    total: int
    differences: list[PairedDifferenceRow]


class FoldersPage(msgspec.Struct, frozen=True):
    """The same policies in two folders; ``how`` says how replicas were compared."""

    folders: list[str]
    left: str
    right: str
    measure: str
    how: str
    cautions: list[str]
    message: str
    total: int
    differences: list[PairedDifferenceRow]


class StatementRow(msgspec.Struct, frozen=True):
    """A statement with its verdict, and the comparison that supports it least."""

    source: str
    quote: str
    text: str
    verdict: str
    summary: str
    closest: str


class StatementsPage(msgspec.Struct, frozen=True):
    """The statements that the results of a folder test; ``message`` says why if there are none."""

    name: str
    title: str
    state: State
    message: str
    statements: list[StatementRow]
