"""``python -m submax`` is the command line."""

from submax.cli import main

main()
