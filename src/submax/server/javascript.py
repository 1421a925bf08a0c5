"""The client for web pages and Node, which a server gives to every program that asks."""

import gzip
import io
import tarfile
from collections.abc import Mapping
from functools import cached_property
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

from submax.server.limits import RefusedError

PATH = "/javascript/{name}"
ARCHIVE = "submax.tgz"
"""All files as a package of npm: ``npm install http://127.0.0.1:8000/javascript/submax.tgz``."""
MEDIA = {
    ".js": "text/javascript; charset=utf-8",
    ".ts": "text/plain; charset=utf-8",
    ".json": "application/json",
    ".tgz": "application/gzip",
}
"""The media types of the files, by the end of their names."""
HEADERS = {
    # Pages of every site may import the code, which has no secrets; a decision needs more.
    "Access-Control-Allow-Origin": "*",
    "Cross-Origin-Resource-Policy": "cross-origin",
    # A page gets the client of the server that answers, also after an upgrade.
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
}


class JavaScriptClient:
    """The files of the client in memory, by name."""

    def __init__(self) -> None:
        folder = files("submax.client") / "javascript"
        self.files = {one.name: one.read_bytes() for one in folder.iterdir() if _ending(one.name)}

    async def answer(self, request: Request) -> Response:
        """Answer with a file; no key is needed."""
        name = request.path_params["name"]
        content = self._package if name == ARCHIVE else self.files.get(name)
        if content is None:
            raise RefusedError(404, f"there is no file {name!r:.80}: it begins with index.js")
        return Response(content, headers=HEADERS, media_type=_ending(name))

    @cached_property
    def _package(self) -> bytes:
        """The package for npm, made for the first request: most servers are never asked for it."""
        return _archive(self.files)


def _ending(name: str) -> str:
    return MEDIA.get(name[name.rfind(".") :], "")


def _archive(contents: Mapping[str, bytes]) -> bytes:
    """Return a package of npm, which is the same for the same files: npm remembers its hash."""
    written = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=written, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for name, content in sorted(contents.items()):
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return written.getvalue()
