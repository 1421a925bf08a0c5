import re
from pathlib import Path

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from refusals import raises_code

from submax.evaluation import Log, compare

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def found(seed):
    rng, rows = np.random.default_rng(seed), 2000
    chance = np.array([0.6, 0.3, 0.1])
    action = rng.choice(3, rows, p=chance)
    kind = rng.choice([HOSTILE, "b"], rows)
    log = Log.read(
        {
            "action": np.array(["A", HOSTILE, "C"])[action],
            "reward": rng.integers(2, size=rows),
            "propensity": chance[action],
            f"context_{HOSTILE}": kind,
            "context_age": rng.normal(size=rows),
        }
    )
    even = np.full((rows, 3), 1 / 3)
    return compare(log, {"even": even, HOSTILE: "rcp-submax"}, slices=[HOSTILE, "age"])


@pytest.fixture(scope="module")
def page(found, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    found.report(path, f"submax evaluate '{HOSTILE}'")
    return path


def test_every_name_is_text_and_nothing_is_loaded(page):
    text = page.read_text(encoding="utf-8")
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert not re.search(r"(src|href)=\"(?!#)", text)
    assert "default-src 'none'" in text


def test_the_page_has_all_numbers_and_what_reproduces_them(page, found):
    text = page.read_text(encoding="utf-8")
    for one in found.estimates:
        assert f"{one.value:.4g}" in text
        for sentence in one.cautions:
            assert sentence[1:40].replace("'", "&#39;") in text
    assert found.digest in text
    assert "submax evaluate" in text


@pytest.mark.xdist_group("browser")
def test_everybody_can_use_the_page(page, browser):
    opened, said = browser.new_page(), list[str]()
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    for scheme, width in (("light", 390), ("dark", 1200)):
        opened.emulate_media(color_scheme=scheme)
        opened.set_viewport_size({"width": width, "height": 900})
        opened.goto(page.as_uri())
        assert opened.evaluate("document.documentElement.scrollWidth") <= width
        found = Axe().run(opened)
        assert found.violations_count == 0, found.generate_report()
    style = "getComputedStyle(document.querySelector('section')).borderTopWidth"
    assert opened.evaluate(style) == "1px"
    assert said == []


def test_slices_of_a_category_are_the_estimates_of_their_rows(found):
    rows = [one for one in found.slices if one.slice[0] == HOSTILE]
    counts = {one.slice: one.diagnostics.rows for one in rows}
    assert sum(counts.values()) == found.estimates[0].diagnostics.rows
    logged = [one for one in rows if one.policy == "logging policy"]
    mean = (
        sum(one.value * one.diagnostics.rows for one in logged)
        / found.estimates[0].diagnostics.rows
    )
    assert mean == pytest.approx(found.estimates[0].value)
    assert set(found.to_pandas("slices")["slice"]) == {HOSTILE, "age"}


def test_wrong_slices_and_paths_are_refused(found, tmp_path):
    log = Log.read({"action": ["A", "B"] * 5, "reward": [0, 1] * 5, "propensity": [0.5] * 10})
    for wrong in (["age"], "age"):
        with raises_code("invalid-input", "slices"):
            compare(log, ["random"], slices=wrong)
    with raises_code("invalid-input", "path"):
        found.report(tmp_path / "none" / "report.html")


def test_a_page_of_many_arms_shows_ten_and_one_warning_of_each_kind(rng, tmp_path):
    arms, rows = 30, 900
    table = {"action": rng.integers(arms, size=rows), "reward": rng.integers(2, size=rows)}
    log = Log.read({**table, "propensity": np.full(rows, 1 / arms)})
    many = compare(log, ["always=*"], estimators=["ips", "snips"])
    many.report(tmp_path / "many.html")
    text = (tmp_path / "many.html").read_text(encoding="utf-8")
    before, _, folded = text.partition("<details>")
    names = {one.policy for one in many.recommended()[1:]}
    shown = {name for name in names if re.search(rf">{name}[ <]", before)}
    assert shown == set(many.ranked()[:10])
    assert all(name in folded for name in names)
    # Thirty policies have the same kinds of warnings, with other numbers.
    assert text.count('class="notice"') < 6
