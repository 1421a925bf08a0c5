"""The command line. Commands import what they need when they run, so that ``--help`` is fast."""

from submax.cli import live as live
from submax.cli import logs as logs
from submax.cli import operators as operators
from submax.cli import watchers as watchers
from submax.cli.commands import main

__all__ = ["main"]
