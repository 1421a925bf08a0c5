"""Turns errors into a sentence and an exit status, without a traceback."""

from concurrent.futures import BrokenExecutor
from typing import Any

import click

from submax.core.errors import InputError, MissingExtraError, StoreError, SubmaxError

WRONG_INPUT, FAILED, INTERRUPTED = 2, 1, 130
"""Exit statuses: 2 as click uses it, 1 for other errors, 130 as shells report Ctrl-C."""


class Commands(click.Group):
    """A group whose commands print errors that a user can correct as one sentence."""

    def invoke(self, context: click.Context) -> Any:
        """Run the command; exit with a different status for each kind of error."""
        try:
            return super().invoke(context)
        except (InputError, MissingExtraError) as error:
            _exit(_sentence(error), WRONG_INPUT, context)
        except StoreError as error:
            _exit(_sentence(error), FAILED, context)
        except KeyboardInterrupt:
            _exit("Stopped. Give the same command again to resume.", INTERRUPTED, context)
        except BrokenExecutor:
            _exit(
                "Error: a worker process died, perhaps because memory ran out. Finished cells are "
                "saved: give the same command again to resume, with fewer --jobs if necessary.",
                FAILED,
                context,
            )
        except OSError as error:
            _exit(f"Error: {error}", FAILED, context)


def _sentence(error: SubmaxError) -> str:
    """The message with its code, unless the code only says that a value is wrong."""
    code = "" if error.code == InputError.default_code else f" ({error.code})"
    return f"Error: {error}{code}"


def _exit(message: str, status: int, context: click.Context) -> None:
    click.echo(message, err=True)
    context.exit(status)
