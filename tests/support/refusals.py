"""Expect an error by its code and parameter, never by its sentence."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from submax.core.errors import Error


@contextmanager
def raises_code(
    code: str = "invalid-input", parameter: str | None = None
) -> Iterator[pytest.ExceptionInfo[Error]]:
    """Expect an error with this code, and about this parameter if one is named."""
    with pytest.raises(Error) as caught:
        yield caught
    error = caught.value
    assert error.code == code, f"{error.code}, not {code}: {error}"
    if parameter is not None:
        assert error.parameter == parameter, f"{error.parameter}, not {parameter}: {error}"
