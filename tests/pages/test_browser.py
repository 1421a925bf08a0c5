"""The pages in a real browser: nothing foreign, no message in the console, usable by everybody."""

import functools
import time

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect
from waiting import wait_until

import submax
from submax.server.pages.routes import PAGES

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.slow]
# This machine may be busy.
expect.set_options(timeout=30_000)
HOURS = 4
HOURLY = 300
"""Decisions in each hour, many enough that one arm is surely ahead."""
CHANCE = {"Plain": 0.2, "Bold": 0.5, "Broken": 0.0}
OF_BANDIT = [f"/bandits/{{name}}/{end}" for end in PAGES]
PATHS = ["/", "/keys", "/audit", "/login", *OF_BANDIT]
MODES = [(390, "light"), (390, "dark"), (1280, "light"), (1280, "dark")]


@pytest.fixture(scope="module")
def address(tmp_path_factory, start_server):
    """A server with a bandit that was used for some hours; one arm never gets a reward."""
    file = tmp_path_factory.mktemp("pages") / "shop.db"
    now, rng = [time.time() - HOURS * 3600], np.random.default_rng(0)
    rails = {"holdout": 0.1, "baseline": "Plain", "minimum": 0.05}
    options = {"reward_wait": 60, "guard_rails": rails, "rng": rng, "background": False}
    with submax.open(
        file, name="headline", actions=[*CHANCE], clock=lambda: now[0], **options
    ) as bandit:
        for _ in range(HOURS):
            made = bandit.decide_many([{}] * HOURLY)
            bandit.reward_many(
                [{"id": one.id, "value": float(rng.random() < CHANCE[one.action])} for one in made]
            )
            now[0] += 3600
            bandit.refit()
    return start_server(file).address


@pytest.fixture(scope="module")
def tab(browser):
    """Opens pages as tabs of one window for each address, since a new window costs a second."""

    @functools.cache
    def window(address: str):
        opened = browser.new_context(base_url=address, viewport={"width": 1200, "height": 900})
        # A window is closed with its last tab.
        opened.new_page()
        return opened

    return lambda address: window(address).new_page()


@pytest.fixture
def page(tab, address):
    """A page that loads nothing foreign and says nothing in the console."""
    page, said = tab(address), []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda one: one.url.startswith(address) or said.append(one.url))
    yield page
    page.close()
    assert said == []


@pytest.mark.parametrize("path", PATHS)
def test_a_page_fits_every_window_and_everybody_can_use_it(page: Page, path):
    page.goto(path.format(name="headline"))
    for width, scheme in MODES:
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        if width == 1280:
            found = Axe().run(page)
            assert found.violations_count == 0, found.generate_report()
    assert page.locator("img").count() == 0
    page.keyboard.press("Tab")
    # Who uses the keyboard skips the navigation.
    assert page.locator(":focus").get_attribute("href") == "#content"


def test_charts_are_drawn_from_their_tables(page: Page):
    page.goto("/bandits/headline/overview")
    canvas = page.locator("figure[data-chart] canvas").first
    canvas.wait_for()
    assert page.locator("figure[data-chart] canvas").count() == 2
    painted = canvas.evaluate(
        "one => new Set(one.getContext('2d').getImageData(0, 0, one.width, one.height).data).size"
    )
    assert painted > 10


def test_a_journey_through_the_pages(tab, address):
    page, asked = tab(address), []

    def accept(dialog):
        asked.append(dialog.message)
        dialog.accept()

    page.on("dialog", accept)
    page.goto("/")
    row = page.get_by_role("row").filter(has_text="headline")
    row.get_by_role("link", name="alert").click()
    expect(page.get_by_role("heading", name="Current problems")).to_be_visible()
    page.get_by_role("link", name="Overview").click()
    # The winner, and the arm that is broken.
    expect(page.locator(".lead").first).to_contain_text("Bold")
    expect(page.locator("main")).to_contain_text("Broken")
    page.get_by_role("link", name="7 days").click()
    expect(page.locator(".switch a[aria-current]")).to_have_text("7 days")
    page.get_by_role("link", name="Arms and segments").click()
    page.get_by_role("button", name="Pause Broken").click()
    page.get_by_role("button", name="Resume Broken").wait_for()
    # The question says what follows.
    assert "no longer see it" in asked[-1]
    page.get_by_label("Add an arm").fill("Fresh")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("button", name="Pause Fresh").wait_for()
    page.get_by_role("link", name="Settings").click()
    page.get_by_role("button", name="Roll back").click()
    page.get_by_text("and held").first.wait_for()
    change_settings(page, asked)
    find_a_decision(page)
    page.goto("/audit")
    assert "roll-back" in page.locator("main").inner_text()
    page.close()


