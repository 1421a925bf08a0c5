"""Policy states as files: arrays as safetensors, their structure as JSON in the header."""

import dataclasses
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
from numpy.typing import NDArray

from submax.core.errors import InputError

Record = TypeVar("Record", bound=type)
_CLASSES: dict[str, type] = {}
_TAGS: dict[type, str] = {}
OWN = "own:"
"""Prefix of the tags of classes that a user-defined policy brings along."""


def serializable(tag: str) -> Callable[[Record], Record]:
    """Return a decorator that gives a named tuple or a frozen dataclass its tag in files.

    A released tag never changes, while the class may be renamed or moved.
    """

    def tagged(kind: Record) -> Record:
        known = _CLASSES.setdefault(tag, kind)
        # A module that is imported twice, as doctest does, defines its classes twice.
        if known.__qualname__ != kind.__qualname__:
            raise InputError(
                f"the tag {tag!r} of {kind.__qualname__} is also the tag of "
                f"{known.__qualname__}: choose another one"
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
            f"{kind.__name__} cannot be stored without a tag: write @serializable('...') above it"
        )
    return f"{OWN}{kind.__qualname__}"


def class_of(tag: str, custom: dict[str, Any]) -> Any:
    """Return the class with this tag; ``custom`` has those of user-defined policies."""
    if tag.startswith(OWN):
        kind = custom.get(tag.removeprefix(OWN))
        if kind is None:
            raise InputError(
                f"the state holds a record {tag.removeprefix(OWN)!r}, which is not in the file of "
                "its policy: use the file of the policy that wrote the state"
            )
        return kind
    if tag not in _CLASSES:
        raise InputError(
            f"the state holds a record {tag!r}, which this version of submax does not know: read "
            "it with the version that wrote it"
        )
    return _CLASSES[tag]


PARTIAL = ".partial"


