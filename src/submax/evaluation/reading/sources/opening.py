"""Opens a log: a file, several files, or a table."""

from pathlib import Path
from typing import Any

from submax.evaluation.reading.sources.several_files import files_of, joined_source
from submax.evaluation.reading.sources.source import Source, open_one_file, source_of_table


def open_source(source: Any) -> Source:
    """Open a file, a folder or pattern of files, a data frame, or a table of columns.

    Files are Parquet, CSV or JSON lines; gzip may have compressed the last two.
    """
    if not isinstance(source, (str, Path)):
        return source_of_table(source)
    files = files_of(source)
    if files is None:
        return open_one_file(Path(source))
    return joined_source(str(source), files, open_one_file)
