"""Turns rows of numbers into data frames."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from submax.core.errors import InputError


def data_frame(rows: Sequence[Mapping[str, Any]] | Mapping[str, Any]) -> Any:
    """Return a pandas data frame of rows, or of columns."""
    if find_spec("pandas") is None:
        raise InputError(
            "a data frame needs the package pandas, which is not installed: pip install pandas, or "
            "use the rows without it"
        )
    import pandas as pd  # type: ignore[import-untyped]  # pandas comes without types

    return pd.DataFrame(rows)
