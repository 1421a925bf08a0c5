"""``python -m submax`` is the command line."""

from submax.cli import main
from submax.core.processes import end_without_collection


def run() -> None:
    """Run the command line in a process of its own."""
    end_without_collection()
    main()


if __name__ == "__main__":
    run()
