"""The argument that names a store, from the command line or from a variable."""

import os

import click

from submax.core.processes import variable_text

VARIABLE = "SUBMAX_STORE"
"""The variable that names the store, as for ``submax serve``."""


class StoreArgument(click.Argument):
    """A store that is read from ``SUBMAX_STORE`` or ``SUBMAX_STORE_FILE`` if it is not given.

    The address of a database contains its password, which a command line would show to every user
    of the machine.
    """

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """Return the text of the variable, or of the file that it names."""
        return variable_text(VARIABLE, os.environ)[1]
