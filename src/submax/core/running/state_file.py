"""What a policy has learned, as bytes: safetensors, with the structure beside the arrays."""

import dataclasses
import json
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.core.errors import InputError
from submax.core.running.stored import class_of, tag_of

FORMAT = "submax-state-2"
Arrays = dict[str, NDArray[Any]]


def state_bytes(state: Any, facts: dict[str, Any], *, for_learning: bool = False) -> bytes:
    """Write a tree of named tuples, dataclasses, arrays and plain values, and facts about it.

    Unless ``for_learning`` is true, what is remembered only to learn further is left out: a record
    that has any says by its method ``for_deciding`` what remains. The same state gives the same
    bytes.
    """
    from safetensors.numpy import save

    writer = _Writer({}, for_learning)
    tree = writer.write(state)
    # One piece of text: several would be stored in any order.
    text = json.dumps({"format": FORMAT, "facts": facts, "tree": tree})
    return save(writer.arrays, {"submax": text})


def read_state(
    data: bytes, modules: Sequence[str] = (), *, facts_only: bool = False
) -> tuple[Any, dict[str, Any]]:
    """The state and the facts in bytes that ``state_bytes`` wrote.

    Classes are looked for in submax, and in the ``modules`` of a policy of the user's own; with
    ``facts_only``, which may tell what these are, there is no state, and no array is read.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        written = _header(data)
        state = None if facts_only else _Reader(load(data), modules).read(written["tree"])
        return state, written["facts"]
    except (SafetensorError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(f"the state cannot be read: {error}") from error
    except RecursionError as error:
        raise InputError("the state cannot be read: it is nested too deeply") from error


def modules_of(value: Any) -> list[str]:
    """The modules of a policy and of the policies, estimators and other dataclasses inside it."""
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return [type(value).__module__]
    inside = (getattr(value, field.name) for field in dataclasses.fields(value))
    parts = [modules_of(one) for one in inside if dataclasses.is_dataclass(one)]
    return [type(value).__module__, *(module for part in parts for module in part)]


def _header(data: bytes) -> Any:
    """What stands before the arrays, which are not looked at."""
    size = int.from_bytes(data[:8], "little")
    written = json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["submax"])
    if written["format"] != FORMAT:
        raise InputError(f"a state of the format {written['format']!r}, not {FORMAT!r}")
    return written


@dataclasses.dataclass(frozen=True)
class _Writer:
    arrays: Arrays
    for_learning: bool

    def write(self, value: Any) -> Any:
        """The structure of a value; arrays are taken out and stand as their name."""
        if isinstance(value, np.ndarray):
            if value.dtype.kind not in "biuf":
                raise InputError(
                    f"a state holds arrays of numbers or truth values, and {value.dtype} is the "
                    "type of something else"
                )
            name = f"{len(self.arrays):04d}"
            self.arrays[name] = np.ascontiguousarray(value)
            # A contiguous array of no dimension has one.
            return {"array": name, "shape": list(value.shape)}
        if not self.for_learning and hasattr(value, "for_deciding"):
            value = value.for_deciding()
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return {"record": tag_of(value), "values": [self.write(one) for one in value]}
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = [(one.name, getattr(value, one.name)) for one in dataclasses.fields(value)]
            return {
                "data": tag_of(value),
                "values": {name: self.write(one) for name, one in fields},
            }
        return self._plain(value)

    def _plain(self, value: Any) -> Any:
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, (tuple, list)):
            kind = "tuple" if isinstance(value, tuple) else "list"
            return {kind: [self.write(one) for one in value]}
        if isinstance(value, dict):
            if not all(isinstance(key, str) for key in value):
                raise InputError(
                    f"the keys of a table in a state must be texts, not {[*value]!r:.80}"
                )
            return {"table": {key: self.write(one) for key, one in value.items()}}
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        raise InputError(
            f"a state holds arrays, named tuples, frozen dataclasses and plain values, and "
            f"{type(value).__name__} is none of these"
        )


@dataclasses.dataclass(frozen=True)
class _Reader:
    arrays: Arrays
    modules: Sequence[str]

    def read(self, tree: Any) -> Any:
        if not isinstance(tree, dict):
            return tree
        if "array" in tree:
            return self.arrays[tree["array"]].reshape(tree["shape"])
        if "record" in tree:
            return self._class(tree["record"])(*map(self.read, tree["values"]))
        if "data" in tree:
            values = {name: self.read(one) for name, one in tree["values"].items()}
            return self._class(tree["data"])(**values)
        if "table" in tree:
            return {name: self.read(one) for name, one in tree["table"].items()}
        items = tree["tuple"] if "tuple" in tree else tree["list"]
        made = [self.read(one) for one in items]
        return tuple(made) if "tuple" in tree else made

    def _class(self, name: str) -> Any:
        """The class of a tag, and only one that is a record."""
        own = {
            found.__qualname__: found
            for module in self.modules
            for found in vars(sys.modules[module]).values()
            if isinstance(found, type)
        }
        found = class_of(name, own)
        if not (hasattr(found, "_fields") or dataclasses.is_dataclass(found)):
            raise InputError(f"{name!r} is no record")
        return found
