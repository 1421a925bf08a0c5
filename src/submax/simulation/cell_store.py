"""Results of the finished cells of a sweep, on disk."""

import zipfile
from pathlib import Path

import numpy as np

from submax.core.running.whole_file import whole_file
from submax.simulation.cell_result import CellResult, Curve, Seconds


class CellStore:
    """A folder with one ``.npz`` file for each finished cell, each file written atomically."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def finished(self, key: str) -> bool:
        """Whether the cell has a complete result file."""
        path = self._path(key)
        return path.is_file() and zipfile.is_zipfile(path)

    def write(self, key: str, result: CellResult) -> None:
        """Store a result; after a crash the file is the old or the new one, never a partial one."""
        self._directory.mkdir(parents=True, exist_ok=True)
        curves = result.replica_curves
        more = {} if curves is None else {"replica_curves": curves}
        with whole_file(self._path(key)) as file:
            np.savez(
                file,
                steps=result.steps,
                regret=np.stack(result.regret),
                reward=np.stack(result.reward),
                final_regret=result.final_regret,
                final_reward=result.final_reward,
                late_slope=result.late_slope,
                seconds=np.array(result.seconds),
                fallbacks=np.array(result.fallbacks),
                **more,  # type: ignore[arg-type]  # savez takes arrays by any name
            )

    def read(self, key: str) -> CellResult:
        """Return the result of a finished cell."""
        with np.load(self._path(key), allow_pickle=False) as file:
            return CellResult(
                steps=file["steps"],
                regret=Curve(*file["regret"]),
                reward=Curve(*file["reward"]),
                final_regret=file["final_regret"],
                final_reward=file["final_reward"],
                late_slope=file["late_slope"],
                seconds=Seconds(*file["seconds"].tolist()),
                fallbacks=int(file["fallbacks"]),
                replica_curves=file.get("replica_curves"),
            )

    def _path(self, key: str) -> Path:
        return self._directory / f"{key}.npz"
