"""The line styles of policies: a family has a colour and a dash, its members differ by marker."""

import io
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from matplotlib import figure as matplotlib_figure
from matplotlib import rc_context


class Figure(matplotlib_figure.Figure):
    """A figure that a notebook shows, also if it was made without ``pyplot``."""

    def _repr_png_(self) -> bytes:
        content = io.BytesIO()
        self.savefig(content, format="png")
        return content.getvalue()


class Look(NamedTuple):
    """Colour, dash, marker and width of a curve."""

    colour: str
    dash: str | tuple[int, tuple[int, ...]]
    marker: str
    width: float = 1.2


LOOKS = {
    "random": Look("#000000", ":", "", 1.4),
    "epsilon-greedy-0.01": Look("#f6a04d", "--", "o"),
    "epsilon-greedy-0.05": Look("#e8861e", "--", "s"),
    "epsilon-greedy-0.1": Look("#c56a00", "--", "^"),
    "epsilon-greedy-0.2": Look("#8f4d00", "--", "v"),
    "ucb1": Look("#2e9e4f", "-.", "o"),
    "ucb1-pending": Look("#0d5c29", "-.", "s"),
    "thompson-1-1": Look("#74a9f7", (0, (5, 1, 1, 1, 1, 1)), "o"),
    "thompson-1-9": Look("#2f6fd6", (0, (5, 1, 1, 1, 1, 1)), "s"),
    "thompson-1-99": Look("#123f8a", (0, (5, 1, 1, 1, 1, 1)), "^"),
    "kl-ucb": Look("#5cb85c", "-.", "^"),
    "kl-ucb-pending": Look("#1f7a1f", "-.", "v"),
    "moss": Look("#8fbf4d", "-.", "D"),
    "moss-pending": Look("#567d1e", "-.", "P"),
    "imed": Look("#3fb8a0", "-.", "X"),
    "imed-pending": Look("#157a66", "-.", "d"),
    "bayes-ucb-1-1": Look("#9d9df0", (0, (5, 1, 1, 1)), "o"),
    "bayes-ucb-1-9": Look("#6a6ad6", (0, (5, 1, 1, 1)), "s"),
    "bayes-ucb-1-99": Look("#3c3c9e", (0, (5, 1, 1, 1)), "^"),
    "bayes-ucb-1-1-pending": Look("#9d9df0", (0, (1, 1)), "o"),
    "bayes-ucb-1-9-pending": Look("#6a6ad6", (0, (1, 1)), "s"),
    "bayes-ucb-1-99-pending": Look("#3c3c9e", (0, (1, 1)), "^"),
    "information-directed-1-1": Look("#d6a3ff", (0, (3, 1, 1, 1)), "o"),
    "information-directed-1-9": Look("#a65be0", (0, (3, 1, 1, 1)), "s"),
    "information-directed-1-99": Look("#6b1fa8", (0, (3, 1, 1, 1)), "^"),
    "posterior-greedy-1-1": Look("#b8b8b8", "--", "o"),
    "posterior-greedy-1-9": Look("#8a8a8a", "--", "s"),
    "posterior-greedy-1-99": Look("#555555", "--", "^"),
    "gradient": Look("#7f7f7f", (0, (3, 3)), "D"),
    "rcp-marginalized": Look("#f0b3cd", "-", "^", 1.4),
    "rcp-optimistic": Look("#e377a4", "-", "v", 1.6),
    "rcp-optimized": Look("#c2266b", "-", "s", 1.6),
    "rcp-submax": Look("#a00000", "-", "", 2.6),
    "rcp-cvae-optimistic": Look("#e377a4", "-", "v", 1.6),
    "rcp-cvae-optimized": Look("#c2266b", "-", "s", 1.6),
    "rcp-cvae-submax": Look("#a00000", "-", "", 2.6),
    "rcp-softmax-submax": Look("#ff5a36", "-", "o", 1.8),
    "rcp-continual-submax": Look("#d98880", "-", "D", 1.6),
    "rcp-autoregressive-optimistic": Look("#f5b7b1", "-", "P", 1.6),
    "rcp-autoregressive-submax": Look("#922b21", "-", "P", 1.8),
    "rcp-denoising-optimistic": Look("#f5cba7", "-", "X", 1.6),
    "rcp-denoising-submax": Look("#ba4a00", "-", "X", 1.8),
    "slate-cvae": Look("#7b241c", (0, (5, 1)), "d"),
    "advantage-conditioned": Look("#bb8fce", (0, (5, 1)), "o"),
    "advantage-conditioned-cvae": Look("#7d3c98", (0, (5, 1)), "s"),
    "bayes-optimistic": Look("#f1948a", (0, (5, 1)), "^"),
    "bayes-submax": Look("#b03a2e", (0, (5, 1)), "v"),
    "policy-gradient": Look("#7fb3d5", (0, (3, 1)), "o"),
    "doubly-robust-gradient": Look("#2e86c1", (0, (3, 1)), "s"),
    "actor-critic": Look("#1b4f72", (0, (3, 1)), "^"),
    "generative-policy-gradient": Look("#5499c7", (0, (3, 1)), "D"),
    "preference-optimization": Look("#48c9b0", (0, (3, 1)), "v"),
    "sample-average-ucb": Look("#82e0aa", "-.", "o"),
    "sample-average-sampling": Look("#28b463", "-.", "s"),
    "variance-network-ucb": Look("#186a3b", "-.", "^"),
    "neural-epsilon-greedy-0.01": Look("#f6a04d", "--", "o"),
    "neural-epsilon-greedy-0.05": Look("#e8861e", "--", "s"),
    "neural-epsilon-greedy-0.1": Look("#c56a00", "--", "^"),
    "neural-epsilon-greedy-0.2": Look("#8f4d00", "--", "v"),
    "climbing-epsilon-greedy-0.01": Look("#f6a04d", "--", "o"),
    "climbing-epsilon-greedy-0.05": Look("#e8861e", "--", "s"),
    "climbing-epsilon-greedy-0.1": Look("#c56a00", "--", "^"),
    "climbing-epsilon-greedy-0.2": Look("#8f4d00", "--", "v"),
    "climbing-dropout-thompson": Look("#2f6fd6", (0, (5, 1, 1, 1, 1, 1)), "s"),
    "neural-ucb": Look("#2e9e4f", "-.", "o"),
    "linucb": Look("#0d5c29", "-.", "s"),
    "neural-thompson": Look("#74a9f7", (0, (5, 1, 1, 1, 1, 1)), "o"),
    "dropout-thompson": Look("#2f6fd6", (0, (5, 1, 1, 1, 1, 1)), "s"),
    "linear-thompson": Look("#123f8a", (0, (5, 1, 1, 1, 1, 1)), "^"),
    "hill-climbing-thompson": Look("#008b8b", (0, (5, 1, 1, 1, 1, 1)), "D"),
    "rcp-adaptive": Look("#1a1a1a", "-", "d", 2.4),
    "rcp-cvae-adaptive": Look("#7a7a7a", (0, (4, 1)), "d", 1.8),
    "rcp-softmax-adaptive": Look("#5a5a5a", "-", "D", 1.8),
    "posterior-submax": Look("#3d3d8f", "-", "p", 1.8),
    "posterior-slots": Look("#3d3d8f", (0, (4, 1)), "h", 1.8),
    "rcp-submax-by-slot": Look("#6e0000", (0, (4, 1)), "h", 2.0),
    "rcp-cvae-submax-by-slot": Look("#6e0000", (0, (4, 1)), "h", 2.0),
    "thompson-fitted": Look("#00a5b5", (0, (5, 1, 1, 1, 1, 1)), "v"),
    "thompson-sharpened": Look("#006d77", (0, (5, 1, 1, 1, 1, 1)), "D"),
    "rcp-iterated-2": Look("#6a2bb0", "-", "*", 2.0),
    "grid-epsilon-greedy-0.1": Look("#c56a00", "--", "P"),
    "grid-thompson-1-1": Look("#74a9f7", (0, (5, 1, 1, 1, 1, 1)), "P"),
    "grid-linear-thompson": Look("#123f8a", (0, (5, 1, 1, 1, 1, 1)), "X"),
    "grid-rcp-submax": Look("#a00000", "-", "P", 2.0),
    "exp3": Look("#b5651d", (0, (3, 1)), "o"),
    "exp3-ix": Look("#7a3f0a", (0, (3, 1)), "s"),
    "discounted-thompson": Look("#74a9f7", (0, (1, 1)), "^"),
    "sliding-window-thompson": Look("#123f8a", (0, (1, 1)), "v"),
    "successive-elimination": Look("#8a8a8a", (0, (3, 1, 1, 1)), "D"),
    "track-and-stop": Look("#555555", (0, (3, 1, 1, 1)), "P"),
    "top-two-thompson": Look("#006d77", (0, (3, 1, 1, 1)), "X"),
    "cascade-ucb": Look("#567d1e", "-.", "*"),
    "cascade-kl-ucb": Look("#2f5d0c", "-.", "X"),
    "relative-ucb": Look("#567d1e", (0, (2, 1)), "o"),
    "double-thompson": Look("#1f4e99", (0, (2, 1)), "s"),
    "boosted-greedy": Look("#8c6d31", (0, (1, 1)), "o"),
    "forest-greedy": Look("#bd9e39", (0, (1, 1)), "s"),
    "trees-greedy": Look("#637939", (0, (1, 1)), "D"),
    "rcp-softmax-converged": Look("#d1495b", "-", "*", 1.8),
    "fourier-thompson": Look("#008b8b", (0, (5, 1, 1, 1, 1, 1)), "p"),
}

