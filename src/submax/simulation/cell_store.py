"""Finished cells of a sweep, on disk."""

import zipfile
from pathlib import Path

import numpy as np

from submax.core.running.whole_file import whole_file
from submax.simulation.cell_result import CellResult, Curve, Seconds


class CellStore:
    """One file for each finished cell, written whole or not at all."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def finished(self, key: str) -> bool:
        """Whether the cell is there, and whole."""
        path = self._path(key)
        return path.is_file() and zipfile.is_zipfile(path)

    def write(self, key: str, result: CellResult) -> None:
        """Store a finished cell; a crash leaves the old file or the new one, never half of it."""
        self._directory.mkdir(parents=True, exist_ok=True)
        with whole_file(self._path(key)) as file:
            np.savez(
                file,
                steps=result.steps,
                regret=np.stack(result.regret),
                reward=np.stack(result.reward),
                final_regret=result.final_regret,
                final_reward=result.final_reward,
                seconds=np.array(result.seconds),
                fallbacks=np.array(result.fallbacks),
            )

    def read(self, key: str) -> CellResult:
        """A finished cell."""
        with np.load(self._path(key), allow_pickle=False) as file:
            return CellResult(
                steps=file["steps"],
                regret=Curve(*file["regret"]),
                reward=Curve(*file["reward"]),
                final_regret=file["final_regret"],
                final_reward=file["final_reward"],
                seconds=Seconds(*file["seconds"].tolist()),
                fallbacks=int(file["fallbacks"]),
            )

    def _path(self, key: str) -> Path:
        return self._directory / f"{key}.npz"
