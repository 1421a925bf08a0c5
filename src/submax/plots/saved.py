"""Figures on disk."""

from pathlib import Path

from matplotlib.figure import Figure

FORMATS = ("png", "pdf")


def saved(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Save a figure in a folder, which is made where it is not there, as PNG and PDF."""
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{name}.{ending}" for ending in FORMATS]
    for path in paths:
        figure.savefig(path)
    return paths
