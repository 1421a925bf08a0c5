"""A policy whose probabilities are columns of the log."""

import fnmatch

import numpy as np

from submax.core.errors import InputError
from submax.core.summary import listed
from submax.evaluation.logs.log import Log
from submax.evaluation.targets.given_probabilities import GivenProbabilities

COLUMNS = "columns="
"""``columns=prob_*`` is the policy whose probability of the action A is the column prob_A."""
ANY = "*"


def check_pattern(pattern: str) -> None:
    """Refuse a pattern without exactly one star, which stands for the name of the action."""
    if pattern.count(ANY) != 1 or any(sign in pattern for sign in "?[]"):
        raise InputError(
            f"the policy is {COLUMNS}{pattern}; a pattern with one {ANY}, which stands for the "
            f"name of the action, is allowed: write {COLUMNS}prob_{ANY}",
            parameter="policies",
        )


def probability_columns(log: Log, pattern: str) -> GivenProbabilities:
    """Return the policy whose probabilities are the columns that match a pattern.

    The part of a column's name that the star of the pattern stands for is the name of an action.
    Every action of the log needs a column.
    """
    check_pattern(pattern)
    slots = log.schema.menu.slots
    if len(slots) != 1 or log.schema.menu.ranges:
        raise InputError(
            f"{COLUMNS}{pattern} was given, and this log has several slots or real-valued actions; "
            "columns of probabilities are allowed for plain actions: give an array [rows, joint "
            "actions] in Python",
            parameter="policies",
        )
    before, after = (len(part) for part in pattern.split(ANY))
    place = {
        name[before : len(name) - after]: number
        for number, name in enumerate(log.probability_names)
        if fnmatch.fnmatchcase(name, pattern)
    }
    names = [choice.name for choice in slots[0].choices]
    missing, unknown = [one for one in names if one not in place], sorted(set(place) - set(names))
    if missing or unknown or log.probability is None:
        found = f"columns for {listed(list(place))}" if place else "no such column was read"
        raise InputError(
            f"{COLUMNS}{pattern}: {found}, and the actions of the log are {listed(names)}; one "
            "column for each action is allowed: declare all actions, and read the columns with "
            f"columns={{'probability': {pattern!r}}}",
            parameter="policies",
        )
    table = log.probability[:, np.array([place[one] for one in names])]
    return GivenProbabilities(table, f"{COLUMNS}{pattern}")
