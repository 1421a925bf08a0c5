"""The trace of a simulation."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from submax.core.arrays import Actions, Floats, Integers
from submax.core.errors import InputError
from submax.core.numerics import standard_error
from submax.core.optional import require_module
from submax.core.serialization import atomic_write
from submax.core.summary import Summary, counted, number

SUMMARY_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""The rows of a printed trace, as shares of its points: close together at the start, where regret
changes most."""


class Trace(NamedTuple):
    """A simulation of R replicas, kept at P of its decisions; the last decision is always kept.

    ``steps [P]`` are the numbers of the kept decisions, counted from 1. ``actions [R, P, S]`` and
    ``rewards [R, P]`` belong to these decisions. ``accumulated_reward`` and
    ``accumulated_regret``, both ``[R, P]``, are sums over all decisions so far, kept or not.
    """

    steps: Integers
    actions: Actions
    rewards: Floats
    accumulated_reward: Floats
    accumulated_regret: Floats

    @property
    def final_regret(self) -> Floats:
        """Accumulated regret of each replica after the last decision, ``[R]``."""
        return self.accumulated_regret[:, -1]

    @property
    def final_reward(self) -> Floats:
        """Accumulated reward of each replica after the last decision, ``[R]``."""
        return self.accumulated_reward[:, -1]

    def save(self, path: Path | str) -> None:
        """Write the trace into an ``.npz`` file, which `Trace.load` reads."""
        with atomic_write(Path(path)) as file:
            np.savez_compressed(file, **self._asdict())

    @classmethod
    def load(cls, path: Path | str) -> "Trace":
        """Read a trace that ``save`` has written."""
        try:
            with np.load(path, allow_pickle=False) as file:
                return cls(*(file[name] for name in cls._fields))
        except (OSError, ValueError, KeyError) as error:
            raise InputError(
                f"{str(path)!r} cannot be read as a trace: {error}; give a file written by "
                "Trace.save"
            ) from error

    def to_pandas(self) -> Any:
        """Return a table of pandas with a row for each replica and kept decision.

        Its columns are ``replica``, ``step``, ``action`` (``action_0`` and so on for several
        slots), ``reward``, ``accumulated_reward`` and ``accumulated_regret``.
        """
        require_module("to_pandas", "pandas")
        import pandas  # type: ignore[import-untyped,unused-ignore]  # optional

        replicas, points, slots = self.actions.shape
        names = ["action"] if slots == 1 else [f"action_{slot}" for slot in range(slots)]
        columns = {
            "replica": np.repeat(np.arange(replicas), points),
            "step": np.tile(self.steps, replicas),
            **dict(zip(names, self.actions.reshape(-1, slots).T, strict=True)),
            "reward": self.rewards.ravel(),
            "accumulated_reward": self.accumulated_reward.ravel(),
            "accumulated_regret": self.accumulated_regret.ravel(),
        }
        return pandas.DataFrame(columns)

    def to_xarray(self) -> Any:
        """Return a data set of xarray with the dimensions replica, step and slot."""
        require_module("to_xarray", "xarray")
        import xarray  # type: ignore[import-not-found,unused-ignore]  # optional

        plane = ("replica", "step")
        return xarray.Dataset(
            {
                "action": ((*plane, "slot"), self.actions),
                "reward": (plane, self.rewards),
                "accumulated_reward": (plane, self.accumulated_reward),
                "accumulated_regret": (plane, self.accumulated_regret),
            },
            coords={"step": self.steps, "replica": np.arange(len(self.rewards))},
        )

    def __repr__(self) -> str:
        replicas, points = self.accumulated_regret.shape
        rows = []
        for place in sorted({max(0, round(share * points) - 1) for share in SUMMARY_SHARES}):
            rows.append([f"{int(self.steps[place]):,}"])
            for values in (self.accumulated_regret[:, place], self.accumulated_reward[:, place]):
                rows[-1] += [number(float(values.mean())), number(standard_error(values), 2)]
        regret, error, reward, reward_error = rows[-1][1:]
        lines = [
            f"Trace of {counted(int(self.steps[-1]), 'decision')} in "
            f"{counted(replicas, 'replica')}, {counted(points, 'point')} kept",
            f"final regret {regret} ± {error}, final reward {reward} ± {reward_error} "
            "(mean ± standard error)",
        ]
        columns = ["decision", "regret", "± s.e.", "reward", "± s.e."]
        return str(Summary(lines, columns, rows, texts=0))
