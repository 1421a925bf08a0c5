"""Which names are code: those of classes in someone's own file."""

from collections.abc import Mapping


def names_file(specification: object) -> bool:
    """Whether a name, or anything in a table, is a class in a file, which would be run.

    >>> names_file({"kind": "unlisted", "policy": {"kind": "my_policy.py:MyPolicy"}})
    True
    >>> names_file("rcp-submax")
    False
    """
    if isinstance(specification, str):
        return ":" in specification
    if isinstance(specification, Mapping):
        return any(names_file(value) for value in specification.values())
    return isinstance(specification, (list, tuple)) and any(map(names_file, specification))
