"""Decodes the bodies of requests, and says in words what is wrong with one."""

import re
from typing import Any

import msgspec
from msgspec import inspect

from submax.core.checks import did_you_mean
from submax.core.decoding import known_type
from submax.core.errors import InputError
from submax.web.server.access.key import Key
from submax.web.server.access.refused_error import RefusedError
from submax.web.server.interface.body import check_unique_keys
from submax.web.server.interface.incoming import Incoming
from submax.web.server.interface.messages import IDENTIFIER_PATTERN, NAME_PATTERN
from submax.web.server.interface.responses import JSON

PLAIN = "text/plain"
UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(.*?)`(?: - at `(.*)`)?", re.DOTALL)
UNKNOWN_WORD = re.compile(r"Invalid enum value (.*) - at `(.*)`", re.DOTALL)
WRONG_TEXT = re.compile(r"Expected `str` matching regex '(.*)' - at `(.*)`", re.DOTALL)
"""What msgspec says if a field, a word or a text is not allowed; the last group of each is where in
the body, such as ``$.guard_rails`` or ``$.scopes[0]``."""
PATTERNS = {
    IDENTIFIER_PATTERN: "1 to 128 printable ASCII characters without spaces",
    NAME_PATTERN: "up to 64 small letters, digits, '-' and '_'",
}
"""What the patterns of messages allow, in words."""
STEP = re.compile(r"\.([^.\[]+)|\[[^]]*\]")
"""A step from a value into a field or an item of it."""


class BodyDecoder:
    """Decodes JSON into a message of one type; wrong bodies raise an ``InputError``."""

    def __init__(self, kind: type) -> None:
        self._kind = kind
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(known_type(kind))

    def decode(self, body: bytes) -> Any:
        """The message; unknown fields, wrong types and repeated keys are refused."""
        try:
            found = self._decoder.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError(self._sentence(str(error))) from error
        except RecursionError as error:
            raise InputError(
                "the body is nested too deep: send lists and tables in fewer levels"
            ) from error
        check_unique_keys(body)
        return found

    def _sentence(self, reason: str) -> str:
        """The error in words, and what is allowed instead if that can be said shortly."""
        if found := UNKNOWN_FIELD.fullmatch(reason):
            word, path, options = repr(found[1]), found[2] or "$", _fields
            place = "the body" if path == "$" else path.removeprefix("$.")
            begin = f"{place} has the field {word:.60}, which is not known"
        elif found := UNKNOWN_WORD.fullmatch(reason):
            word, path, options = found[1], found[2], _words
            begin = f"{path.removeprefix('$.')} is {word:.60}, which is not known"
        elif (found := WRONG_TEXT.fullmatch(reason)) and found[1] in PATTERNS:
            place = found[2].removeprefix("$.")
            return f"{place} is not allowed: give a text of {PATTERNS[found[1]]}"
        else:
            return f"the body does not fit ({reason}): see /openapi.json for what is allowed"
        allowed = sorted(options(_types_at(inspect.type_info(self._kind), path)))
        return f"{begin}: {did_you_mean(word, allowed)}allowed: {', '.join(allowed)}"


def _types_at(kind: inspect.Type, path: str) -> list[inspect.Type]:
    """The types that a value may have at a place of a message, such as ``$.guard_rails``."""
    kinds = _alternatives(kind)
    for step in STEP.finditer(path.removeprefix("$")):
        kinds = [inner for one in kinds for inner in _inside(one, step[1])]
    return kinds


def _inside(kind: inspect.Type, field: str | None) -> list[inspect.Type]:
    """The types of a field of a table, or of the items of a list if ``field`` is None."""
    if field is None:
        inner = getattr(kind, "item_type", None) or getattr(kind, "value_type", None)
        return [] if inner is None else _alternatives(inner)
    fields = kind.fields if isinstance(kind, inspect.StructType) else ()
    return [
        inner for one in fields if one.encode_name == field for inner in _alternatives(one.type)
    ]


def _alternatives(kind: inspect.Type) -> list[inspect.Type]:
    """The types of a union, or the type itself, without what is said about them."""
    if isinstance(kind, inspect.Metadata):
        return _alternatives(kind.type)
    if isinstance(kind, inspect.UnionType):
        return [inner for one in kind.types for inner in _alternatives(one)]
    return [kind]


def _fields(kinds: list[inspect.Type]) -> list[str]:
    """The fields of those types that are structures."""
    structures = [kind for kind in kinds if isinstance(kind, inspect.StructType)]
    return [field.encode_name for kind in structures for field in kind.fields]


def _words(kinds: list[inspect.Type]) -> list[str]:
    """The values of those types that are a choice among words."""
    choices = [kind for kind in kinds if isinstance(kind, inspect.LiteralType)]
    return [str(word) for kind in choices for word in kind.values]


def check_type(request: Incoming, key: Key | None) -> None:
    """Refuse other types than JSON, which browsers send to another site only if it allows it.

    With a key for browsers, which nobody keeps secret, plain text is allowed: a page that is left
    can send it at once, without asking the server first.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON and not (key is not None and key.browser and kind == PLAIN):
        raise RefusedError(415, f"send JSON, with the header 'Content-Type: {JSON}' (curl --json)")
