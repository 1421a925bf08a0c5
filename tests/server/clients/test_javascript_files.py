"""The server gives the JavaScript client to everybody, and a page of another site can use it."""

import contextlib
import functools
import http.server
import io
import json
import re
import tarfile
import threading
from pathlib import Path

import pytest
from playwright.sync_api import expect

from submax.web.server.access.key_registry import KeyRegistry

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src" / "submax" / "web" / "server" / "client" / "javascript"
README = ROOT / "clients" / "typescript" / "README.md"


def test_every_file_is_given_without_a_key_and_to_pages_of_all_sites(http, store):
    KeyRegistry(store).add(["admin"])
    for path in SOURCE.iterdir():
        answer = http.get(f"/javascript/{path.name}")
        assert answer.content == path.read_bytes()
        assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert http.get("/javascript/index.js").headers["content-type"].startswith("text/javascript")
    assert http.get("/javascript/main.js").status_code == 404


def test_the_archive_is_a_package_of_npm_and_is_the_same_each_time(serving, store):
    first, second = (serving(store).get("/javascript/submax.tgz").content for _ in range(2))
    assert first == second
    with tarfile.open(fileobj=io.BytesIO(first)) as archive:
        found = {one.name: archive.extractfile(one).read() for one in archive}
    assert found == {f"package/{path.name}": path.read_bytes() for path in SOURCE.iterdir()}


@contextlib.contextmanager
def site_of(folder):
    """Serve the files of a folder as a web site, and give its address."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        yield f"http://localhost:{site.server_port}"
        site.shutdown()


@pytest.mark.slow
@pytest.mark.xdist_group("browser")
def test_the_page_of_the_readme_decides_and_rewards_in_a_browser(serve, browser, tmp_path):
    text = README.read_text(encoding="utf-8")
    (page,) = re.findall(r"```html\n(.*?)```", text, re.DOTALL)
    (declared,) = re.findall(r"curl --json '(.*?)'", text)
    with site_of(tmp_path) as site:
        server = serve(tmp_path / "shop.db", 0, "--origin", site)
        server.wait_ready()
        (tmp_path / "lamps.html").write_text(page.replace("http://127.0.0.1:8000", server.address))
        answer = server.post("/bandits", json=json.loads(declared), timeout=90)
        answer.raise_for_status()
        shown = browser.new_page()
        shown.goto(f"{site}/lamps.html")
        shown.click("text=Buy")
        expect(shown.locator("#headline")).to_have_text(re.compile(r"A good lamp\.|THE lamp!"))
        expect(shown.locator("#buy")).to_have_text("Sold (accepted)")
        shown.close()
