"""Figures saved as files."""

from pathlib import Path

from matplotlib.figure import Figure

FORMATS = ("png", "pdf")


def saved(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Save a figure as PNG and PDF in a folder, which is created if necessary."""
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{name}.{ending}" for ending in FORMATS]
    for path in paths:
        figure.savefig(path)
    return paths