def change_settings(page: Page, asked: list[str]) -> None:
    page.get_by_role("link", name="Settings").click()
    form = page.locator("form.setting")
    assert form.get_by_role("button").count() == 1
    form.get_by_label("refit after (decisions)").fill("0")
    form.get_by_role("button").click()
    # The error is in the form, and nothing was changed.
    expect(form.get_by_role("alert")).to_contain_text("refit_rows")
    form.get_by_label("refit after (decisions)").fill("75")
    form.get_by_label("holdout").fill("0.2")
    loads = []
    page.route("**/settings", lambda route: loads.append(route))
    form.get_by_role("button").click()
    wait_until(lambda: page.wait_for_timeout(20) or loads)
    # What was saved is not sent again before the page shows it.
    expect(form.get_by_role("button")).to_be_disabled()
    loads[0].continue_()
    page.unroute("**/settings")
    page.get_by_text("The settings were changed.").wait_for()
    # The question says from what to what, and what follows.
    assert "refit after (decisions): 100 → 75" in asked[-1]
    assert "holdout: 0.1 → 0.2" in asked[-1]
    assert "start again from zero" in asked[-1]
    expect(page.get_by_label("refit after (decisions)")).to_have_value("75")
    count = len(asked)
    page.locator("form.setting").get_by_role("button").click()
    page.get_by_text("Nothing was changed.").wait_for()
    assert len(asked) == count
    page.get_by_role("button", name="Pause the bandit").click()
    page.get_by_role("button", name="Resume the bandit").click()
    page.get_by_role("button", name="Pause the bandit").wait_for()


def test_a_bandit_is_created_and_a_unit_erased(tab, address):
    page = tab(address)
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto("/")
    page.get_by_label("Name").fill("created")
    page.get_by_label("Arms, separated by commas").fill("plain, bold")
    page.get_by_label("Context").fill("device = phone, desk\nage = number")
    page.get_by_label("Reward wait").fill("600")
    page.get_by_label("Holdout", exact=False).first.fill("0.1")
    create = page.get_by_role("button", name="Create the bandit")
    create.click()
    # A holdout needs a baseline.
    expect(page.locator(".error")).to_contain_text("baseline")
    page.get_by_label("Baseline").fill("plain")
    create.click()
    page.get_by_role("heading", name="created").wait_for()
    expect(page.locator(".lead").first).to_contain_text("600 seconds")
    decided = {"unit": "ann", "context": {"device": "desk", "age": 3.0}}
    assert page.request.post(f"{address}/bandits/created/decide", data=decided).ok
    page.goto("/bandits/created/decisions?unit=ann")
    page.get_by_role("button", name="Delete its decisions").click()
    page.get_by_text("1 decisions were deleted.").wait_for()
    page.goto("/bandits/created/settings")
    page.get_by_role("button", name="Delete the bandit").click()
    page.get_by_role("heading", name="Bandits").wait_for()
    expect(page.get_by_role("link", name="created")).to_have_count(0)
    page.close()


def find_a_decision(page: Page) -> None:
    page.get_by_role("link", name="Decisions").click()
    page.locator("tbody a").first.click()
    expect(page.get_by_role("heading", name="What could have been chosen")).to_be_visible()
    page.get_by_role("textbox", name="by id").fill("no-such-decision")
    page.get_by_role("search", name="By id").get_by_role("button").click()
    expect(page.get_by_role("alert")).to_contain_text("no-such-decision")


def test_a_page_says_when_the_server_is_gone_and_goes_on_when_it_is_back(
    tab, start_server, tmp_path
):
    file = tmp_path / "gone.db"
    with submax.open(file, name="b", actions=["A", "B"], background=False) as bandit:
        bandit.reward(bandit.decide().id, 1.0)
    server = start_server(file)
    page = tab(server.address)
    page.clock.install()
    page.goto("/bandits/b/overview")
    page.locator("#share-table summary").click()
    decide_and_wait(page, server, 776, 777)
    # What was unfolded stays so.
    expect(page.locator("#share-table")).to_have_attribute("open", "")
    server.close()
    gone = page.get_by_text("The server does not answer.")
    load_again(page)
    expect(gone).to_be_visible()
    again = start_server(file, server.port)
    decide_and_wait(page, again, 111, 888)
    expect(gone).to_have_count(0)
    page.close()


def decide_and_wait(page: Page, server, count: int, total: int) -> None:
    """Make decisions, and wait until the page shows how many there are."""
    made = server.post("/bandits/b/decide-many", json={"requests": [{}] * count})
    assert made.status_code == 200

    def is_shown():
        load_again(page)
        return page.locator("dd", has_text=str(total)).count() > 0

    wait_until(is_shown)


def load_again(page: Page) -> None:
    """Pages load themselves again after some seconds, which pass at once here."""
    page.clock.fast_forward(30_000)
