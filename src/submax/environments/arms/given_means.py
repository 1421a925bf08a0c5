"""Means of arms that are given instead of drawn."""

from collections.abc import Callable

from submax.core.checks import whole_number
from submax.core.errors import InputError


def count_arms(
    environment: object,
    arms: int,
    means: tuple[float, ...] | None,
    check: Callable[[str, object], None],
) -> int:
    """Return the number of arms, which is that of the ``means`` if these are given.

    ``check`` refuses a mean that is not allowed.
    """
    if means is None:
        if arms == 0:
            raise InputError(
                "arms must be a whole number, at least 1, unless means are given: give "
                f"{type(environment).__name__} arms, the number of arms whose means are drawn, or "
                "means, such as (0.9, 0.8, 0.7)",
                parameter="arms",
            )
        whole_number("arms", arms, at_least=1)
        return arms
    if not isinstance(means, tuple) or not means:
        raise InputError(
            f"means must be a tuple with a number for each arm, such as (0.9, 0.8), not {means!r}",
            parameter="means",
        )
    for mean in means:
        check("each of means", mean)
    if arms not in (0, len(means)):
        raise InputError(
            f"arms is {arms} and there are {len(means)} means: leave out arms, which follows from "
            "the means",
            parameter="arms",
        )
    return len(means)
