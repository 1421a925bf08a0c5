"""The site is built once, and everything on it is looked at: links, loads, pages, search."""

import html
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
LOADED = re.compile(r'<(?:script|link|img|iframe|source)\b[^>]*?\s(?:src|href)="([^"]*)"')
"""What a browser loads for a page."""
LOADED_BY_STYLE = re.compile(r"(?:url\(|@import )\W*(?:https?:)?//[^)]*")
ADDRESS = re.compile(r"https?://[\w./@-]+")
LOADED_IF_USED = {
    "https://unpkg.com/mermaid": 'class="mermaid"',
    "https://unpkg.com/glightbox": 'class="glightbox',
    "https://unpkg.com/pyodide": "data-md-pyodide",
    "https://cdn.jsdelivr.net/pyodide": "data-md-pyodide",
    "https://unpkg.com/ace-builds": "data-md-pyodide",
    "https://api.github.com": 'data-md-component="source"',
}
"""What the script of the theme would load, and what a page must have for it: no page has it."""
NOT_LOADED = ("http://www.w3.org/", "https://unpkg.com/resize-observer-polyfill")
"""Names of XML dialects, and a part that browsers have had since 2020."""
pytestmark = [pytest.mark.xdist_group("site"), pytest.mark.soak]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("built")
    with pytest.MonkeyPatch.context() as patch, (folder / "said").open("w+") as output:
        patch.syspath_prepend(ROOT)
        patch.setenv("NO_COLOR", "1")
        from docs.generators.site.__main__ import build

        try:
            build(folder / "site", output)
        finally:
            output.seek(0)
            said = output.read()
            print(said)
    assert "warning" not in said.lower()
    return folder / "site"


@pytest.fixture(scope="module")
def pages(built):
    """The text of every page of the site by its path."""
    return {path: path.read_text(encoding="utf-8") for path in sorted(built.rglob("*.html"))}


def place(page):
    """Where a page of docs/ stands in the site."""
    inside = page.relative_to(DOCS).with_suffix(".html").as_posix()
    return re.sub(r"README\.html$", "index.html", inside)


def test_every_page_of_the_documents_is_in_the_navigation(pages, built):
    home = pages[built / "index.html"]
    named = set(re.findall(r'<a href="(?:\./)?([^"]+)" class="md-nav__link', home))
    assert not {place(page) for page in PAGES} - named - {"index.html"}


def test_every_link_and_anchor_leads_somewhere(pages, built):
    anchors = {
        path: {html.unescape(one) for one in re.findall(r'\b(?:id|name)="([^"]*)"', text)}
        for path, text in pages.items()
    }

    def leads(page, link):
        parts = urlsplit(html.unescape(link))
        if parts.scheme or parts.netloc:
            return True
        target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
        if target.is_dir():
            target /= "index.html"
        known = target not in anchors or not parts.fragment
        return target.is_file() and (known or unquote(parts.fragment) in anchors[target])

    broken = [
        (page.relative_to(built).as_posix(), link)
        for page, text in pages.items()
        if page.name != "404.html"  # its links begin at the root of a server
        for link in set(re.findall(r'\b(?:href|src)="([^"]*)"', text))
        if not leads(page, link)
    ]
    assert not broken


def test_nothing_is_loaded_from_elsewhere(pages, built):
    for path, text in pages.items():
        assert not [one for one in LOADED.findall(text) if urlsplit(one).netloc], path
        assert not [sign for sign in LOADED_IF_USED.values() if sign in text], path
    for path in built.rglob("*.css"):
        assert not LOADED_BY_STYLE.findall(path.read_text(encoding="utf-8")), path
    known = (*LOADED_IF_USED, *NOT_LOADED)
    for path in (built / "assets").rglob("*.js"):
        found = ADDRESS.findall(path.read_text(encoding="utf-8"))
        assert not [one for one in found if not one.startswith(known)], path


def test_search_finds_words_on_pages_that_are_opened_as_files(browser, built):
    page = browser.new_page()
    asked, failed = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: failed.append(error))
    page.goto((built / "index.html").as_uri())
    page.keyboard.press("Control+k")
    # The box is filled when it is there: keys that come before are lost.
    page.get_by_placeholder("Search").fill("quarantine")
    page.get_by_text("Type Receipt").wait_for()
    page.close()
    assert not [url for url in asked if not url.startswith("file:")]
    assert not failed
