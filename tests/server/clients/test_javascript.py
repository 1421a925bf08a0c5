"""The server gives the JavaScript client to everybody, and it runs in Node and in browsers."""

import contextlib
import functools
import http.server
import importlib.util
import io
import json
import re
import subprocess
import tarfile
import threading
from pathlib import Path

import pytest
from playwright.sync_api import expect

from submax._version import __version__

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "clients" / "typescript"
SOURCE = ROOT / "src" / "submax" / "client" / "javascript"
README = (FOLDER / "README.md").read_text(encoding="utf-8")
(DECLARED,) = re.findall(r"curl --json '(.*?)'", README)
together = pytest.mark.xdist_group("typescript")


def run(*command, folder):
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_package_has_the_version_of_the_server():
    package = json.loads((SOURCE / "package.json").read_text(encoding="utf-8"))
    # Packages of npm separate a release candidate by a hyphen, 1.0.0-rc.1 for 1.0.0rc1.
    assert package["version"] == __version__.replace("rc", "-rc.")


def test_the_client_knows_the_operations_of_the_server():
    found = importlib.util.spec_from_file_location("generate", FOLDER / "generate.py")
    generator = importlib.util.module_from_spec(found)
    found.loader.exec_module(generator)
    for name, text in generator.generated().items():
        assert (SOURCE / name).read_text(encoding="utf-8") == text, (
            "run python clients/typescript/generate.py"
        )


@pytest.mark.needs("node")
@pytest.mark.slow
def test_the_tests_of_the_client_pass_in_node():
    run("node", "--test", "test/", folder=FOLDER)


@pytest.fixture(scope="module")
def installed(start_server, tmp_path_factory):
    """A server, and a folder into which npm installed the client from this server."""
    folder = tmp_path_factory.mktemp("installed")
    server = start_server(folder / "page.db")
    (folder / "package.json").write_text('{"type": "module"}')
    archive = f"{server.address}/javascript/submax.tgz"
    run("npm", "install", "--no-audit", "--no-fund", archive, folder=folder)
    return server, folder


@pytest.mark.needs("npm")
@pytest.mark.needs("typescript")
@together
def test_the_example_is_typed_and_runs_against_a_server(installed):
    server, folder = installed
    run("tsc", "-p", ".", "--outDir", folder / "built", folder=FOLDER)
    example = folder / "built" / "examples" / "visit.js"
    for _ in range(2):
        assert "visits Set(1) { 'accepted' }" in run("node", example, server.address, folder=folder)


@pytest.mark.needs("npm")
@together
def test_the_readme_runs_with_the_client_that_npm_installed(installed):
    server, folder = installed
    answer = server.post("/bandits", json=json.loads(DECLARED), timeout=90)
    assert answer.status_code == 201
    (block,) = re.findall(r"```js\n(.*?)```", README, re.DOTALL)
    (folder / "readme.mjs").write_text(block.replace("http://127.0.0.1:8000", server.address))
    assert re.fullmatch(
        r"(plain|bold) was shown; the reward was accepted\n",
        run("node", "readme.mjs", folder=folder),
    )


def test_every_file_is_given_without_a_key_and_to_pages_of_all_sites(http, key):
    key("admin")
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
    (page,) = re.findall(r"```html\n(.*?)```", README, re.DOTALL)
    with site_of(tmp_path) as site:
        server = serve(tmp_path / "shop.db")
        (tmp_path / "lamps.html").write_text(page.replace("http://127.0.0.1:8000", server.address))
        answer = server.post("/bandits", json=json.loads(DECLARED), timeout=90)
        answer.raise_for_status()
        shown = browser.new_page()
        shown.goto(f"{site}/lamps.html")
        # Before the decision is there, a visitor has nothing to buy.
        expect(shown.locator("#headline")).to_have_text(re.compile(r"A good lamp\.|THE lamp!"))
        shown.click("text=Buy")
        expect(shown.locator("#buy")).to_have_text("Sold (accepted)")
        shown.close()
