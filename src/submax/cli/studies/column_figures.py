"""Draws figures that fit a column of a paper, one for each configuration of a result directory."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from submax.core.errors import InputError
from submax.simulation.figures.plan import Labels, configurations_in
from submax.simulation.figures.study import (
    COLUMN_INCHES,
    StudyStyle,
    selected_configurations,
    study_figure,
)
from submax.simulation.results import read_specification


def draw_columns(
    directory: Path,
    policies: Sequence[str],
    *,
    only: Sequence[str],
    measure: str | None,
    log: bool,
    ribbon: str | None,
    form: str | None,
    width: float | None,
    latex: bool,
) -> Iterator[Path]:
    """Draw the figures and yield their files; what is not given has the default of `StudyStyle`."""
    specification = read_specification(directory)
    style = StudyStyle(
        policies=tuple(policies),
        measure=measure or specification.measure,
        log=log,
        ribbon=ribbon or "ci",
        width=COLUMN_INCHES if width is None else width,
        serif=latex,
    )
    every = configurations_in(directory)
    varying = [key for key in every[0] if len({str(one[key]) for one in every}) > 1]
    folder = directory / "figures"
    folder.mkdir(exist_ok=True)
    for labels in selected_configurations(directory, _wanted(only, every)):
        name = "-".join(["column", *(f"{key}={labels[key]}" for key in varying), style.measure])
        path = folder / f"{name.replace('/', '_').replace(':', '_')}.{form or 'pdf'}"
        study_figure(directory, style, configuration=labels).savefig(path)
        yield path


def _wanted(only: Sequence[str], every: Sequence[Labels]) -> Labels:
    """Return the labels of ``--only KEY=VALUE``, with the types that the results have."""
    wanted: Labels = {}
    for text in only:
        key, sign, value = text.partition("=")
        if not sign or key not in every[0]:
            raise InputError(
                f"--only must be KEY=VALUE with a key of {', '.join(every[0])}, not {text!r}"
            )
        matching = [one[key] for one in every if str(one[key]) == value]
        if not matching:
            allowed = ", ".join(dict.fromkeys(str(one[key]) for one in every))
            raise InputError(f"no configuration has {text}: allowed values are {allowed}")
        wanted[key] = matching[0]
    return wanted
