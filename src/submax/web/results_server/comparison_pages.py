"""Makes the pages that compare policies and folders, and that test statements."""

import math
from collections.abc import Sequence
from typing import Any

from submax.core.errors import InputError
from submax.experiments.comparing.folder_differences import compare_folders
from submax.experiments.comparing.paired_differences import PairedDifference, differences
from submax.experiments.following.results_folder import ResultsFolder
from submax.experiments.statements.statement import Statement
from submax.web.dashboard.formats import number
from submax.web.results_server import messages as m
from submax.web.results_server.folder_page import described_configurations, folder_state
from submax.web.results_server.folders import Folders

MOST_DIFFERENCES = 300
"""Differences on one page, those that are decided most clearly."""
SIGNIFICANT = 0.05
"""Corrected p-values below this are marked."""


def compare_page(folder: ResultsFolder, chosen: Sequence[str], measure: str) -> m.ComparePage:
    """Policies of one folder; those of a run under way are compared as far as they are finished."""
    title = "" if folder.specification is None else folder.specification.title
    finals = folder.finals()
    policies = [] if finals is None else finals.policies()
    found: list[PairedDifference] = []
    message = ""
    if finals is None or len(policies) < 2:
        message = "A comparison needs two policies with finished cells."
    elif len(chosen) == 1:
        message = "One policy is chosen: choose another one to compare it with."
    else:
        found = differences(finals, chosen, measure=measure)
        message = "" if found else "No configuration has two of these policies finished yet."
    rows = _rows(found, folder)
    return m.ComparePage(
        folder.path.name,
        title,
        folder_state(folder),
        measure,
        policies,
        list(chosen),
        message,
        len(found),
        rows,
    )


def folders_page(folders: Folders, left: str, right: str, measure: str) -> m.FoldersPage:
    """Two folders; without names, a form to choose them."""
    names = folders.names()
    if not left or not right:
        message = (
            "Choose two folders of the same experiment, such as runs of two versions."
            if len(names) > 1
            else "There are fewer than two result folders here, so that nothing can be compared."
        )
        return m.FoldersPage(names, left, right, measure, "", [], message, 0, [])
    one, other = folders.folder(left), folders.folder(right)
    try:
        found = compare_folders(one, other, measure=measure)
    except InputError as error:
        return m.FoldersPage(names, left, right, measure, "", [], str(error), 0, [])
    how = (
        f"Both runs met the same worlds: {found.paired_replicas:,} replicas are compared pair by "
        "pair."
        if found.paired_replicas
        else "The runs met other worlds, so that they are compared as independent samples "
        "(Welch's t-test)."
    )
    return m.FoldersPage(
        names,
        left,
        right,
        measure,
        how,
        [*found.cautions, *one.problems, *other.problems],
        "",
        len(found.differences),
        _rows(found.differences, one),
    )


def statements_page(folder: ResultsFolder) -> m.StatementsPage:
    """The statements of an experiment with their verdicts."""
    title = "" if folder.specification is None else folder.specification.title
    found = folder.statements()
    message = ""
    if not found:
        message = (
            "This experiment tests no statement: those of the paper do."
            if folder.specification is not None and not folder.specification.statements
            else "No cell is finished yet, so that no statement can be tested."
        )
    rows = [_statement(one) for one in found]
    return m.StatementsPage(folder.path.name, title, folder_state(folder), message, rows)


def _statement(one: Statement) -> m.StatementRow:
    closest = ""
    if one.comparisons:
        least = one.closest
        closest = (
            f"{least.left} {number(least.left_mean)}, {least.right} {number(least.right_mean)}"
            f" ({least.where}); standard error of the difference {number(least.error)}"
        )
    return m.StatementRow(one.source, one.quote, one.text, str(one.verdict), one.summary, closest)


def _rows(found: Sequence[PairedDifference], folder: ResultsFolder) -> list[m.PairedDifferenceRow]:
    """The differences as rows, those that are decided most clearly first if there are many."""
    finals = folder.finals()
    every = folder.configurations() or ([] if finals is None else finals.configurations())
    where = {_key(labels): text for text, labels in described_configurations(every).items()}
    if len(found) > MOST_DIFFERENCES:
        found = sorted(found, key=lambda one: one.p_value)[:MOST_DIFFERENCES]
    return [
        m.PairedDifferenceRow(
            where.get(_key(one.configuration), ""),
            one.left,
            one.right,
            one.difference,
            one.low if math.isfinite(one.low) else None,
            one.high if math.isfinite(one.high) else None,
            one.corrected,
            one.corrected < SIGNIFICANT,
            one.replicas,
            one.replicas_needed,
        )
        for one in found
    ]


def _key(labels: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(value)) for name, value in labels.items())
