"""Draws the pictures of docs/how-to/dashboard.md from the bandit of ``submax demo``.

It needs Debian's chromium, and the extras for tests.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from playwright.sync_api import Page, sync_playwright

from submax.server.demo import NAME, DemoWorld, make_past

FOLDER = Path(__file__).resolve().parents[1] / "how-to" / "dashboard"
SIZE = {"width": 1180, "height": 860}
SECONDS = 60_000
"""Milliseconds that a page may take, with the start of the server."""


def main() -> None:
    """Make the bandit of the demo, and draw its pages."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{NAME}.db"
        make_past(file, DemoWorld(300.0), np.random.default_rng(1))
        command = [sys.executable, "-m", "submax", "serve", str(file), "--port", "0"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
            assert server.stderr is not None
            address = server.stderr.readline().rpartition(" ")[2].strip()
            try:
                take_pictures(f"{address}/bandits/{NAME}")
            finally:
                server.terminate()
                server.stderr.read()


def take_pictures(bandit: str) -> None:
    """Write the pictures of the pages of a bandit."""
    with sync_playwright() as playwright:
        path = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE)  # type: ignore[arg-type]  # a table with these keys
        page.set_default_timeout(SECONDS)
        wait_for_bandit(page, bandit)
        for name in ("overview", "arms"):
            page.goto(f"{bandit}/{name}")
            page.locator("canvas, table.segments").first.wait_for()
            page.screenshot(path=FOLDER / f"{name}.png")
        page.goto(f"{bandit}/decisions")
        page.locator("tbody a").first.click()
        page.get_by_text("What could have been chosen").wait_for()
        page.screenshot(path=FOLDER / "decision.png", full_page=True)
        browser.close()


def wait_for_bandit(page: Page, bandit: str) -> None:
    """Load the overview again until the server has opened the bandit and read its log."""
    for _ in range(100):
        page.goto(f"{bandit}/overview")
        if page.locator("canvas").count():
            return
        page.wait_for_timeout(300)
    raise SystemExit(f"there is nothing to see at {bandit}: is the server running?")


if __name__ == "__main__":
    main()
