"""The command ``submax``: the group of all commands, their errors and shared options."""

import functools
import os
import sys
from collections.abc import Callable
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from submax._version import __version__
from submax.core.checks import did_you_mean
from submax.core.errors import InputError, MissingExtraError, StoreError
from submax.core.processes import prefer_single_thread, variable_text

# Exit statuses: 2 as click uses it, 1 for other errors, 130 as shells report Ctrl-C.
WRONG_INPUT, FAILED, INTERRUPTED = 2, 1, 130
POSTGRES = ("postgres://", "postgresql://")
STORE_VARIABLE = "SUBMAX_STORE"


def is_address(value: object) -> bool:
    """Whether this is the address of a PostgreSQL store, and not a path."""
    return isinstance(value, str) and value.startswith(POSTGRES)


def without_password(path_or_url: str | Path) -> str:
    """A path or an address as it may be printed.

    >>> without_password("postgresql://shop:secret@db:5432/shop"), without_password("shop.db")
    ('postgresql://db:5432/shop', 'shop.db')
    """
    if not is_address(path_or_url):
        return str(path_or_url)
    parts = urlsplit(str(path_or_url))
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


class Commands(click.Group):
    """A group whose commands print errors that a user can correct as one sentence.

    ``submax create`` is ``submax bandit create``: the groups bandit and store can be left out.
    """

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        found = super().get_command(ctx, name)
        for group in map(self.commands.get, ("bandit", "store")):
            if found is None and isinstance(group, click.Group):
                found = group.get_command(ctx, name)
        return found

    def resolve_command(
        self, context: click.Context, words: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.get_command(context, words[0]) is None and not context.resilient_parsing:
            groups = (one for one in self.commands.values() if isinstance(one, click.Group))
            known = [*self.commands, *(name for group in groups for name in group.commands)]
            hint = did_you_mean(words[0], known)
            context.fail(f"No such command {words[0]!r}: {hint}see submax --help")
        return super().resolve_command(context, words)

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except (InputError, MissingExtraError, StoreError) as error:
            # The code is shown, unless it only says that a value is wrong.
            code = "" if error.code == InputError.default_code else f" ({error.code})"
            status = FAILED if isinstance(error, StoreError) else WRONG_INPUT
            _exit(f"Error: {error}{code}", status, context)
        except KeyboardInterrupt:
            resumed = " Run the same command again to resume."
            ran = context.invoked_subcommand in ("reproduce", "simulate")
            _exit(f"Stopped.{resumed * ran}", INTERRUPTED, context)
        except BrokenExecutor:
            _exit(
                "Error: a worker process died, perhaps because memory ran out. Finished cells are "
                "saved: run the same command again to resume, with fewer --jobs if necessary.",
                FAILED,
                context,
            )
        except BrokenPipeError:
            raise  # click ends quietly: whoever reads the output has seen enough, as in | head
        except OSError as error:
            _exit(f"Error: {error}", FAILED, context)


def _exit(message: str, status: int, context: click.Context) -> None:
    click.echo(message, err=True)
    context.exit(status)


Command = Callable[..., None]
Option = Callable[[Command], Command]


def with_options(*options: Option) -> Option:
    """Add options to a command, whose help shows them in this order."""
    return lambda command: functools.reduce(lambda done, add: add(done), reversed(options), command)


class FromVariable:
    """A parameter that is also read from a variable, or from the file that ``…_FILE`` names.

    A database's address contains its password, and other users see the words of a command line.
    """

    envvar: Any

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        return variable_text(self.envvar, os.environ)[1]


class VariableOption(FromVariable, click.Option):
    """An option that is also a variable."""


class VariableArgument(FromVariable, click.Argument):
    """An argument that is also a variable."""


PURPOSE = """Multi-armed bandits for Python and HTTP. Rewards can arrive late, and nothing is lost.

Serve live decisions, learn from logs, simulate policies, reproduce the paper.
"""
SETTINGS = {"help_option_names": ["-h", "--help"], "show_default": True}


@click.group(cls=Commands, help=PURPOSE, context_settings=SETTINGS)
@click.version_option(__version__, prog_name="submax")
def main() -> None:
    """Prepare every command."""
    prefer_single_thread()
    # As with python -m submax, modules in the current folder can be named, module:Class.
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
