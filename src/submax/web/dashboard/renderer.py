"""Renders pages from templates."""

from jinja2 import Environment, PackageLoader, StrictUndefined

from submax._version import __version__
from submax.web.dashboard.chart_rows import chart_rows
from submax.web.dashboard.formats import FORMATS, interval, uncertain
from submax.web.dashboard.page_view import PageView


class Renderer:
    """Renders pages; ``assets`` is the address below which scripts and styles are found."""

    def __init__(self, assets: str) -> None:
        self._environment = Environment(
            loader=PackageLoader("submax.web.dashboard", "templates"),
            # Every name and text is shown as text, whatever it holds.
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters.update(FORMATS)
        self._environment.globals.update(
            interval=interval,
            uncertain=uncertain,
            chart_rows=chart_rows,
            version=__version__,
            assets=assets,
        )

    def render(self, view: PageView) -> bytes:
        """The page as HTML."""
        template = self._environment.get_template(view.page.template)
        return template.render(
            page=view.page,
            data=view.data,
            viewer=view.viewer,
            address=view.address,
            tag=view.tag,
        ).encode()
