"""The commands on logs: learn, evaluate and tune."""

from submax.cli.logs import commands as commands
