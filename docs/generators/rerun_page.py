"""Write the table of docs/results/rerun.md: each result, its command, date and machine."""

import re
from pathlib import Path

from markdown_tables import table
from published import RESULTS, group_of, is_published, rows_of, settings_of

from submax.simulation.experiment import experiment_groups

PAGE = RESULTS / "rerun.md"
PAGES = {
    "paper": "README.md",
    "beyond": "beyond.md",
    "bakeoff": "bakeoff.md",
    "rivals": "rivals.md",
}
MARK = "<!-- experiments -->"
HEAD = ("page", "command", "replicas × decisions", "minutes", "date", "machine")


def experiments() -> list[str]:
    """The experiments whose results are published."""
    every = [name for names in experiment_groups().values() for name in names]
    return [name for name in every if is_published(name)]


def with_tables(text: str) -> str:
    """The page with its table written anew."""
    body = table(HEAD, (_row(name) for name in experiments()))
    pattern = re.compile(f"{MARK}\n.*?\n{MARK}", flags=re.DOTALL)
    return pattern.sub(lambda _: f"{MARK}\n\n{body}\n\n{MARK}", text)


def _row(name: str) -> tuple[str, ...]:
    settings = settings_of(name)
    given, run = settings["specification"], settings["run"]
    page = PAGES[group_of(name)]
    every = " --all" if _has_more_policies(name) else ""
    return (
        f"[{page}]({page})",
        f"`submax reproduce {name}{every}`",
        f"{given['replicas']} × {given['observations']}",
        _minutes(name),
        run["date"],
        run["machine"] or "not recorded",
    )


def _has_more_policies(name: str) -> bool:
    """Whether the published run has policies that only ``--all`` runs."""
    more = {str(one) for one in settings_of(name)["specification"]["more_policies"]}
    return any(row["policy"] in more for row in rows_of(name))


def _minutes(name: str) -> str:
    """The processor time of all cells, compilation included."""
    rows = rows_of(name)
    if "seconds" not in rows[0]:
        return ""
    return f"{sum(float(row['seconds']) for row in rows) / 60:.0f}"


if __name__ == "__main__":
    path = Path(PAGE)
    path.write_text(with_tables(path.read_text(encoding="utf-8")), encoding="utf-8")
