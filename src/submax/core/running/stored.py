"""Tags that identify record classes in files, independent of module and class names."""

from collections.abc import Callable
from typing import Any, TypeVar

from submax.core.errors import InputError

Record = TypeVar("Record", bound=type)
_CLASSES: dict[str, type] = {}
_TAGS: dict[type, str] = {}
OWN = "own:"
"""Prefix of the tags of classes that a user-defined policy brings along."""


def stored(tag: str) -> Callable[[Record], Record]:
    """Return a decorator that gives a named tuple or a frozen dataclass its tag in files.

    A released tag never changes, while the class may be renamed or moved.
    """

    def tagged(kind: Record) -> Record:
        known = _CLASSES.setdefault(tag, kind)
        # A module that is imported twice, as doctest does, defines its classes twice.
        if known.__qualname__ != kind.__qualname__:
            raise InputError(
                f"the tag {tag!r} of {kind.__qualname__} is also the tag of {known.__qualname__}; "
                "every class needs a tag of its own: choose another one"
            )
        _CLASSES[tag], _TAGS[kind] = kind, tag
        return kind

    return tagged


def tag_of(value: Any) -> str:
    """Return the tag of a record's class."""
    kind = type(value)
    if kind in _TAGS:
        return _TAGS[kind]
    if kind.__module__.partition(".")[0] == "submax":
        raise InputError(
            f"{kind.__name__} cannot be stored without a tag: write @stored('...') above the class"
        )
    return f"{OWN}{kind.__qualname__}"


def class_of(tag: str, own: dict[str, Any]) -> Any:
    """Return the class with this tag; ``own`` has the classes of a user-defined policy by name."""
    if tag.startswith(OWN):
        found = own.get(tag.removeprefix(OWN))
        if found is None:
            raise InputError(
                f"the state holds a record {tag.removeprefix(OWN)!r}, which is not in the file of "
                "its policy: use the file of the policy that wrote the state"
            )
        return found
    if tag not in _CLASSES:
        raise InputError(
            f"the state holds a record {tag!r}, which this version of submax does not know: read "
            "it with the version that wrote it"
        )
    return _CLASSES[tag]
