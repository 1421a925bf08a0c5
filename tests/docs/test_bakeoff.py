"""The page and the figure of the bake-off, from results made up for the test."""

import csv
import json
import math
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPECIFICATION = {"seed": 3, "replicas": 2, "observations": 5000}
OWN = {"random": 0.5, "rcp-adaptive": 0.1, "linucb": 0.24, "rcp-softmax-submax": 0.3}


@pytest.fixture
def generator(tmp_path, monkeypatch):
    """The module of the generator, which writes into a folder of the test."""
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "generators"))
    import bakeoff_page
    import published

    monkeypatch.setattr(published, "RESULTS", tmp_path / "pages")
    return bakeoff_page


def written(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def summary(tables, observations, own=OWN):
    """What a sweep leaves if each policy loses this share of the reward, and so much is regret."""
    return [
        {
            "file": f"keel:{table}",
            "policy": policy,
            "replicas": 2,
            "observations": observations,
            "final_mean": lost * observations,
            "final_standard_error": 0.01 * observations,
            "final_reward_mean": (1 - lost) * observations,
            "final_reward_standard_error": 0.01 * observations,
        }
        for table in tables
        for policy, lost in own.items()
    ]


def peer_rows(regime, table, scores):
    keys = {"regime": regime, "table": table, "decisions": 100, "seconds": 1}
    return [
        {**keys, "method": method, "seed": seed, "score": score}
        for method, given in scores.items()
        for seed, score in enumerate(given)
    ]


@pytest.fixture
def results(tmp_path):
    results = tmp_path / "results"
    dense = [*summary(["chess", "titanic"], 2000), *summary(["ring", "letter"], 5000)]
    written(results / "bakeoff-dense" / "summary.csv", dense)
    written(results / "bakeoff-rare" / "summary.csv", summary(["chess", "magic"], 20_000))
    for name in ("bakeoff-dense", "bakeoff-rare"):
        manifest = {"versions": {"submax": "0"}, "specification": SPECIFICATION}
        (results / name / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return results


@pytest.fixture
def peers(tmp_path):
    scores = {"linucb": [0.7, 0.8], "vw-bag": [0.8, 0.8], "gittins": [0.6, 0.5]}
    dense = [
        row for name in ("chess", "titanic", "ring") for row in peer_rows("dense", name, scores)
    ]
    rare = peer_rows("rare", "chess", {"linucb": [0.9], "vw-bag": [0.3]})
    return [written(tmp_path / "dense.csv", dense), written(tmp_path / "rare.csv", rare)]


def test_page_and_figure_are_written(generator, results, peers, tmp_path):
    generator.main(results, peers)
    pages = tmp_path / "pages"
    assert (pages / "bakeoff" / "ratios.png").read_bytes().startswith(b"\x89PNG")
    page = (pages / "bakeoff.md").read_text(encoding="utf-8")
    chosen_on, held_out = page.split("### Tables on which no setting of")
    adaptive = "| **10.0** ± 1.0 | 24.0 ± 1.0 | 30.0 ± 1.0 |"
    assert f"| chess | 50.0 ± 1.0 {adaptive} 20.0 ± 0.0 vw-bag | 0.50 ± 0.05 |" in chosen_on
    assert "on 2 of 2 tables, on 2 of them by more than two standard errors" in chosen_on
    # A table that the peers have not played yet has no ratio and is left out of the means.
    assert f"| letter | 50.0 ± 1.0 {adaptive} not run |  |" in held_out
    assert "on 1 of 1 tables, on 1 of them by more than two standard errors" in held_out
    assert "| chess | 80.0 ± 2.0 | 52.0 ± 2.0 | 40.0 ± 2.0 | **90.0** linucb |" in held_out
    assert "2000 to 5000 decisions, 2 seeds of the peers. `submax reproduce bakeoff-dense`" in page


def test_a_lead_says_whether_it_is_decided(generator):
    score = generator.Score
    scores = {
        "clear": (score(0.1, 0.01), {"peer": score(0.2, 0.01), "worse": score(0.3, 0.0)}),
        "close": (score(0.1, 0.01), {"peer": score(0.11, 0.01)}),
        "single": (score(0.1, 0.01), {"peer": score(0.2, math.nan)}),
        "behind": (score(0.1, 0.01), {"peer": score(0.05, 0.01)}),
    }
    text = generator._ahead(scores)
    assert "on 3 of 4 tables, on 1 of them" in text
    assert "Not decided: close." in text
    assert "one seed: single." in text


def test_linear_methods_of_submax_are_counted_as_peers(generator, results, peers, tmp_path):
    generator.main(results, peers)
    page = (tmp_path / "pages" / "bakeoff.md").read_text(encoding="utf-8")
    assert "| linucb | 1.250 |" in page
    assert "| vw-bag | 1.000 |" in page
    assert "| **rcp-adaptive** | 0.500 |" in page


def test_scores_of_the_peers_are_aggregated_and_kept(generator, results, peers, tmp_path):
    generator.main(results, peers)
    kept = tmp_path / "pages" / "bakeoff" / "peers.csv"
    with kept.open(encoding="utf-8", newline="") as file:
        rows = {(r["regime"], r["table"], r["method"]): r for r in csv.DictReader(file)}
    assert len(rows) == 3 * 3 + 2
    linucb = rows["dense", "ring", "linucb"]
    assert (float(linucb["score_mean"]), linucb["seeds"]) == (0.75, "2")
    assert float(linucb["score_standard_error"]) == pytest.approx(0.05)
    assert math.isnan(float(rows["rare", "chess", "linucb"]["score_standard_error"]))
    before = kept.read_bytes()
    generator.main(results, [])
    assert kept.read_bytes() == before


def test_without_results_nothing_is_written(generator, peers, tmp_path, capsys):
    generator.main(tmp_path / "nothing", peers)
    missing = "bakeoff/bakeoff-dense/summary.csv, bakeoff/bakeoff-rare/summary.csv"
    assert f"without {missing}." in capsys.readouterr().out
    assert not (tmp_path / "pages" / "bakeoff.md").exists()


def test_a_ratio_has_the_errors_of_both(generator):
    score, reference = generator.Score(0.1, 0.01), generator.Score(0.2, 0.04)
    found = generator.ratio(score, reference)
    assert found.mean == pytest.approx(0.5)
    assert found.error == pytest.approx(0.5 * math.hypot(0.1, 0.2))


def test_held_out_tables_are_those_of_the_peers(generator, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from bakeoff import bakeoff_methods

    assert generator.HELD_OUT == bakeoff_methods.HELD_OUT
