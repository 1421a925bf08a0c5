"""Renders pages from templates."""

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from submax._version import __version__
from submax.dashboard.formats import FORMATS, interval
from submax.dashboard.page import Page
from submax.dashboard.viewer import Viewer


class Renderer:
    """Renders pages; ``assets`` is the address below which scripts and styles are found."""

    def __init__(self, assets: str) -> None:
        self._environment = Environment(
            loader=PackageLoader("submax.dashboard", "templates"),
            # Every name and text is shown as text, whatever it holds.
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters.update(FORMATS)
        self._environment.globals.update(interval=interval, version=__version__, assets=assets)

    def render(self, page: Page, data: Any, viewer: Viewer, address: str) -> bytes:
        """The page as HTML; ``address`` is the path at which it was asked for."""
        template = self._environment.get_template(page.template)
        return template.render(page=page, data=data, viewer=viewer, address=address).encode()
