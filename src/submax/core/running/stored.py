"""Tags by which records are known in files, whatever module their class lives in."""

from collections.abc import Callable
from typing import Any, TypeVar

from submax.core.errors import InputError

Record = TypeVar("Record", bound=type)
_CLASSES: dict[str, type] = {}
_TAGS: dict[type, str] = {}
OWN = "own:"
"""What the tag of a class begins with that belongs to a policy of the user's own."""


def stored(tag: str) -> Callable[[Record], Record]:
    """Give a named tuple or a frozen dataclass the tag by which files know it.

    A tag never changes once it is released, while the class may get another name or module.
    """

    def tagged(kind: Record) -> Record:
        known = _CLASSES.setdefault(tag, kind)
        assert known.__qualname__ == kind.__qualname__, f"two classes have the tag {tag!r}"
        _CLASSES[tag], _TAGS[kind] = kind, tag
        return kind

    return tagged


def tag_of(value: Any) -> str:
    """The tag of a record's class."""
    kind = type(value)
    if kind in _TAGS:
        return _TAGS[kind]
    if kind.__module__.partition(".")[0] == "submax":
        raise InputError(f"{kind.__name__} has no tag: write @stored('...') above the class")
    return f"{OWN}{kind.__qualname__}"


def class_of(tag: str, own: dict[str, Any]) -> Any:
    """The class with this tag; ``own`` holds the classes of a policy of the user's own."""
    if tag.startswith(OWN):
        found = own.get(tag.removeprefix(OWN))
        if found is None:
            raise InputError(
                f"the state holds a record {tag.removeprefix(OWN)!r}, which is not in the file of "
                "its policy: give the file with which it was written"
            )
        return found
    if tag not in _CLASSES:
        raise InputError(f"the state holds a record {tag!r}, which this version does not know")
    return _CLASSES[tag]
