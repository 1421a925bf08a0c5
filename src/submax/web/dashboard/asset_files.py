"""The scripts and styles of the pages, which come with the package."""

import hashlib
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
"""The media types of assets, by the end of their names."""


class Asset(NamedTuple):
    """The bytes of an asset and its media type."""

    content: bytes
    media: str


class Assets:
    """All assets in memory, by path.

    ``tag`` is a part of their addresses that changes with them, so that browsers may keep them.
    """

    def __init__(self) -> None:
        self._files = dict(_read(files("submax.web.dashboard") / "assets", ""))
        digest = hashlib.sha256()
        for path, asset in sorted(self._files.items()):
            digest.update(path.encode() + asset.content)
        self.tag = digest.hexdigest()[:12]

    def get(self, path: str) -> Asset | None:
        """The asset at a path, None if there is none."""
        return self._files.get(path)

    def paths(self) -> list[str]:
        """The paths of all assets."""
        return sorted(self._files)


def _read(folder: Traversable, prefix: str) -> list[tuple[str, Asset]]:
    found: list[tuple[str, Asset]] = []
    for one in folder.iterdir():
        if one.is_dir():
            found += _read(one, f"{prefix}{one.name}/")
            continue
        end = one.name[one.name.rfind(".") :]
        if end in TYPES:
            found.append((f"{prefix}{one.name}", Asset(one.read_bytes(), TYPES[end])))
    return found
