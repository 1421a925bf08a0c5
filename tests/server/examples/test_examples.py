"""The examples are run as a person would: a page is opened, something is bought."""

import importlib.util
import json
import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from in_process import InProcess
from waiting import wait_until

from submax.bandit.durable import open_bandit
from submax.bandit.store import open_store
from submax.server.keys import Keys

FOLDER = Path(__file__).parents[3] / "examples"
SITE = "http://localhost:3000"
HEADLINES = ["A good lamp.", "THE lamp!", "Let there be light."]


@pytest.fixture(scope="module")
def shop(start_server, tmp_path_factory):
    """A server with the bandit of the shops; its keys by name."""
    file = tmp_path_factory.mktemp("shop") / "shop.db"
    open_bandit(file, actions=["plain", "bold", "playful"], background=False).close()
    store = open_store(file)
    registry = Keys(store)
    scopes = ["decide", "reward"]
    keys = {
        "web": registry.add(scopes)[1],
        "page": registry.add(scopes, origins=[SITE])[1],
        "read": registry.add(["read"])[1],
    }
    store.close()
    server = start_server(file)
    return server, keys


@pytest.fixture
def load(monkeypatch, shop):
    """Import an example whose bandit is on the server."""

    def load(name):
        server, keys = shop
        monkeypatch.setenv("SHOP_SUBMAX", server.address)
        monkeypatch.setenv("SHOP_KEY", keys["web"])
        # This machine may be busy.
        monkeypatch.setenv("SHOP_DEADLINE", "60")
        return imported(name, monkeypatch)

    return load


def imported(name, monkeypatch):
    found = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(found)
    monkeypatch.setitem(sys.modules, name, module)
    found.loader.exec_module(module)
    return module


def wait_for_a_reward(shop):
    server, keys = shop
    headers = {"authorization": f"Bearer {keys['read']}"}

    def rewards():
        shown = server.get("/bandits/shop", headers=headers).json()
        return shown["counts"].get("rewards", 0)

    wait_until(rewards)


def visit_of(text):
    assert re.search(r"<h1>(.*?)</h1>", text)[1] in HEADLINES
    return re.search(r'visit(?:=|" value=")([0-9a-f-]{36})', text)[1]


def test_fastapi(load, shop):
    with closing(InProcess(load("fastapi_shop").app)) as client:
        visit = visit_of(client.get("/").text)
        assert client.post("/buy", params={"visit": visit}).json() == {"status": "accepted"}
        assert client.post("/buy", params={"visit": "a b"}).status_code == 400
    wait_for_a_reward(shop)


@pytest.mark.parametrize("example", ["fastapi_shop", "django_shop"])
def test_a_shop_goes_on_if_the_bandit_refuses_to_decide(load, shop, monkeypatch, example):
    """As with a context that it does not know, or a key that was revoked."""
    module = load(example)
    monkeypatch.setattr(
        module, "bandit", type(module.bandit)(shop[0].address, "shop", key=shop[1]["read"])
    )
    if example == "django_shop":
        from django.test import Client

        text = Client().get("/").content.decode()
        module.bandit.close()
    else:
        with closing(InProcess(module.app)) as client:
            text = client.get("/").text
    assert "<h1>A good lamp.</h1>" in text


def test_django(load, shop):
    module = load("django_shop")
    from django.test import Client

    client = Client(enforce_csrf_checks=True)
    shown = client.get("/")
    visit, token = visit_of(shown.content.decode()), shown.cookies["csrftoken"].value
    bought = client.post("/buy", {"visit": visit, "csrfmiddlewaretoken": token})
    assert bought.json() == {"status": "accepted"}
    wrong = client.post("/buy", {"visit": "a b", "csrfmiddlewaretoken": token})
    assert wrong.status_code == 400
    module.bandit.close()
    wait_for_a_reward(shop)


def test_flask(monkeypatch, tmp_path):
    monkeypatch.setenv("SHOP_STORE", str(tmp_path / "shop.db"))
    module = imported("flask_shop", monkeypatch)
    try:
        client = module.app.test_client()
        visit = visit_of(client.get("/").text)
        assert client.post(f"/buy?visit={visit}").json == {"status": "accepted"}
        assert client.post("/buy").status_code == 400
    finally:
        module.bandit.close()


@pytest.mark.needs("node")
@pytest.mark.parametrize("site", [SITE, "https://other.example"])
def test_a_page_in_a_browser(shop, site):
    server, keys = shop
    script = Path(__file__).with_name("page.mjs")
    done = subprocess.run(
        ["node", script, server.address, keys["page"], site],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    headline, button = json.loads(done.stdout)
    if site == SITE:
        assert headline in HEADLINES
        assert button == "Sold (accepted)"
    else:
        assert (headline, button) == ("", "")


def test_the_page_names_files_that_exist_and_no_link_chooses_its_code(shop):
    page = FOLDER / "page" / "index.html"
    text = page.read_text(encoding="utf-8")
    client, script = re.findall(r'from "(.*?)"', text)
    assert (page.parent / script).exists()
    assert shop[0].get(urlsplit(client).path).status_code == 200
    assert "import(" not in text
    assert "location" not in text
