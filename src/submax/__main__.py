"""``python -m submax`` is the command line."""

from submax.cli import main


def run() -> None:
    """Run the command line in a process of its own."""
    main()


if __name__ == "__main__":
    run()