_COLOURS = ("#1b9e77", "#d95f02", "#7570b3", "#e7298a", "#66a61e", "#a6761d")
_DASHES = ("-", "--", "-.", ":")
_MARKERS = ("o", "s", "^", "v", "D", "x", "*")


def look_of(name: str, position: int) -> Look:
    """The look of a known policy; any other policy gets one by its position in the figure."""
    if name in LOOKS:
        return LOOKS[name]
    return Look(
        _COLOURS[position % len(_COLOURS)],
        _DASHES[position % len(_DASHES)],
        _MARKERS[position % len(_MARKERS)],
        1.6,
    )


def figure_style() -> AbstractContextManager[None]:
    """Settings for all figures of the library."""
    return rc_context(
        {
            "font.size": 8,
            "axes.titlesize": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.alpha": 0.25,
            "legend.frameon": False,
            "figure.dpi": 150,
            "pdf.fonttype": 42,
        }
    )


FORMATS = ("png", "pdf")
MAX_PIXELS = 3e6
"""The most pixels of a PNG: a figure of many panels is drawn with fewer dots per inch, so that its
file stays below a megabyte."""


def saved(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Save a figure as PNG and PDF in a folder, which is created if necessary."""
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{name}.{ending}" for ending in FORMATS]
    width, height = figure.get_size_inches()
    for path in paths:
        figure.savefig(path, dpi=min(figure.dpi, (MAX_PIXELS / (width * height)) ** 0.5))
        # The layout is computed once: it takes nearly as long as drawing.
        figure.set_layout_engine("none")
    return paths
