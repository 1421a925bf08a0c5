"""Errors as one sentence and an exit status, without a traceback."""

from concurrent.futures.process import BrokenProcessPool
from typing import Any

import click

from submax.core.errors import InputError, MissingExtraError, StoreError

WRONG_INPUT, FAILED, INTERRUPTED = 2, 1, 130


class Commands(click.Group):
    """A group whose commands turn errors that a user can mend into one sentence."""

    def invoke(self, context: click.Context) -> Any:
        """Run the command; leave with a status of its own for each kind of error."""
        try:
            return super().invoke(context)
        except (InputError, MissingExtraError) as error:
            _leave(f"Error: {error}", WRONG_INPUT, context)
        except StoreError as error:
            _leave(f"Error: {error}", FAILED, context)
        except KeyboardInterrupt:
            _leave("Stopped. Give the same command again to go on.", INTERRUPTED, context)
        except BrokenProcessPool:
            _leave(
                "Error: a worker process died, perhaps for want of memory. What is finished is "
                "kept: give the same command again to go on, with fewer --jobs if need be.",
                FAILED,
                context,
            )
        except OSError as error:
            _leave(f"Error: {error}", FAILED, context)


def _leave(message: str, status: int, context: click.Context) -> None:
    click.echo(message, err=True)
    context.exit(status)
