"""The file of a log, as Python and commands name it."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from submax.evaluation.logs.log import Log
from submax.evaluation.reading.declaration_file import read_declaration
from submax.recommendation.snippets import python_of


@dataclass(frozen=True)
class LogFile:
    """Where a log is, which columns it has, and the file that declares its values, if any."""

    path: str
    columns: Mapping[str, Any]
    declare: Path | None

    def read(self) -> Log:
        """Read the log."""
        return Log.read(self.path, columns=self.columns, **self._declared())

    @property
    def python(self) -> str:
        """The call that reads the log."""
        words = [python_of(self.path)]
        if self.columns:
            words.append(f"columns={python_of(dict(self.columns))}")
        words += [f"{key}={python_of(value)}" for key, value in self._declared().items()]
        return f"submax.evaluation.Log.read({', '.join(words)})"

    @property
    def words(self) -> str | None:
        """The log and its options in a command; None if --column cannot say the columns."""
        columns = [_column(role, name) for role, name in self.columns.items()]
        if None in columns:
            return None
        options = [word for column in columns if column for word in ("--column", column)]
        if self.declare is not None:
            options += ["--declare", str(self.declare)]
        return shlex.join([self.path, *options])

    def _declared(self) -> dict[str, Any]:
        return {} if self.declare is None else read_declaration(self.declare)


def _column(role: str, name: object) -> str | None:
    """The value of --column for a role; None if it has no such form, as several named rewards."""
    if name is None:
        return f"{role}="
    names = [name] if isinstance(name, str) else name
    if not isinstance(names, list | tuple):
        return None
    if not all(isinstance(one, str) and "," not in one for one in names):
        return None
    return f"{role}={','.join(names)}"
