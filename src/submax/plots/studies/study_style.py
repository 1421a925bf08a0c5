"""How a figure of a study looks: its measure, scale, ribbons, order, colours and size."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from submax.core.checks import one_of, positive

MEASURES = ("regret", "reward")
RIBBONS = ("ci", "range", "none")
COLUMN_INCHES = 3.3
"""The width of a column in a paper of two columns, in inches."""


@dataclass(frozen=True)
class StudyStyle:
    """What a figure shows and how large it is.

    - ``policies``: the names to draw, in this order; all if empty.
    - ``measure``: "regret" or "reward", accumulated.
    - ``log``: decisions on a logarithmic axis, on which a regret of c ln t is a straight line.
    - ``ribbon``: "ci" for the 95 % confidence interval of the mean, "range" for the central 95 % of
      replicas, "none" for the means alone.
    - ``width``: inches; the default fits a column of a paper. The height is 0.72 of it.
    - ``colours``: colours of matplotlib by policy.
    - ``serif``: the fonts of LaTeX, which matplotlib contains; LaTeX need not be installed.
    """

    policies: tuple[str, ...] = ()
    measure: str = "regret"
    log: bool = False
    ribbon: str = "ci"
    width: float = COLUMN_INCHES
    colours: Mapping[str, str] = field(default_factory=dict)
    serif: bool = False

    def __post_init__(self) -> None:
        one_of("measure", self.measure, MEASURES)
        one_of("ribbon", self.ribbon, RIBBONS)
        positive("width", self.width)

    def settings(self) -> dict[str, Any]:
        """Return the settings of matplotlib for the fonts."""
        if not self.serif:
            return {}
        # A font by its own name is kept by the texts of a figure that is saved later.
        return {
            "font.family": "cmr10",
            "mathtext.fontset": "cm",
            "axes.formatter.use_mathtext": True,
            "axes.unicode_minus": False,
        }
