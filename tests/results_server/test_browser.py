"""The pages on results in a real browser, and a sweep that is followed from begin to end."""

import re
import signal
from contextlib import contextmanager

import pytest
from axe_playwright_python.sync_playwright import Axe
from forked_command import start_command
from playwright.sync_api import expect

from submax.web.results_server.result_pages import PAGES

pytestmark = pytest.mark.xdist_group("browser")
PATHS = [*(one.path.format(name="one") for one in PAGES), "/compare?left=one&right=other"]
DISPLAYS = "all => all.map((one) => getComputedStyle(one).display)"
POLICY = """
import time
from dataclasses import dataclass

from submax.policies.classic.random import Random


@dataclass(frozen=True)
class Slow(Random):
    def act(self, state, context, rng):
        time.sleep(0.05)
        return super().act(state, context, rng)
"""
SWEEP = """
observations = 60
replicas = 2
points = 10
policies = ["random", { name = "slow", kind = "slow.py:Slow" }]
[environment]
kind = "bernoulli"
arms = [2, 3]
"""


@contextmanager
def dashboard(folder):
    """The command in a process of its own; yields the address that it prints."""
    process = start_command("dashboard", folder, "--port", 0)
    try:
        yield re.search(r"http://\S+", process.stderr.readline()).group()
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
    assert process.returncode == 0


@pytest.fixture(scope="module")
def address(results):
    with dashboard(results) as address:
        yield address


@pytest.mark.parametrize("path", PATHS)
def test_a_page_opens_and_everybody_can_use_it_also_on_a_phone(quiet_tab, address, path):
    page = quiet_tab(address)
    page.goto(path)
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    # Columns may be left out on a phone, but not the names of the rows.
    assert "none" not in page.locator("tbody th").evaluate_all(DISPLAYS)


def test_policies_are_switched_off_by_the_keyboard_and_stay_so(quiet_tab, address):
    page = quiet_tab(address)
    page.goto("/folders/one")
    picture = "document.querySelector('figure canvas').toDataURL()"
    page.locator("figure canvas").wait_for()
    before = page.evaluate(picture)
    page.get_by_role("checkbox", name="random").focus()
    page.keyboard.press("Space")
    assert page.evaluate(picture) != before
    page.reload()
    expect(page.get_by_role("checkbox", name="random")).not_to_be_checked()
    page.get_by_role("button", name="All").click()
    expect(page.get_by_role("checkbox", name="random")).to_be_checked()
    assert page.evaluate(picture) == before


def test_a_comparison_that_takes_long_says_that_it_is_made(quiet_tab, address):
    page = quiet_tab(address)
    page.goto("/folders/one")
    # The browser would wait for the next page before it says anything about this one.
    page.evaluate("addEventListener('click', (event) => event.preventDefault())")
    page.get_by_role("link", name="Compare", exact=True).click()
    expect(page.get_by_text("The policies are being compared …")).to_be_visible()
    expect(page.locator("main")).to_have_attribute("aria-busy", "true")
    page.evaluate("dispatchEvent(new Event('pageshow'))")
    expect(page.locator("#loading")).to_be_empty()


def test_a_sweep_is_followed_from_its_begin_to_its_end(quiet_tab, tmp_path):
    (tmp_path / "slow.py").write_text(POLICY, encoding="utf-8")
    (tmp_path / "sweep.toml").write_text(SWEEP, encoding="utf-8")
    results = tmp_path / "results"
    results.mkdir()
    with dashboard(results) as address:
        page = quiet_tab(address)
        page.goto("/")
        expect(page.get_by_text("There are no results in results yet.")).to_be_visible()
        options = ["--out", results, "--jobs", 1, "--no-figures"]
        run = start_command("simulate", tmp_path / "sweep.toml", *options)
        # The page is never loaded again by hand: it follows the run by itself.
        page.get_by_role("link", name="sweep").click(timeout=60_000)
        expect(page.get_by_role("cell", name="running").first).to_be_visible(timeout=60_000)
        expect(page.get_by_text(re.compile("[123] of 4 cells are done"))).to_be_visible(
            timeout=60_000
        )
        expect(page.get_by_text("All results are written, of 4 cells.")).to_be_visible(
            timeout=60_000
        )
        expect(page.locator("figure canvas")).to_be_visible()
        run.communicate(timeout=60)
        assert run.returncode == 0
        page.get_by_role("link", name="Compare", exact=True).click()
        expect(page.get_by_text("random − slow").first).to_be_visible()
        # A page that is open would miss the server when it ends.
        page.close()
