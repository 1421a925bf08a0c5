"""Figures saved as files."""

from pathlib import Path

from matplotlib.figure import Figure

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
