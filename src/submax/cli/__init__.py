"""The command line. Commands import what they need when they run, so ``--help`` is fast."""

from submax.cli import experiments as experiments
from submax.cli import live as live
from submax.cli import logs as logs
from submax.cli import serving as serving
from submax.cli.main import main

__all__ = ["main"]
