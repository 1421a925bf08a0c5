"""The options of ``submax serve``, made from a table of options."""

from collections.abc import Sequence

import click

from submax.cli.option_list import Command, Option, with_all
from submax.web.server.running.serve_options import OPTIONS
from submax.web.server.running.server_option import ServerOption


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
