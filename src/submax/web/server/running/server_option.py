"""One option of the server, for the command line and the environment."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from submax.core.errors import InputError

PREFIX = "SUBMAX_"
"""How the names of all environment variables of the server begin."""


@dataclass(frozen=True)
class ServerOption:
    """An option with its name, its default, and how its text is read.

    ``read`` returns the value for a text, or raises a ``ValueError``. ``allowed`` and ``example``
    complete the error message. An option that ``repeats`` has a value for each time it is given,
    and in a variable they are separated by commas. A ``flag`` is given without a value on the
    command line. ``plural`` is the name of its variable if it is not the name with an s.
    """

    name: str
    default: Any
    read: Callable[[str], Any]
    allowed: str
    example: str
    help: str
    metavar: str | None = None
    repeats: bool = False
    flag: bool = False
    plural: str = ""

    @property
    def word(self) -> str:
        """The option as it is written on the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """The environment variable that has the same effect."""
        return PREFIX + (self.plural or self.name + "s" * self.repeats).upper()

    @property
    def default_text(self) -> str:
        """The default as people write it; empty if there is none."""
        if self.flag or self.default in (None, ()):
            return ""
        if self.repeats:
            return ", ".join(self.default)
        return f"{self.default:g}" if isinstance(self.default, float) else str(self.default)

    def value_of(self, text: str, source: str, code: str) -> Any:
        """The value of a text; if it is wrong, the error names where the text came from."""
        try:
            if not self.repeats:
                return self.read(text)
            return tuple(self.read(part) for part in text.split(",") if part.strip())
        except ValueError as error:
            raise InputError(
                f"{source} was {text!r:.80}, and {self.allowed} is allowed: give for example "
                f"{self.example}",
                code=code,
                parameter=self.name,
            ) from error


def read_flag(text: str) -> bool:
    """Whether a text means yes; a text that means neither yes nor no is a ``ValueError``.

    >>> read_flag("true"), read_flag("0")
    (True, False)
    """
    words = {"1": True, "true": True, "yes": True, "on": True}
    words |= {"0": False, "false": False, "no": False, "off": False, "": False}
    found = words.get(text.strip().lower())
    if found is None:
        raise ValueError(text)
    return found
