"""Reads lazy frames of polars and relations of DuckDB, of which only some columns are computed."""

from collections.abc import Iterator
from typing import Any

from submax.core.errors import InputError, one_line
from submax.evaluation.reading.sources.arrow_table import arrow_table


class LazyFrame:
    """A query that has not been run: a lazy frame of polars, or a relation of DuckDB.

    The query is run for its first rows when it is opened, and for the columns that a log needs when
    it is read.
    """

    def __init__(self, query: Any) -> None:
        self._query = query

    @staticmethod
    def is_query(source: Any) -> bool:
        """Return whether an object is a query that has not been run."""
        return _is_polars(source) or _is_duckdb(source)

    def first_rows(self, count: int) -> Any:
        """Return the first rows of all columns as a table of pyarrow."""
        query = self._query.head(count) if _is_polars(self._query) else self._query.limit(count)
        return _computed(query)

    def batches(self, columns: list[str], rows: int) -> Iterator[Any]:
        """Run the query and yield the columns in batches."""
        if _is_polars(self._query):
            query = self._query.select(columns)
        else:
            quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
            query = self._query.project(quoted)
        yield from _computed(query).to_batches(rows)


def _is_polars(source: Any) -> bool:
    return hasattr(source, "collect_schema") and hasattr(source, "collect")


def _is_duckdb(source: Any) -> bool:
    return hasattr(source, "to_arrow_table") and hasattr(source, "project")


def _computed(query: Any) -> Any:
    try:
        table = query.collect() if _is_polars(query) else query.to_arrow_table()
    except Exception as error:
        raise InputError(
            f"the query of the log cannot be run ({one_line(error)}); one that can be is allowed: "
            "run it by itself, and give its result"
        ) from error
    return arrow_table(table)[0]
