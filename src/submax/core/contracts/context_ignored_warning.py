"""The warning about a policy that ignores the context it is given."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


class ContextIgnoredWarning(UserWarning):
    """The policy does not look at the context that is given for every decision."""


@contextmanager
def ignored_contexts_allowed() -> Iterator[None]:
    """Do not warn of policies that ignore the context: the caller has chosen them on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ContextIgnoredWarning)
        yield
