"""Types that msgspec decodes in several threads."""

from threading import Lock
from typing import Any, TypeVar

import msgspec

Kind = TypeVar("Kind")
_LOCK = Lock()
_KNOWN: set[Any] = set()


def known_type(kind: type[Kind]) -> type[Kind]:
    """Return the type itself, after msgspec has examined it and everything inside of it.

    msgspec 0.22 examines a ``Struct`` when it is first decoded, and writes what it finds into the
    class field by field. If a second thread decodes the same class meanwhile, it reads fields that
    are not there yet, and the process dies by a segmentation fault. So every type that is given to
    ``decode``, ``convert`` or a ``Decoder`` goes through this function, which waits for others:

    >>> msgspec.json.decode(b"[1, 2]", type=known_type(list[int]))
    [1, 2]
    """
    if kind not in _KNOWN:
        with _LOCK:
            msgspec.msgpack.Decoder(kind)
            _KNOWN.add(kind)
    return kind
