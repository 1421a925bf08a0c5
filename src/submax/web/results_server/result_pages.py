"""All pages of the server for results."""

from collections.abc import Sequence

from submax.core.checks import one_of
from submax.web.dashboard.page import Page
from submax.web.results_server import messages as m
from submax.web.results_server.comparison_pages import compare_page, folders_page, statements_page
from submax.web.results_server.folder_page import MEASURES, folder_page, home
from submax.web.results_server.folders import Folders
from submax.web.results_server.result_page import Asked, ResultPage

FOLDER = "/folders/{name}"
LIVE_SECONDS = 2
"""How often a page on a run under way is loaded again."""
SLOW_SECONDS = 15
"""How often a page is loaded again whose numbers take longer to compute."""
ALL_MEASURES = (*MEASURES, "late_slope")
MEASURE = "What is shown: regret or reward."
COMPARED = "What is compared: regret, reward or late_slope, the regret per decision at the end."


def _measure(asked: Asked, allowed: Sequence[str], default: str = "regret") -> str:
    found = asked.one("measure", default)
    one_of("measure", found, allowed)
    return found


def _folder(folders: Folders, asked: Asked) -> m.FolderPage:
    folder = folders.folder(asked.name)
    specification = folder.specification
    first = "regret" if specification is None else specification.measure
    return folder_page(folder, asked.one("configuration") or None, _measure(asked, MEASURES, first))


def _compare(folders: Folders, asked: Asked) -> m.ComparePage:
    chosen = list(dict.fromkeys(asked.query.get("policy", [])))
    return compare_page(folders.folder(asked.name), chosen, _measure(asked, ALL_MEASURES))


def _folders(folders: Folders, asked: Asked) -> m.FoldersPage:
    measure = _measure(asked, ALL_MEASURES)
    return folders_page(folders, asked.one("left"), asked.one("right"), measure)


PAGES = (
    ResultPage(
        "home",
        "/",
        "All result folders, and how far their runs are.",
        m.ResultsHome,
        lambda folders, asked: home(folders),
        Page("results/home.html", "Experiments", "home", LIVE_SECONDS),
    ),
    ResultPage(
        "folder",
        FOLDER,
        "A result folder: how far its run is, and the curves of its finished cells.",
        m.FolderPage,
        _folder,
        Page("results/folder.html", "Curves", "folder", LIVE_SECONDS),
        {"configuration": "The configuration whose curves are shown.", "measure": MEASURE},
    ),
    ResultPage(
        "compare",
        f"{FOLDER}/compare",
        "Policies of a folder, compared replica by replica.",
        m.ComparePage,
        _compare,
        Page("results/compare.html", "Compare", "folder", SLOW_SECONDS),
        {"policy": "A policy to compare; can be repeated.", "measure": COMPARED},
    ),
    ResultPage(
        "statements",
        f"{FOLDER}/statements",
        "The statements that the results of a folder test, with verdicts.",
        m.StatementsPage,
        lambda folders, asked: statements_page(folders.folder(asked.name)),
        Page("results/statements.html", "Statements", "folder", SLOW_SECONDS),
    ),
    ResultPage(
        "folders",
        "/compare",
        "The same policies in two folders.",
        m.FoldersPage,
        _folders,
        Page("results/folders.html", "Compare folders", "folders"),
        {"left": "A folder.", "right": "The folder to subtract.", "measure": COMPARED},
    ),
)
"""The pages, each of which is JSON, too, at its address with .json."""
