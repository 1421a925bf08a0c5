"""Pages on result folders: finished, empty, under way and damaged."""

import shutil

import numpy as np
import pytest
from click.testing import CliRunner
from refusals import raises_code

from submax.cli import main
from submax.experiments.comparing.folder_differences import compare_folders
from submax.experiments.comparing.paired_comparison import Finals
from submax.experiments.comparing.paired_differences import compare
from submax.experiments.following.noted_run import NotedRun
from submax.experiments.following.planned_cell import planned
from submax.experiments.following.results_folder import ResultsFolder
from submax.experiments.following.run_record import recorded_run
from submax.experiments.running.cells import cells, run_cell
from submax.experiments.running.run import run_illustration
from submax.experiments.running.study import run_study
from submax.experiments.specification import load_named, parse
from submax.experiments.storing.directory import claim_directory, close_directory
from submax.experiments.storing.rows_store import RowsStore
from submax.simulation.cell_store import CellStore
from submax.web.results_server import messages as m
from submax.web.results_server.folders import Folders
from submax.web.results_server.result_pages import PAGES

BROWSER = {"accept": "text/html,*/*;q=0.8"}
PATHS = [one.path.format(name="one") for one in PAGES]
FILE = """
title = "Half <script>alert(1)</script>"
observations = 30
replicas = 3
points = 5
policies = ["random", "ucb1"]
[environment]
kind = "bernoulli"
arms = [2, 3]
"""


@pytest.mark.parametrize("page", PAGES, ids=lambda one: one.name)
def test_every_page_is_data_too_and_described(http, decoded, page):
    path = page.path.format(name="one")
    shown = http.get(path, headers=BROWSER)
    assert shown.status_code == 200
    assert shown.headers["content-security-policy"].startswith("default-src 'none'; script-src")
    assert "<i>" not in shown.text.replace("<i class", "")
    twin = "/index.json" if path == "/" else f"{path}.json"
    for answer in (http.get(path), http.get(twin, headers=BROWSER)):
        decoded(answer, page.answer)
    described = http.get("/openapi.json").json()["paths"][page.path]["get"]
    assert described["summary"] == page.summary


def test_curves_and_final_values_are_those_of_the_files(http, results, decoded):
    page = decoded(http.get("/folders/one", params={"measure": "reward"}), m.FolderPage)
    assert page.state == "finished"
    assert page.counts == {"done": 6}
    assert page.configurations == ["arms = 2", "arms = 3"]
    finals = Finals.read(results / "one")
    by_policy = {line.policy: line for line in page.curves.lines}
    for row in page.finals:
        values = finals.reward(row.policy, arms=2).values
        assert row.mean == pytest.approx(values.mean())
        assert by_policy[row.policy].values[-1] == pytest.approx(values.mean())
    assert [row.mean for row in page.finals] == sorted((r.mean for r in page.finals), reverse=True)
    other = decoded(http.get("/folders/one", params={"configuration": "arms = 3"}), m.FolderPage)
    assert other.curves != page.curves


def test_policies_are_compared_as_by_the_command(http, results, decoded):
    words = {"policy": ["ucb1", "random"], "measure": "late_slope"}
    page = decoded(http.get("/folders/one/compare", params=words), m.ComparePage)
    wanted = compare(results / "one", ["ucb1", "random"], measure="late_slope")
    assert [(one.left, one.difference, one.p_value) for one in page.differences] == [
        (one.left, one.difference, one.corrected) for one in wanted
    ]


