"""What people do with the pages, in a real browser."""

import signal

import pytest
from playwright.sync_api import Page, expect

from submax.live.bandits.open import open_bandit

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.slow]
NASTY = "<img/src=x/onerror=alert(1)>\"'</script>"
CHANCE = {"A": 0.2, "B": 0.6, "C": 0.0}


@pytest.fixture(scope="module")
def server(tmp_path_factory, start_server):
    server = start_server(tmp_path_factory.mktemp("journey") / "shop.db")
    server.wait_ready()
    return server


@pytest.fixture
def page(tab, server):
    """A page that fails the test if a script shows a dialog that nobody asked for."""
    page = tab(server.address)
    page.set_default_timeout(20_000)
    asked = []
    page.on("dialog", lambda dialog: (asked.append(dialog.message), dialog.accept()))
    yield page
    page.close()
    assert "1" not in asked


def post(server, path, body):
    answer = server.post(path, json=body, timeout=30)
    assert answer.status_code < 300, answer.text
    return answer.json()


def traffic(server, rng, count=300):
    requests = {"requests": [{}] * count}
    made = post(server, "/bandits/journey/decide-many", requests)["decisions"]
    rewards = [
        {"id": one["id"], "value": float(rng.random() < CHANCE[one["action"]])} for one in made
    ]
    post(server, "/bandits/journey/reward-many", {"rewards": rewards})


def test_declare_a_bandit_send_traffic_see_the_winner_pause_an_arm_and_roll_back(
    page: Page, server, rng
):
    page.goto("/")
    expect(page.get_by_text("There is no bandit yet.")).to_be_visible()
    declared = {"name": "journey", "actions": [*CHANCE], "reward_wait": 0, "refit_rows": 50}
    post(server, "/bandits", {**declared, "guard_rails": {"minimum": 0.1}})
    for _ in range(5):
        traffic(server, rng)
    # The page loads itself again.
    page.get_by_role("link", name="journey").click()
    expect(page.get_by_text("B is ahead of A by")).to_be_visible(timeout=20_000)
    expect(page.get_by_text("No reward has ever come for C")).to_be_visible(timeout=20_000)
    page.get_by_role("link", name="Arms").click()
    page.get_by_role("button", name="Pause C").click()
    page.get_by_role("button", name="Resume C").wait_for()
    page.get_by_role("link", name="Versions").click()
    page.get_by_role("button", name="Roll back").click()
    page.get_by_text("and is held").wait_for()
    change_settings(page)
    find_a_decision(page)


def change_settings(page: Page) -> None:
    page.get_by_role("link", name="Settings").click()
    form = page.locator("form.setting", has_text="refit rows")
    form.get_by_label("rows", exact=True).fill("0")
    form.get_by_role("button").click()
    # The error is beside the field, and nothing was changed.
    expect(form.get_by_role("alert")).to_contain_text("refit_rows")
    form.get_by_label("rows", exact=True).fill("75")
    form.get_by_role("button").click()
    expect(page.get_by_text("Changed refit rows.")).to_be_visible()
    page.get_by_role("button", name="Pause the bandit").click()
    page.get_by_role("button", name="Resume the bandit").click()
    page.get_by_role("button", name="Pause the bandit").wait_for()
    page.get_by_label("policy of the shadow").fill("no-such-policy")
    page.get_by_role("button", name="Set the shadow").click()
    expect(page.locator("#shadow-error")).to_contain_text("no-such-policy")


def find_a_decision(page: Page) -> None:
    page.get_by_role("link", name="Decisions").click()
    page.locator("tbody a").first.click()
    expect(page.get_by_text("What could have been chosen")).to_be_visible()
    page.get_by_role("textbox", name="by id").fill("no-such-decision")
    page.get_by_role("search", name="By id").get_by_role("button").click()
    expect(page.get_by_role("alert")).to_contain_text("has the id no-such-decision")


def test_scripts_and_quotes_in_every_name_are_text(page: Page, server):
    declared = {
        "name": "nasty",
        "actions": {NASTY: ["A", NASTY], "other": ["x", "y"]},
        "context": {NASTY: [NASTY, "b"], "age": "number"},
        "reward_wait": 0,
    }
    post(server, "/bandits", declared)
    request = {"context": {NASTY: NASTY, "age": 1.0}, "unit": NASTY}
    post(server, "/bandits/nasty/decide-many", {"requests": [request] * 40})
    post(server, "/bandits/nasty/decide", {**request, "id": NASTY})
    post(server, "/bandits/nasty/reward", {"id": NASTY, "value": 1.0, "key": NASTY})
    paths = ["overview", "arms", "contexts", "decisions", "version-history", "health", "settings"]
    for path in paths:
        page.goto(f"/bandits/nasty/{path}")
        assert page.locator("img").count() == 0
    page.goto("/bandits/nasty/decisions")
    page.get_by_role("link", name=NASTY, exact=True).first.click()
    page.get_by_role("textbox", name="by unit").fill(NASTY)
    page.get_by_role("search", name="By unit").get_by_role("button").click()
    page.locator("tbody th a", has_text=NASTY).click()
    expect(page.get_by_role("heading", name="What could have been chosen")).to_be_visible()
    assert page.locator("img").count() == 0
    assert NASTY in page.locator("main").inner_text()


def test_a_page_says_when_the_server_is_gone_and_goes_on_when_it_is_back(
    page: Page, start_server, tmp_path
):
    declared = {"name": "b", "actions": ["A", "B"], "reward_wait": 0}
    open_bandit(tmp_path / "gone.db", **declared, background=False).close()
    server = start_server(tmp_path / "gone.db")
    server.wait_ready()
    page.goto(f"{server.address}/bandits/b/overview")
    server.signal(signal.SIGKILL)
    server.ended()
    gone = page.get_by_text("The server does not answer.")
    expect(gone).to_be_visible(timeout=15_000)
    again = start_server(server.file, server.port)
    again.wait_ready()
    post(again, "/bandits/b/decide-many", {"requests": [{}] * 7})
    expect(gone).to_have_count(0, timeout=15_000)
    expect(page.locator("dd", has_text="7")).to_be_visible(timeout=15_000)
