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

from submax.server.demo import NAME, make_past

FOLDER = Path(__file__).resolve().parents[1] / "how-to" / "dashboard"


def main() -> None:
    """Serve the bandit of the demo, and take pictures of its pages."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / f"{NAME}.db"
        make_past(file, np.random.default_rng(1))
        command = [sys.executable, "-m", "submax", "serve", str(file), "--port", "0"]
        path = shutil.which("chromium") or shutil.which("chromium-browser")
        with (
            subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server,
            playwright.chromium.launch(executable_path=path, args=["--no-sandbox"]) as browser,
        ):
            assert server.stderr is not None
            address = server.stderr.readline().rpartition(" ")[2].strip()
            page = browser.new_page(viewport={"width": 1180, "height": 860})
            take_pictures(page, f"{address}/bandits/{NAME}")
            server.terminate()
            server.stderr.read()


def take_pictures(page: Page, bandit: str) -> None:
    """Write the pictures, once the server has opened the bandit and read its log."""
    page.set_default_timeout(60_000)
    while not page.goto(f"{bandit}/overview") or not page.locator("canvas").count():
        page.wait_for_timeout(300)
    for name in ("overview", "arms"):
        page.goto(f"{bandit}/{name}")
        page.locator("canvas, table.segments").first.wait_for()
        page.screenshot(path=FOLDER / f"{name}.png")
    page.goto(f"{bandit}/decisions")
    page.locator("tbody a").first.click()
    page.get_by_text("What could have been chosen").wait_for()
    page.screenshot(path=FOLDER / "decision.png", full_page=True)


if __name__ == "__main__":
    main()