class TestTwoFolders:
    def page(self, http, decoded, left, right):
        return decoded(http.get("/compare", params={"left": left, "right": right}), m.FoldersPage)

    def test_the_same_worlds_are_paired_and_equal_runs_do_not_differ(self, http, decoded):
        page = self.page(http, decoded, "one", "same")
        assert "6 replicas are compared pair by pair" in page.how
        assert len(page.differences) == 6
        assert all(one.difference == one.low == one.high == 0.0 for one in page.differences)

    def test_other_worlds_are_independent_samples(self, http, decoded, results):
        page = self.page(http, decoded, "one", "other")
        assert "independent samples" in page.how
        sides = [
            Finals.read(results / name).final("ucb1", arms=3).values for name in ("one", "other")
        ]
        row = next(one for one in page.differences if (one.where, one.left) == ("arms = 3", "ucb1"))
        assert row.difference == pytest.approx(sides[0].mean() - sides[1].mean())
        # The interval is wider than normal theory and narrower than by the smaller sample alone.
        error = np.sqrt(sum(side.var(ddof=1) / len(side) for side in sides))
        reach = (row.high - row.low) / 2
        assert 1.959 * error < reach < 2.571 * error

    def test_what_cannot_be_compared_is_said(self, http, decoded, results, tmp_path):
        assert "Choose two folders" in http.get("/compare").json()["message"]
        (tmp_path / "empty").mkdir()
        with raises_code("invalid-input"):
            compare_folders(ResultsFolder(results / "one"), ResultsFolder(tmp_path / "empty"))
        assert http.get("/compare", params={"left": "one", "right": "two"}).status_code == 404


def test_a_run_under_way_is_shown_with_what_is_finished(client, tmp_path, decoded):
    specification = parse(FILE, "half")
    folder, every = tmp_path / "half", cells(specification)
    claim_directory(folder, specification)
    http = client(tmp_path)
    with recorded_run(folder, planned(every, [3])) as notes:
        (notes / f"{every[1].key}.running").touch()
        page = decoded(http.get("/folders/half"), m.FolderPage)
        assert (page.state, page.counts) == ("running", {"done": 0, "running": 1, "waiting": 3})
        assert page.curves.lines == []
        assert (
            "No cell of this configuration is finished yet"
            in http.get("/folders/half", headers=BROWSER).text
        )
        CellStore(folder / "cells").write(every[0].key, run_cell(every[0]))
        page = decoded(http.get("/folders/half"), m.FolderPage)
        assert [line.policy for line in page.curves.lines] == ["random"]
        assert [note.policy for note in page.notes] == ["ucb1"]
        assert page.seconds_left is not None
        shown = http.get("/folders/half", headers=BROWSER).text
        assert 'hx-trigger="every 2s"' in shown
        assert "<script>alert" not in shown
    page = decoded(http.get("/folders/half"), m.FolderPage)
    assert page.state == "unfinished"


def test_a_failed_cell_is_shown_with_its_error_and_what_to_do(client, tmp_path, decoded):
    specification = parse(FILE, "half")
    folder, every = tmp_path / "half", cells(specification)
    claim_directory(folder, specification)

    def fail(cell):
        raise RuntimeError("no <b>luck</b>")

    with pytest.raises(RuntimeError), recorded_run(folder, planned(every, [3])) as notes:
        NotedRun(fail, notes)(every[2])
    page = decoded(client(tmp_path).get("/folders/half"), m.FolderPage)
    assert (page.state, page.counts) == ("failed", {"done": 0, "failed": 1, "waiting": 3})
    assert [(note.policy, note.where) for note in page.notes] == [("random", "arms = 3")]
    assert "continues it" in page.sentence
    shown = client(tmp_path).get("/folders/half", headers=BROWSER).text
    assert "RuntimeError: no &lt;b&gt;luck" in shown


@pytest.mark.parametrize("file", ["manifest.json", "results.parquet", "finals.parquet"])
def test_a_damaged_file_is_named_and_the_rest_is_shown(client, results, tmp_path, file):
    shutil.copytree(results / "one", tmp_path / "one")
    (tmp_path / "one" / file).write_bytes(b"{torn")
    http = client(tmp_path)
    for path in PATHS:
        assert http.get(path, headers=BROWSER).status_code == 200, path
    assert file in http.get("/folders/one").json()["problems"][0]


def test_an_empty_folder_says_what_to_do(client, tmp_path):
    assert "submax reproduce bernoulli" in client(tmp_path).get("/", headers=BROWSER).text


def test_the_folder_of_one_experiment_can_be_given(client, results):
    assert client(results / "one").get("/folders/one").json()["state"] == "finished"


