"""The methods of the paper: their families, and how their curves look in its figures."""

import re
from typing import NamedTuple


class MethodLook(NamedTuple):
    """Label, colour and dash of a family. Colours are those of Okabe and Ito (2008).

    They can be told apart by colour-blind readers; the dashes differ in black and white.
    """

    label: str
    colour: str
    dash: str | tuple[int, tuple[int, ...]]


SUBMAX = "SubMax"
RANDOM = "random"
FAMILIES: tuple[tuple[str, MethodLook], ...] = (
    (r"random", MethodLook(RANDOM, "#000000", ":")),
    (r"(neural-|climbing-)?epsilon-greedy-.*", MethodLook("ε-greedy", "#E69F00", "--")),
    (r"ucb1", MethodLook("UCB1", "#009E73", "-.")),
    (r"thompson-1-\d+", MethodLook("TS", "#56B4E9", (0, (5, 1, 1, 1)))),
    (r"(climbing-)?dropout-thompson", MethodLook("TS", "#56B4E9", (0, (5, 1, 1, 1)))),
    (r"rcp-optimistic", MethodLook("optimistic", "#CC79A7", (0, (3, 1)))),
    (r"rcp-optimized", MethodLook("optimized", "#0072B2", (0, (8, 2)))),
    (r"rcp-submax", MethodLook(SUBMAX, "#D55E00", "-")),
)
"""The names of the policies of each family, as a regular expression."""
CLASSIC = ("ε-greedy", "UCB1", "TS")


def method_of(policy: str) -> MethodLook | None:
    """Return the family of a policy; None if the policy is not in the paper."""
    for pattern, look in FAMILIES:
        if re.fullmatch(pattern, policy):
            return look
    return None
