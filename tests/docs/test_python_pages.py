"""Every public name has its place on a page of the site."""

from pathlib import Path

import pytest

import submax

ROOT = Path(__file__).parents[2]


@pytest.fixture
def pages(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from docs.generators.site.python_pages import python_pages

    return python_pages()


def test_every_name_of_the_client_is_on_a_page(pages):
    client = pages["reference/python/client.md"]
    others = "\n".join(text for text in pages.values() if text != client)
    for name in submax.client.__all__:
        assert f"heading: submax.client.{name}\n" in client or f"heading: submax.{name}\n" in others
    for name in ("AsyncClient", "Client", "DeadlineError", "Decision", "Receipt"):
        assert f"heading: submax.client.{name}\n" in client
