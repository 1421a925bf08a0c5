"""The text and HTML forms of logs and comparisons."""

import numpy as np
import pytest

from submax.evaluation.logs.log import Log
from submax.evaluation.report.comparisons.comparison import compare


def fits(displayed):
    lines = repr(displayed).split("\n")
    return len(lines) <= 24 and max(map(len, lines)) <= 80


def some_log(arms=3, rows=400, **options):
    rng = np.random.default_rng(0)
    action = rng.integers(arms, size=rows)
    reward = rng.random(rows) < 0.2 + 0.3 * (action == 1)
    return Log.from_arrays(action, reward, propensity=np.full(rows, 1 / arms), **options)


def test_a_log_shows_counts_shares_and_mean_rewards():
    log = some_log()
    chosen = log.reward[log.action[:, 0] == 1]
    row = next(line.split() for line in repr(log).split("\n") if line.startswith("  1 "))
    error = chosen.std(ddof=1) / np.sqrt(len(chosen))
    assert row[1:] == [
        str(len(chosen)),
        f"{100 * len(chosen) / 400:.1f}",
        "%",
        f"{chosen.mean():.4g}",
        f"{error:.2g}",
    ]
    assert log._repr_html_().startswith("<div><p>Log of 400 rows")


def test_any_log_fits_one_screen():
    rng = np.random.default_rng(0)
    assert fits(some_log(arms=900, rows=5000, context=rng.normal(size=(5000, 40))))
    slots = rng.integers(4, size=(300, 12))
    assert fits(Log.from_arrays(slots, rng.random(300) < 0.5))
    prices = {"action_price": rng.random(50), "reward": rng.integers(2, size=50)}
    log = Log.read(prices, actions={"price": (0.0, 1.0)})
    assert fits(log)
    assert "no propensities" in repr(log)


@pytest.mark.parametrize("policies", [2, 50])
def test_a_comparison_fits_one_screen_and_shows_every_policy_once_or_more(policies):
    names = {f"policy number {number}": "random" for number in range(policies)}
    found = compare(some_log(), names, estimators=["ips", "snips"])
    assert fits(found)
    assert "logging policy" in repr(found)
    assert ("more" in repr(found)) == (policies == 50)
    best = found.find("policy number 0", "snips")
    assert f"{best.value:.4g}" in repr(found)
    assert found._repr_html_().startswith("<div><p>Comparison")
