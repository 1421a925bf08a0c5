"""All options of the server, from which the command line, the variables and the docs are made."""

import ipaddress
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from submax.core.checks import did_you_mean
from submax.core.errors import InputError
from submax.core.processes import BY_FILE, INVALID_VARIABLE, variable_text

PREFIX = "SUBMAX_"
"""How the names of all environment variables of the server begin."""
ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?|https?://\[[0-9a-f:]+\](:[0-9]{1,5})?")


def checked_origin(origin: str) -> str:
    """Return the origin without a slash at its end; refuse what no browser would send."""
    origin = origin.strip()
    checked = origin.rstrip("/").lower()
    if not ORIGIN.fullmatch(checked):
        raise InputError(
            f"the origin was {origin!r:.80}, and an origin has a scheme, a host and perhaps a "
            "port: give one such as https://shop.example or http://localhost:3000",
            parameter="origins",
        )
    return checked


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


LOG_FORMATS = ("text", "json")
LOG_LEVELS = ("debug", "info", "warning", "error")
KEY = PREFIX + "KEY"
"""The variable with the key that commands send to a server."""


def _one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text.strip().lower() not in words:
            raise ValueError(text)
        return text.strip().lower()

    return read


def read_port(text: str) -> int:
    """The number of a port; a text that is none is a ``ValueError``."""
    found = int(text)
    if not 0 <= found <= 65_535:
        raise ValueError(text)
    return found


def _file(text: str) -> Path:
    if not Path(text).is_file():
        raise ValueError(text)
    return Path(text)


def _network(text: str) -> str:
    read = ipaddress.ip_network if "/" in text else ipaddress.ip_address
    return str(read(text.strip()))


def _positive(text: str) -> float:
    found = float(text)
    if not (math.isfinite(found) and found > 0):
        raise ValueError(text)
    return found


STORE = ServerOption(
    "store", None, str, "a file or the address of a PostgreSQL database", "homepage.db",
    "File of the store, or address of a PostgreSQL database.",
)  # fmt: skip
OPTIONS = (
    ServerOption(
        "host", "127.0.0.1", str, "an address of this machine", "127.0.0.1",
        "Address to listen on.", "TEXT",
    ),
    ServerOption(
        "port", 8000, read_port, "a whole number from 0 to 65535", "8000",
        "Port to listen on; 0 for any free port.", "INTEGER",
    ),
    ServerOption(
        "rate", 20_000.0, _positive, "a number above 0", "500",
        "Most requests per second for each key and bandit.", "N",
    ),
    ServerOption(
        "learned", None, _file, "a file from submax learn", "policy.submax",
        "A file from submax learn; a bandit starts from this policy.", "FILE",
    ),
    ServerOption(
        "trust", False, read_flag, "true or false", "true",
        "Run the Python code of policies whose class is in a file of your own.", flag=True,
    ),
    ServerOption(
        "origin", (), checked_origin, "a scheme, a host and perhaps a port", "https://shop.example",
        "A web site whose pages may send decisions and rewards from a browser, such as "
        "https://shop.example. Can be repeated.", "ORIGIN", repeats=True,
    ),
    ServerOption(
        "proxy", ("127.0.0.1",), _network, "an address or a network", "10.0.0.0/8",
        "A proxy whose header X-Forwarded-For is believed, by address or network. Can be repeated.",
        "ADDRESS", repeats=True, plural="proxies",
    ),
    ServerOption(
        "log_format", "text", _one_of(*LOG_FORMATS), "text or json", "json",
        "Form of the log: lines of text, or a JSON object in each line.", "text|json",
    ),
    ServerOption(
        "log_level", "info", _one_of(*LOG_LEVELS), ", ".join(LOG_LEVELS), "info",
        "Least level of a message in the log; debug also writes every request.",
        "debug|info|warning|error",
    ),
    ServerOption(
        "telemetry", False, read_flag, "true or false", "true",
        "Send spans of requests, writes and fits by OpenTelemetry (OTLP over HTTP); needs "
        "submax[telemetry].", flag=True,
    ),
)  # fmt: skip
"""Every option of the server but the store, in the order of the help."""


@dataclass(frozen=True)
class ServeOptions:
    """The values of all options of a server."""

    store: str
    host: str
    port: int
    rate: float
    learned: Path | None
    trust: bool
    origin: tuple[str, ...]
    proxy: tuple[str, ...]
    log_format: str
    log_level: str
    telemetry: bool

    @classmethod
    def of(cls, given: Mapping[str, Any], environment: Mapping[str, str]) -> Self:
        """The options given as texts on the command line, then in variables, then defaults."""
        found = {one.name: option_value(one, given, environment) for one in (STORE, *OPTIONS)}
        if not found["store"]:
            raise InputError(
                f"no store was given, and the server needs one: name a file, submax serve "
                f"homepage.db, or set {STORE.variable}"
            )
        return cls(**found)


def option_value(
    option: ServerOption, given: Mapping[str, Any], environment: Mapping[str, str]
) -> Any:
    """The value of an option: as given on the command line, else in its variable, else default."""
    text = given.get(option.name)
    if option.repeats and text:
        return tuple(
            value for one in text for value in option.value_of(one, option.word, "invalid-option")
        )
    if text is not None and not option.repeats:
        # A flag on the command line has no text.
        return text if option.flag else option.value_of(str(text), option.word, "invalid-option")
    variable, text = variable_text(option.variable, environment)
    if text is None:
        return option.default
    return option.value_of(text, f"the variable {variable}", INVALID_VARIABLE)


def misspelt_variables(environment: Mapping[str, str]) -> list[str]:
    """A sentence for each variable that nobody reads and whose name is close to one that is read.

    >>> misspelt_variables({"SUBMAX_PROT": "1", "SUBMAX_PORT": "2", "SUBMAX_TEST_SEED": "3"})
    ["the variable SUBMAX_PROT is not read: did you mean 'SUBMAX_PORT'?"]
    """
    known = [one.variable.removeprefix(PREFIX) for one in (STORE, *OPTIONS)]
    known.append(KEY.removeprefix(PREFIX))
    known += [name + BY_FILE for name in known]
    words = (name.removeprefix(PREFIX) for name in sorted(environment) if name.startswith(PREFIX))
    return [
        f"the variable {PREFIX}{word} is not read: {hint.strip()}"
        for word in words
        if word not in known and (hint := did_you_mean(word, known).replace("'", f"'{PREFIX}", 1))
    ]
