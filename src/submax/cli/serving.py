"""The commands that run a server: serve and demo."""

import os
import re
from collections.abc import Sequence
from typing import Any

import click

from submax.cli.main import Command, Option, main, with_all
from submax.server.options import OPTIONS, ServerOption

DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhd]?)", re.ASCII)
UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def server_options(command: Command) -> Command:
    """Add all options of the server; their texts are read by ``ServeOptions``."""
    return with_options(command, OPTIONS)


def with_options(command: Command, options: Sequence[ServerOption]) -> Command:
    """Add options to a command, which gets their texts, or None for those that are absent."""
    return with_all(command, [_option(one) for one in options])


def _option(one: ServerOption) -> Option:
    notes = f"{one.variable}; default: {one.default_text}" if one.default_text else one.variable
    explained = f"{one.help}  [{notes}]"
    if one.flag:
        return click.option(one.word, one.name, is_flag=True, default=None, help=explained)
    return click.option(
        one.word,
        one.name,
        multiple=one.repeats,
        default=() if one.repeats else None,
        metavar=one.metavar,
        help=explained,
    )


SERVER_MODULES = ("starlette", "granian", "prometheus_client", "jinja2", "pyarrow")
"""What a server imports of its extra."""


@main.command()
@click.argument("store", metavar="[STORE]", required=False)
@server_options
def serve(**given: Any) -> None:
    """Serve the bandits of a store over HTTP.

    STORE is a file, which is created if it does not exist, or the address of a PostgreSQL
    database.

    With --learned a bandit is declared that is named after the store and has the actions and
    context of the policy's log. It decides by the policy from the start. Its reward_wait, guard
    rails and other settings are the defaults, unless they were declared before by
    submax.open(STORE, learned=FILE, reward_wait=...) in Python.

    Every option can be given as an environment variable instead, whose name is in brackets, and
    STORE as SUBMAX_STORE. With _FILE at the end of its name, a variable names a file that has
    the value.
    """
    from submax.core.optional import require_extra
    from submax.server.options import ServeOptions

    options = ServeOptions.of(given, os.environ)
    require_extra("server", "the server", *SERVER_MODULES)
    from submax.server.run import serve as run

    run(options)


@main.command()
@click.option(
    "--port", type=int, default=0, show_default=True, help="Port to listen on; 0 for any free port."
)
@click.option(
    "--for",
    "duration",
    metavar="TIME",
    help="When the demo ends, such as 60s or 5m; by Ctrl-C if absent.",
)
@click.option(
    "--visitors",
    type=float,
    default=20.0,
    show_default=True,
    metavar="N",
    help="Visitors per second.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the visitors.")
def demo(port: int, duration: str | None, visitors: float, seed: int) -> None:
    """Start a server with simulated visitors, to look at.

    The visitors of a shop see one of five headlines, and change their taste at half time. One
    headline gets its rewards late, and one never gets any. The server works in a temporary
    folder, which is deleted at the end.
    """
    from submax.core.optional import require_extra

    require_extra("server", "the demo", *SERVER_MODULES)
    from submax.server.demo import run_demo

    run_demo(port, None if duration is None else seconds(duration, "--for"), visitors, seed)


def seconds(text: str, option: str) -> float:
    """The seconds of a duration such as ``7d``, ``12h``, ``30m`` or ``90``.

    >>> seconds("7d", "--for")
    604800.0
    """
    from submax.core.errors import InputError

    found = DURATION.fullmatch(text)
    if found is None:
        raise InputError(
            f"{option} was {text!r:.40}, and a duration is a number and s, m, h or d, for "
            "seconds to days: give one such as 7d"
        )
    return float(found[1]) * UNITS[found[2]]
