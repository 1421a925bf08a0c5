import pytest
from matplotlib.figure import Figure


@pytest.fixture
def drawn(monkeypatch):
    """Figures by the name of their file; the files are empty, because rendering takes long."""
    kept = {}

    def keep(figure, path, **options):
        kept[path.name] = figure
        path.touch()

    monkeypatch.setattr(Figure, "savefig", keep)
    return kept