def test_statements_of_the_paper_have_verdicts(client, tmp_path, decoded):
    specification = parse(FILE.replace("title", 'statements = "section 4.1"\ntitle'), "claims")
    folder, every = tmp_path / "claims", cells(specification)
    claim_directory(folder, specification)
    with recorded_run(folder, planned(every, [3])):
        CellStore(folder / "cells").write(every[0].key, run_cell(every[0]))
        page = decoded(client(tmp_path).get("/folders/claims/statements"), m.StatementsPage)
    assert {one.verdict for one in page.statements} == {"not run"}
    assert any(one.source == "paper" and one.quote for one in page.statements)


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/folders/none", 404, "not-found"),
        ("/folders/..%2Fone", 404, "not-found"),
        ("/nothing", 404, "not-found"),
        ("/folders/one?measure=luck", 400, "invalid-input"),
        ("/folders/one?configuration=x", 404, "not-found"),
        ("/folders/one?mesure=reward", 400, "invalid-input"),
        ("/index.json?measure=reward", 400, "invalid-input"),
        ("/folders/one/compare?policy=x&policy=ucb1", 400, "invalid-input"),
        ("/assets/tag/secret.js", 404, "not-found"),
    ],
)
def test_wrong_addresses_are_refused_with_a_sentence(http, path, status, code):
    answer = http.get(path)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_other_sites_cannot_read_through_a_browser(http):
    assert http.get("/", headers={"host": "evil.example"}).status_code == 403


def test_the_command_refuses_what_it_cannot_show(tmp_path):
    def said(*words, **variables):
        done = CliRunner().invoke(main, ["dashboard", *map(str, words)], env=variables)
        assert done.exit_code == 2
        return done.output

    assert "is no folder" in said(tmp_path / "none")
    assert "have no keys" in said(tmp_path, "--host", "0.0.0.0")
    assert "from 0 to 65535" in said(tmp_path, "--port", "x")
    assert "SUBMAX_DASHBOARD_PORT" in said(tmp_path, SUBMAX_DASHBOARD_PORT="x")


def test_only_result_folders_are_listed(results, tmp_path):
    (tmp_path / "notes").mkdir()
    shutil.copytree(results / "one", tmp_path / "one")
    assert Folders(tmp_path).names() == ["one"]


def test_one_replica_has_no_interval(client, tmp_path, decoded):
    run_study(parse(FILE.replace("replicas = 3", "replicas = 1"), "single"), tmp_path)
    http = client(tmp_path)
    page = decoded(http.get("/folders/single"), m.FolderPage)
    assert {(row.error, row.low, row.high) for row in page.finals} == {(None, None, None)}
    for end in ("", "/compare", "/statements"):
        assert http.get(f"/folders/single{end}", headers=BROWSER).status_code == 200
        decoded(http.get(f"/folders/single{end}"), dict)


def test_an_experiment_on_logs_has_progress_and_a_table_but_no_curves(client, tmp_path, decoded):
    text = FILE.replace("observations", 'experiment = "offline"\nobservations', 1)
    specification = parse(text, "logs")
    folder, every = tmp_path / "logs", cells(specification)
    claim_directory(folder, specification)
    http = client(tmp_path)
    with recorded_run(folder, planned(every)):
        RowsStore(folder / "cells").write(every[0].key, [{"value": 1.0}])
        page = decoded(http.get("/folders/logs"), m.FolderPage)
        assert (page.counts, page.problems) == ({"done": 1, "waiting": 3}, [])
        assert "over time" not in http.get("/folders/logs", headers=BROWSER).text
    (folder / "summary.csv").write_text("policy,value\nrandom,0.123456789\n", encoding="utf-8")
    close_directory(folder, specification)
    shown = http.get("/folders/logs", headers=BROWSER).text
    assert "finished" in shown
    assert "<td>0.123</td>" in shown


def test_the_illustration_has_statements_and_a_table(client, tmp_path, decoded):
    specification = load_named("illustration").quickly(2).changed(observations=50)
    run_illustration(specification, tmp_path / "illustration")
    http = client(tmp_path)
    page = decoded(http.get("/folders/illustration"), m.FolderPage)
    assert (page.state, page.problems) == ("finished", [])
    assert page.table
    found = decoded(http.get("/folders/illustration/statements"), m.StatementsPage)
    assert found.statements
