"""Reads the log that is given on the command line."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from submax.cli.logs.given_policies import common_schema, learned_among
from submax.core.errors import InputError
from submax.evaluation.logs.log import Log
from submax.evaluation.parts.parted_log import PartedLog
from submax.evaluation.reading.declaration_file import read_declaration
from submax.evaluation.report.candidates import Candidate
from submax.schema.schema import Schema

LISTS = ("context", "probability")
"""Roles whose column is always a list, so that a pattern can be given."""


def read_log(
    path: Path,
    columns: Sequence[str],
    declare: Path | None,
    action_features: Path | None,
    skip_bad_rows: bool,
    schema: Schema | None = None,
    opened: Callable[..., Any] = Log.read,
) -> Any:
    """Return the log, opened with the roles of its columns and what a file declares."""
    options = reading_options(columns, declare)
    if action_features is not None:
        if "action_features" in options:
            raise InputError(
                f"action features are given in {str(declare)!r} and by --action-features: leave "
                "one of the two out"
            )
        options["action_features"] = action_features
    return opened(
        path,
        schema=schema,
        skip_bad_rows=skip_bad_rows,
        **options,
    )


def reading_options(columns: Sequence[str], declare: Path | None) -> dict[str, Any]:
    """Return the arguments of ``Log.read`` for the options --column and --declare."""
    declared = {} if declare is None else read_declaration(declare)
    return {"columns": columns_of(columns), **declared}


def read_log_of(
    path: Path, candidates: dict[str, Candidate], reading: dict[str, Any]
) -> Log | PartedLog:
    """Read the log, with the schema of the candidates that are already learned, if any."""
    schema = common_schema(candidates)
    try:
        found: Log | PartedLog = read_log(path, schema=schema, **reading)
        return found
    except InputError as error:
        if schema is None:
            raise
        learned = next(iter(learned_among(candidates)))
        raise InputError(
            f"{error}\n(The log is read with the actions and context of {learned!r}.)"
        ) from error


def columns_of(given: Sequence[str]) -> dict[str, Any]:
    """Return the columns of each role that the options --column name."""
    return dict(column_of(one) for one in given)


def column_of(text: str) -> tuple[str, Any]:
    """Return the role and the column, or columns, of an option --column."""
    role, sign, name = text.partition("=")
    if not sign:
        raise InputError(
            f"--column is {text!r}, and must have the form ROLE=NAME, such as reward=clicked"
        )
    if not name:
        return role, None
    return role, name.split(",") if "," in name or role in LISTS else name