@contextmanager
def atomic_write(path: Path, *, private: bool = False) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces ``path`` at the end of the block.

    After a crash ``path`` holds either its old or its new contents, never a part of them. If it is
    ``private``, only its owner can read it.
    """
    partial = path.with_name(f"{path.name}.{os.getpid()}{PARTIAL}")
    try:
        partial.unlink(missing_ok=True)
        mode = 0o600 if private else 0o666
        with os.fdopen(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


FORMAT = "submax-state-2"
Arrays = dict[str, NDArray[Any]]


def state_bytes(state: Any, facts: dict[str, Any], *, for_learning: bool = False) -> bytes:
    """Serialize a tree of named tuples, dataclasses, arrays and plain values, with ``facts``.

    Unless it is ``for_learning``, every record that has a method ``for_deciding`` is replaced by
    the result of this method. The same state always gives the same bytes.
    """
    from safetensors.numpy import save

    writer = _Writer({}, for_learning)
    tree = writer.write(state)
    # One metadata entry, because the order of several entries is not fixed.
    text = json.dumps({"format": FORMAT, "facts": facts, "tree": tree})
    return save(writer.arrays, {"submax": text})


def read_state(
    data: bytes, modules: Sequence[str] = (), *, facts_only: bool = False
) -> tuple[Any, dict[str, Any]]:
    """Return the state and the facts that ``state_bytes`` wrote.

    Classes are looked up in submax, and in ``modules``, the modules of a user-defined policy. With
    ``facts_only`` the state is None and no array is read; the facts may name the modules to pass.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        size = int.from_bytes(data[:8], "little")
        written = json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["submax"])
        if written["format"] != FORMAT:
            raise ValueError(f"its format is {written['format']!r}, not {FORMAT!r}")
        if facts_only:
            return None, written["facts"]
        kinds = (kind for module in modules for kind in vars(sys.modules[module]).values())
        custom = {kind.__qualname__: kind for kind in kinds if isinstance(kind, type)}
        return _Reader(load(data), custom).read(written["tree"]), written["facts"]
    except (SafetensorError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(f"the state cannot be read: {error}") from error
    except RecursionError as error:
        raise InputError("the state cannot be read: it is nested too deeply") from error


NO_HASH = "0" * 64
"""Written in place of the hash of a file while the hash is computed."""


def hashed_bytes(
    state: Any, kind: str, facts: dict[str, Any], *, for_learning: bool = False
) -> bytes:
    """Serialize a state as a file of a kind, whose facts have the hash of the whole."""
    data = state_bytes(state, {kind: {**facts, "hash": NO_HASH}}, for_learning=for_learning)
    return _with_hash(data, NO_HASH, hashlib.sha256(data).hexdigest())


def hashed_facts(data: bytes, kind: str, needed: str) -> dict[str, Any]:
    """Return the facts of a file of a kind; its hash is checked, and no array is read."""
    try:
        found = read_state(data, facts_only=True)[1][kind]
        claimed = str(found["hash"])
    except (InputError, LookupError, TypeError) as error:
        raise InputError(needed) from error
    if hashlib.sha256(_with_hash(data, claimed, NO_HASH)).hexdigest() != claimed:
        raise InputError("it was changed after it was written: use another copy")
    return dict(found)


def _with_hash(data: bytes, before: str, after: str) -> bytes:
    return data.replace(before.encode(), after.encode(), 1)


def modules_of(value: Any) -> list[str]:
    """Return the modules of a policy, of its base classes, and of all dataclasses inside it."""
    bases = [base.__module__ for base in type(value).__mro__ if base is not object]
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return bases
    inside = (getattr(value, field.name) for field in dataclasses.fields(value))
    parts = [modules_of(one) for one in inside if dataclasses.is_dataclass(one)]
    return [*bases, *(module for part in parts for module in part)]


@dataclasses.dataclass(frozen=True)
class _Writer:
    arrays: Arrays
    for_learning: bool

    def write(self, value: Any) -> Any:
        """Return the structure of a value as JSON; arrays are replaced by their names."""
        if isinstance(value, np.ndarray):
            if value.dtype.kind not in "biuf":
                raise InputError(
                    f"arrays in a state must hold numbers or booleans, not {value.dtype}: "
                    "convert the array, or leave it out of the state"
                )
            name = f"{len(self.arrays):04d}"
            self.arrays[name] = np.ascontiguousarray(value)
            # ascontiguousarray gives a zero-dimensional array one dimension.
            return {"array": name, "shape": list(value.shape)}
        if not self.for_learning and hasattr(value, "for_deciding"):
            value = value.for_deciding()
        names: Any = getattr(value, "_fields", None) if isinstance(value, tuple) else None
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            names = [field.name for field in dataclasses.fields(value)]
        if names is not None:
            values = {name: self.write(getattr(value, name)) for name in names}
            return {"record": tag_of(value), "values": values}
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, (tuple, list)):
            kind = "tuple" if isinstance(value, tuple) else "list"
            return {kind: [self.write(one) for one in value]}
        if isinstance(value, dict):
            if not all(isinstance(key, str) for key in value):
                raise InputError(
                    f"the keys of a table in a state must be strings, not {[*value]!r:.80}"
                )
            return {"table": {key: self.write(one) for key, one in value.items()}}
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        raise InputError(
            "a state holds arrays, named tuples, frozen dataclasses and plain values, "
            f"but {type(value).__name__} is none of these"
        )


@dataclasses.dataclass(frozen=True)
class _Reader:
    arrays: Arrays
    custom: dict[str, type]

    def read(self, tree: Any) -> Any:
        if not isinstance(tree, dict):
            return tree
        if "array" in tree:
            return self.arrays[tree["array"]].reshape(tree["shape"])
        if "record" in tree:
            kind = class_of(tree["record"], self.custom)
            if not (hasattr(kind, "_fields") or dataclasses.is_dataclass(kind)):
                raise InputError(f"{tree['record']!r} is not a named tuple or a dataclass")
            return kind(**{name: self.read(one) for name, one in tree["values"].items()})
        if "table" in tree:
            return {name: self.read(one) for name, one in tree["table"].items()}
        items = tree["tuple"] if "tuple" in tree else tree["list"]
        made = [self.read(one) for one in items]
        return tuple(made) if "tuple" in tree else made
