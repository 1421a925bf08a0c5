"""Differences between the results of two folders, for policies that both have."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import scipy

from submax.core.errors import InputError
from submax.core.numerics.standard_error import standard_error
from submax.experiments.comparing.paired_comparison import Finals, Side
from submax.experiments.comparing.paired_differences import (
    PairedDifference,
    corrected,
    look_up,
    paired_difference,
)
from submax.experiments.following.results_folder import ResultsFolder
from submax.experiments.running.replica_blocks import BLOCKS


class FolderComparison(NamedTuple):
    """The differences left − right of every policy in every configuration of both folders.

    ``paired_replicas`` is the number of replicas that met the same worlds in both; 0 if none did,
    and then the folders are compared as independent samples. ``cautions`` are sentences on what
    else differs.
    """

    differences: list[PairedDifference]
    paired_replicas: int
    cautions: list[str]


def compare_folders(
    left: ResultsFolder,
    right: ResultsFolder,
    *,
    measure: str = "regret",
    confidence: float = 0.95,
) -> FolderComparison:
    """Compare the same policies in the same configurations of two folders.

    Replicas are paired if both runs have the same environment, seed and number of replicas that
    were run together, because then they met the same worlds.
    """
    one, other = _finals(left), _finals(right)
    paired = paired_replicas(left.manifest, right.manifest)
    find, find_other = look_up(one, measure), look_up(other, measure)
    both = other.configurations()
    found = []
    for labels in one.configurations():
        for policy in one.policies() if labels in both else []:
            mine, theirs = find(policy, **labels), find_other(policy, **labels)
            if mine is not None and theirs is not None:
                count = min(paired, len(mine.values), len(theirs.values))
                found.append(_difference(labels, mine, theirs, count, confidence))
    if not found:
        raise InputError(
            f"{left.path.name} and {right.path.name} have no policy in the same configuration in "
            "common: compare folders of the same experiment, such as two versions or seeds of it"
        )
    return FolderComparison(corrected(found), paired, list(_cautions(left, right)))


def paired_replicas(left: dict[str, Any], right: dict[str, Any]) -> int:
    """Return how many leading replicas met the same worlds in both runs, by their manifests."""
    if not left or not right:
        return 0
    one, other = left["specification"], right["specification"]
    if one["seed"] != other["seed"] or one["environment"]["kind"] != other["environment"]["kind"]:
        return 0
    total = 0
    for mine, theirs in zip(_blocks(left), _blocks(right), strict=False):
        # Replicas of one block share random numbers, so that blocks of other sizes are others.
        if mine != theirs:
            break
        total += mine
    return total


def _blocks(manifest: dict[str, Any]) -> list[int]:
    return list(manifest.get(BLOCKS) or [manifest["specification"]["replicas"]])


def _finals(folder: ResultsFolder) -> Finals:
    found = folder.finals()
    if found is None:
        raise InputError(
            f"{folder.path.name} has no finished cell to compare: choose another folder, or wait "
            "until one is finished"
        )
    return found


def _difference(
    labels: dict[str, Any], left: Side, right: Side, count: int, confidence: float
) -> PairedDifference:
    if count:
        values = left.values[:count] - right.values[:count]
        return paired_difference(labels, left.name, right.name, values, confidence)
    return independent_difference(labels, left, right, confidence)


def independent_difference(
    labels: dict[str, Any], left: Side, right: Side, confidence: float
) -> PairedDifference:
    """Return the difference of two means of independent replicas, by Welch's t-test.

    Reference: Welch (1947), The generalization of "Student's" problem.
    """
    errors = [standard_error(side.values) for side in (left, right)]
    counts = [len(side.values) for side in (left, right)]
    mean, error = float(left.values.mean() - right.values.mean()), math.hypot(*errors)
    names, replicas = (labels, left.name, right.name), min(counts)
    if replicas < 2:
        ends = -math.inf, math.inf
        return PairedDifference(*names, mean, error, *ends, 1.0, 1.0, replicas, None)
    if not error:
        p_value = 1.0 if mean == 0 else 0.0
        return PairedDifference(*names, mean, error, mean, mean, p_value, 1.0, replicas, None)
    freedom = error**4 / sum(one**4 / (n - 1) for one, n in zip(errors, counts, strict=True))
    reach = float(scipy.stats.t.ppf((1 + confidence) / 2, freedom)) * error
    p_value = float(2 * scipy.stats.t.sf(abs(mean) / error, freedom))
    ends = mean - reach, mean + reach
    return PairedDifference(*names, mean, error, *ends, p_value, 1.0, replicas, None)


def _cautions(left: ResultsFolder, right: ResultsFolder) -> Iterator[str]:
    one, other = left.specification, right.specification
    if one is not None and other is not None and one.observations != other.observations:
        yield (
            f"The runs have {one.observations:,} and {other.observations:,} decisions, so that "
            "their accumulated values differ for this reason alone."
        )
    for folder in (left, right):
        if not folder.finished:
            yield f"{folder.path.name} is not finished: only its finished cells are compared."
