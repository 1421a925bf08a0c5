import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from submax.cli.running.progress import progress

CELLS = [SimpleNamespace(key=str(number), decisions=100) for number in range(3)]


@pytest.fixture
def displayed():
    """What a bar of some cells says last, two of them finished."""

    def show(todo, **options):
        console = Console(file=io.StringIO(), width=120)
        meter = SimpleNamespace(decisions=0, updates=0)
        with progress("tiny", todo, meter, console, **options) as finished:
            meter.updates = 7
            for cell in todo[:2]:
                finished(cell.key, None)
        return console.file.getvalue()

    return show


def test_the_bar_counts_finished_cells(displayed):
    said = displayed(CELLS, refits=False)
    assert "tiny" in said
    assert "2 of 3 cells" in said
    assert "decisions/s" in said
    assert "refits" not in said


def test_refits_are_counted_where_networks_are_trained(displayed):
    assert "7 refits" in displayed(CELLS, refits=True)


def test_there_is_no_bar_where_nothing_is_to_run(displayed):
    assert displayed([], refits=True) == ""
