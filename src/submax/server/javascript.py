"""The client for web pages and Node, which a server gives to every program that asks."""

import gzip
import io
import tarfile
from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

from submax.server.limits import RefusedError

PATH = "/javascript/{name}"
ARCHIVE = "submax.tgz"
"""All files as a package of npm: ``npm install http://127.0.0.1:8000/javascript/submax.tgz``."""
MEDIA = {
    "js": "text/javascript; charset=utf-8",
    "ts": "text/plain; charset=utf-8",
    "json": "application/json",
    "tgz": "application/gzip",
}
HEADERS = {
    # Pages of every site may import the code, which has no secrets; a decision needs more.
    "Access-Control-Allow-Origin": "*",
    "Cross-Origin-Resource-Policy": "cross-origin",
    # A page gets the client of the server that answers, also after an upgrade.
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
}


async def answer(request: Request) -> Response:
    """A file of the client; no key is needed."""
    name = request.path_params["name"]
    if (content := _files().get(name)) is None:
        raise RefusedError(404, f"there is no file {name!r:.80}: the client begins with index.js")
    return Response(content, headers=HEADERS, media_type=MEDIA[name.rpartition(".")[2]])


@cache
def _files() -> dict[str, bytes]:
    folder = files("submax.client") / "javascript"
    found = {one.name: one.read_bytes() for one in folder.iterdir()}
    found = {name: one for name, one in found.items() if name.rpartition(".")[2] in MEDIA}
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        for name, content in sorted(found.items()):
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    # npm remembers the hash, which must be the same for the same files.
    return found | {ARCHIVE: gzip.compress(written.getvalue(), mtime=0)}
