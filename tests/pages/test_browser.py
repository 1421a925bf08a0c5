"""The pages in a real browser: nothing foreign, no message in the console, usable by everybody."""

import signal
import time
from pathlib import Path

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect
from submax.live.monitoring.alarms.alarm_log import AlarmLog
from submax.live.monitoring.alarms.alarm_records import Alarm
from submax.web.server.pages.operations import page_operations
from waiting import wait_until

import submax

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.slow]
# This machine may be busy.
expect.set_options(timeout=30_000)
HOURS = 4
HOURLY = 300
"""Decisions in each hour, many enough that one arm is surely ahead."""
CHANCE = {"Plain": 0.2, "Bold": 0.5, "Broken": 0.0}
NASTY = "<img/src=x/onerror=alert(1)>\"'</script>"
OF_BANDIT = [one.path for one in page_operations() if "{name}" in one.path]
PATHS = ["/", "/keys", "/audit", *OF_BANDIT]


@pytest.fixture(scope="module")
def address(tmp_path_factory, start_server):
    file = tmp_path_factory.mktemp("pages") / "shop.db"
    fill(file)
    fill_with_scripts(file)
    return start_server(file).address


def fill(file: Path) -> None:
    """A bandit that was used for some hours; one arm never gets a reward, and there is an alarm."""
    now, rng = [time.time() - HOURS * 3600], np.random.default_rng(0)
    bandit = submax.open(
        file,
        name="headline",
        actions=[*CHANCE],
        reward_wait=60,
        guard_rails={"holdout": 0.1, "baseline": "Plain", "minimum": 0.05},
        clock=lambda: now[0],
        rng=rng,
        background=False,
    )
    for _ in range(HOURS):
        made = bandit.decide_many([{}] * HOURLY)
        bandit.reward_many(
            [{"id": one.id, "value": float(rng.random() < CHANCE[one.action])} for one in made]
        )
        now[0] += 3600
        bandit.refit()
    alarm = Alarm("reward-rate", f"rewards have fallen {NASTY}", {"before": 0.5, "now": 0.1})
    AlarmLog(bandit.store, "headline").raise_alarm(alarm, None)
    bandit.close()


def fill_with_scripts(file: Path) -> None:
    bandit = submax.open(
        file,
        name="nasty",
        actions={NASTY: ["A", NASTY], "other": ["x", "y"]},
        context={NASTY: [NASTY, "b"], "age": float},
        reward_wait=0,
        background=False,
    )
    request = {"context": {NASTY: NASTY, "age": 1.0}, "unit": NASTY}
    bandit.decide_many([*[request] * 40, {**request, "id": NASTY}])
    bandit.reward(NASTY, 1.0, key=NASTY)
    bandit.close()


@pytest.fixture
def page(quiet_tab, address):
    """A page that asks nobody anything: a script of a name would show a dialog."""
    page, asked = quiet_tab(address), []

    def accept(dialog):
        asked.append(dialog.message)
        dialog.accept()

    page.on("dialog", accept)
    yield page
    page.remove_listener("dialog", accept)
    assert "1" not in asked


@pytest.mark.parametrize("path", PATHS)
def test_a_page_fits_a_phone_and_everybody_can_use_it(page: Page, path):
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(path.format(name="headline"))
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.set_viewport_size({"width": 1200, "height": 900})
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.locator("img").count() == 0
    page.keyboard.press("Tab")
    # Who uses the keyboard skips the navigation.
    assert page.locator(":focus").get_attribute("href") == "#content"


def test_charts_are_drawn_from_their_tables(page: Page):
    page.goto("/bandits/headline/arms")
    canvas = page.locator("figure[data-chart] canvas")
    canvas.wait_for()
    painted = canvas.evaluate(
        "one => new Set(one.getContext('2d').getImageData(0, 0, one.width, one.height).data).size"
    )
    assert painted > 10


def test_scripts_and_quotes_in_every_name_are_text(page: Page):
    for path in OF_BANDIT:
        page.goto(path.format(name="nasty"))
        assert page.locator("img").count() == 0
    page.goto("/bandits/nasty/decisions")
    page.get_by_role("link", name=NASTY, exact=True).first.click()
    page.get_by_role("textbox", name="by unit").fill(NASTY)
    page.get_by_role("search", name="By unit").get_by_role("button").click()
    page.locator("tbody th a", has_text=NASTY).click()
    expect(page.get_by_role("heading", name="What could have been chosen")).to_be_visible()
    assert page.locator("img").count() == 0
    assert NASTY in page.locator("main").inner_text()


def test_a_journey_through_the_pages(tab, address):
    page = tab(address)
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto("/")
    row = page.get_by_role("row").filter(has_text="headline")
    row.get_by_role("link", name="alert").click()
    page.get_by_role("button", name="Acknowledge all alarms").click()
    expect(page.get_by_role("cell", name="over", exact=True)).to_be_visible()
    page.get_by_role("link", name="Overview").click()
    # The winner, and the arm that is broken.
    expect(page.locator(".lead").first).to_contain_text("Bold")
    expect(page.locator("main")).to_contain_text("Broken")
    page.get_by_role("link", name="Arms").click()
    page.get_by_role("button", name="Pause Broken").click()
    page.get_by_role("button", name="Resume Broken").wait_for()
    page.get_by_role("link", name="Versions").click()
    page.get_by_role("button", name="Roll back").click()
    page.get_by_text("is held").first.wait_for()
    change_settings(page)
    find_a_decision(page)
    page.goto("/audit")
    assert "roll-back" in page.locator("main").inner_text()
    page.close()


def change_settings(page: Page) -> None:
    page.get_by_role("link", name="Settings").click()
    form = page.locator("form.setting", has_text="refit rows")
    form.get_by_label("rows", exact=True).fill("0")
    form.get_by_role("button").click()
    # The error is beside the field, and nothing was changed.
    expect(form.get_by_role("alert")).to_contain_text("refit_rows")
    form.get_by_label("rows", exact=True).fill("75")
    form.get_by_role("button").click()
    expect(form.get_by_label("rows", exact=True)).to_have_value("75")
    page.get_by_role("button", name="Pause the bandit").click()
    page.get_by_role("button", name="Resume the bandit").click()
    page.get_by_role("button", name="Pause the bandit").wait_for()


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
    page.locator("#reward-table summary").click()
    decide_and_wait(page, server, 776, 777)
    # What was unfolded stays so.
    expect(page.locator("#reward-table")).to_have_attribute("open", "")
    server.signal(signal.SIGKILL)
    server.ended()
    gone = page.get_by_text("The server does not answer.")
    load_again(page)
    expect(gone).to_be_visible()
    again = start_server(file, server.port)
    decide_and_wait(page, again, 111, 888)
    expect(gone).to_have_count(0)
    page.close()


def decide_and_wait(page: Page, server, count: int, total: int) -> None:
    """Make decisions, and wait until the page shows how many there are."""
    made = server.post("/bandits/b/decide-many", json={"requests": [{}] * count}, timeout=60)
    assert made.status_code == 200

    def is_shown():
        load_again(page)
        return page.locator("dd", has_text=str(total)).count() == 1

    wait_until(is_shown)


def load_again(page: Page) -> None:
    """Pages load themselves again after some seconds, which pass at once here."""
    page.clock.fast_forward(30_000)
