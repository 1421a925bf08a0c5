"""Finds the files of a folder or of a pattern, and joins them into one source."""

from array import array
from collections.abc import Callable, Iterator, Sequence
from glob import has_magic
from pathlib import Path
from typing import Any

from submax.core.errors import InputError
from submax.evaluation.reading.bad_rows import BadRows
from submax.evaluation.reading.sources.source import Source

ENDINGS = (".parquet", ".csv", ".csv.gz", ".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")
"""Endings of the files of a folder that are read; other files are left alone."""
HIDDEN = (".", "_")
"""Files and folders that begin so are not data: ``_SUCCESS``, ``.ipynb_checkpoints``."""


def files_of(source: str | Path) -> list[Path] | None:
    """Return the files of a folder or a pattern such as ``logs/*.parquet``, sorted by their path.

    None if ``source`` is the path of one file, or of none. A file whose name contains a bracket or
    a star is a file, not a pattern.
    """
    path = Path(source)
    if path.is_dir():
        return _in_folder(path)
    if path.exists() or not has_magic(str(source)):
        return None
    base = Path(path.anchor)
    files = sorted(one for one in base.glob(str(path.relative_to(base))) if one.is_file())
    if not files:
        raise InputError(
            f"no file matches {str(source)!r}: check the pattern, and put it into quotes so that "
            "the shell does not replace it"
        )
    return files


def _in_folder(folder: Path) -> list[Path]:
    inside = sorted(path for path in folder.rglob("*") if path.is_file())
    files = [path for path in inside if not _hidden(path.relative_to(folder))]
    read = [path for path in files if path.name.lower().endswith(ENDINGS)]
    if not read:
        raise InputError(
            f"the folder {str(folder)!r} has no file of a log: a log is Parquet, CSV or JSON lines "
            f"({', '.join(ENDINGS)}); name a folder with such files, or one file"
        )
    return read


def _hidden(path: Path) -> bool:
    return any(part.startswith(HIDDEN) for part in path.parts)


def joined_source(name: str, files: Sequence[Path], open_file: Callable[[Path], Source]) -> Source:
    """Return the rows of several files, one after the other, as one source.

    All files need the same columns, in any order. Files are opened one at a time.
    """
    first = open_file(files[0])
    numeric = set(first.numeric)
    for path in files[1:]:
        other = open_file(path)
        _check_same(first, other)
        # A column is a number only if it is one in every file.
        numeric &= other.numeric

    def batches(columns: list[str], bad: BadRows) -> Iterator[Any]:
        before = 0
        for path in files:
            rows, of_file = 0, BadRows()
            for batch in open_file(path).batches(columns, of_file):
                rows += batch.num_rows
                yield batch
            # Rows are counted over all files, as the reader counts them.
            bad.lines.extend(array("q", (before + line for line in of_file.lines)))
            before += rows + len(of_file.lines)

    title = f"{name} ({len(files)} files)"
    return Source(title, first.columns, numeric, first.schema, batches)


def _check_same(first: Source, other: Source) -> None:
    """Refuse a file whose columns, or whose exported schema, differ from those of the first."""
    missing = sorted(set(first.columns) ^ set(other.columns))
    if missing:
        raise InputError(
            f"{first.name} and {other.name} have different columns ({', '.join(missing[:5])}), and "
            "all files of a log need the same: name only files of one kind, such as "
            "'logs/*.parquet'"
        )
    if first.schema != other.schema:
        raise InputError(
            f"{first.name} and {other.name} are exports of bandits with different actions, "
            "contexts or rewards: evaluate them one at a time"
        )
