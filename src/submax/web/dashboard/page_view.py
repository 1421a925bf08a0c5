"""A page as one person sees it."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from submax.web.dashboard.page import Page
from submax.web.dashboard.viewer import Viewer


@dataclass(frozen=True)
class PageView:
    """A page with the data that it shows, to whom, and the path at which it was asked for."""

    page: Page
    data: Any
    viewer: Viewer
    address: str

    @cached_property
    def tag(self) -> str:
        """An entity tag (RFC 9110), which changes if anything on the page does."""
        shown = self.page, self.data, self.viewer, self.address
        return f'"{hashlib.sha256(msgspec.json.encode(shown)).hexdigest()[:32]}"'
