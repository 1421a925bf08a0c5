"""The configurations of an experiment: combinations of the values that its file lists."""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from typing import Any, get_args, get_origin, get_type_hints

from submax.core.errors import InputError
from submax.core.registry import Registry
from submax.environments import ENVIRONMENTS
from submax.experiments.specification import Specification
from submax.simulation import DELAYS


def configurations(
    specification: Specification,
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Every combination of the values that are listed for the environment and the delay."""
    yield from itertools.product(
        _combinations(specification.environment, ENVIRONMENTS),
        _combinations(specification.delay, DELAYS),
    )


def _combinations(table: Mapping[str, Any], folder: Registry[Any]) -> Iterator[dict[str, Any]]:
    lists = _tuple_fields(table, folder)
    choices = [
        value if isinstance(value, list) and not _is_one_value(key, value, lists) else [value]
        for key, value in table.items()
    ]
    for key, value in table.items():
        if value == []:
            raise InputError(
                f"{key} = [] has no value, and a list must have at least one; an empty list as "
                "the value itself is written [[]]"
            )
    for values in itertools.product(*choices):
        yield dict(zip(table, values, strict=True))


def _tuple_fields(table: Mapping[str, Any], folder: Registry[Any]) -> dict[str, int]:
    """The fields whose value is itself a list, with the depth of the list, such as 1 for means."""
    kind = table.get("kind")
    found = folder.find(kind) if isinstance(kind, str) else None
    if not dataclasses.is_dataclass(found):
        return {}
    return {name: depth for name, hint in get_type_hints(found).items() if (depth := _depth(hint))}


def _depth(hint: Any) -> int:
    """How many tuples are within each other in a type."""
    inner = [_depth(one) for one in get_args(hint)]
    return max(inner, default=0) + (get_origin(hint) is tuple)


def _is_one_value(key: str, value: Any, lists: Mapping[str, int]) -> bool:
    """Whether a list is the value of a field and does not stand for several configurations."""
    return value != [] and _list_depth(value) <= lists.get(key, 0)


def _list_depth(value: Any) -> int:
    """How many lists are within each other in a value."""
    if not isinstance(value, list):
        return 0
    return 1 + max(map(_list_depth, value), default=0)
