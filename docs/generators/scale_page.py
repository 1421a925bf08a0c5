"""Write the tables of docs/results/scale.md: ``make docs``.

They come from docs/results: growth.csv, scaling.csv, services.csv and partitions.csv, which the
benchmarks of the same names wrote. ``python docs/generators/scale_page.py FILE …`` first copies
files there, such as a new scaling.csv.
"""

import csv
import math
import re
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

from growth_results import Growth
from markdown_tables import table
from published import RESULTS

PAGE = Path(__file__).parents[1] / "results" / "scale.md"
FILE, PARTITIONS = RESULTS / "scaling.csv", RESULTS / "partitions.csv"
SERVICES = RESULTS / "services.csv"
MONTH_SECONDS = 30 * 86_400
MONTHLY, FAST = 1e9 / MONTH_SECONDS, 1e5
"""Decisions per second: a thousand million in a month, evenly, and a hundred thousand a second."""
PEAK = 3.0
"""The busiest hour of a day has about this many times the mean rate."""
BUSY = 0.7
"""The share of its time for which a process or core is planned to work; beyond it queues grow."""
EVENTS = 2.0
"""Events of a decision, if every decision gets a reward."""
TERABYTE = 1e12
CONTEXT = "20 numbers"
GROWTH_COMMAND, SCALING_COMMAND = "growth.py", "scaling.py"


class Cost(NamedTuple):
    """A measured cost, with the benchmark that measured it."""

    what: str
    value: float
    unit: str
    command: str


class Part(NamedTuple):
    """A part of the system: how many decisions per second one such part can do.

    ``more`` says what more of them would mean.
    """

    what: str
    capacity: float
    more: str


class Costs(NamedTuple):
    """The measured costs from which everything else is computed."""

    server_us: float
    database_us: float
    stream_per_s: float
    process_per_s: float
    database_bytes: float
    file_bytes: float
    compacted_bytes: float | None
    read_per_s: float
    export_per_s: float
    update_ms: float
    cores: int

    @classmethod
    def read(cls) -> "Costs":
        """The costs of the two files, each of growth at the largest size that has it."""
        with FILE.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        postgres = [row for row in rows if row["store"] == "PostgreSQL"]
        one = next(row for row in postgres if row["servers"] == "1")
        shared = [row for row in postgres if row["bandits"] == "one bandit"]
        growth = Growth()
        logs = {
            rows: cell
            for (log, policy, rows), cell in growth.cells.items()
            if log == CONTEXT and not policy
        }
        policies = {
            rows: cell
            for (log, policy, rows), cell in growth.cells.items()
            if log == CONTEXT and "default" in policy and "update_cpu_ms" in cell
        }
        largest = {name: value for rows in sorted(logs) for name, value in logs[rows].items()}
        return cls(
            float(one["server_cpu_us"]),
            float(one["postgres_cpu_us"]),
            max(float(row["decides_per_s"]) for row in shared),
            float(one["decides_per_s"]),
            float(one["bytes_per_decision"]),
            largest["bytes_per_decision"],
            largest.get("compacted_bytes_per_decision"),
            largest["read_events_per_s"],
            largest["export_rows_per_s"],
            policies[max(policies)]["update_cpu_ms"],
            int(one["cores"]),
        )

    def listed(self) -> list[Cost]:
        """The costs in words."""
        found = [
            Cost("decide, in the server process", self.server_us, "µs of a core", SCALING_COMMAND),
            Cost("decide, in PostgreSQL", self.database_us, "µs of a core", SCALING_COMMAND),
            Cost("decides of one server process", self.process_per_s, "a second", SCALING_COMMAND),
            Cost(
                "decides of one bandit, most of any number of servers",
                self.stream_per_s,
                "a second",
                SCALING_COMMAND,
            ),
            Cost("decision in PostgreSQL", self.database_bytes, "bytes", SCALING_COMMAND),
            Cost("decision in SQLite", self.file_bytes, "bytes", GROWTH_COMMAND),
            Cost("reading the log", self.read_per_s, "events/s of a core", GROWTH_COMMAND),
            Cost("export", self.export_per_s, "rows/s of a core", GROWTH_COMMAND),
            Cost(
                "update of a version of the default policy",
                self.update_ms,
                "ms of a core",
                GROWTH_COMMAND,
            ),
        ]
        if self.compacted_bytes is not None:
            found.append(
                Cost("decision in the archive", self.compacted_bytes, "bytes", GROWTH_COMMAND)
            )
        return found

    def parts(self) -> list[Part]:
        """The parts of one database with its servers, the weakest first."""
        found = [
            Part(
                "one server process",
                BUSY * 1e6 / self.server_us,
                "more processes on the same database; the code does this today",
            ),
            Part(
                "one bandit in one database",
                self.stream_per_s,
                "the units of the bandit in several databases",
            ),
            Part(
                f"one database with {self.cores} cores for itself",
                BUSY * self.cores * 1e6 / self.database_us,
                "bandits or units in several databases",
            ),
            Part(
                "the process that reads the log and fits versions",
                BUSY * self.read_per_s / EVENTS,
                "one reader for each bandit; with units in several databases, one for each",
            ),
        ]
        return sorted(found, key=lambda part: part.capacity)


def with_tables(text: str) -> str:
    """Return the page with its tables replaced; they are between comments with their names."""
    costs = Costs.read()
    made = {
        "costs": _costs(costs),
        "breaks": _breaks(costs),
        "verdict": _verdict(costs),
        "space": _space(costs),
        "scaling": _scaling(),
        "services": _services(),
        "partitions": _partitions(),
    }
    for name, part in made.items():
        mark = f"<!-- {name} -->"
        pattern = re.compile(f"{mark}.*?{mark}", re.DOTALL)
        text = pattern.sub(lambda _, mark=mark, part=part: f"{mark}\n\n{part}\n\n{mark}", text)
    return text


def _costs(costs: Costs) -> str:
    body = [
        (cost.what, f"{_number(cost.value)} {cost.unit}", f"`{cost.command}`")
        for cost in costs.listed()
    ]
    return table(("what", "measured", "by"), body)


def _breaks(costs: Costs) -> str:
    """How many of each part the two loads need; the weakest part is first."""
    head = (
        "part",
        "decisions/s",
        f"10⁹ a month, {_number(PEAK * MONTHLY)}/s at peak",
        "10⁵ a second",
        "how to have more",
    )
    body = [
        (
            part.what,
            _number(part.capacity),
            str(_units(PEAK * MONTHLY, part)),
            str(_units(FAST, part)),
            part.more,
        )
        for part in costs.parts()
    ]
    return table(head, body)


def _verdict(costs: Costs) -> str:
    """Say for each load which parts are not enough alone, the weakest first."""
    lines = []
    for name, mean, rate in (
        ("10⁹ decisions a month", MONTHLY, PEAK * MONTHLY),
        ("10⁵ decisions a second", FAST, FAST),
    ):
        broken = [part for part in costs.parts() if _units(rate, part) > 1]
        needed = ", then ".join(f"{part.what} ({_units(rate, part)} needed)" for part in broken)
        result = f"what breaks, in this order: {needed}" if broken else "one of each is enough"
        month = f"{_number(mean)} a second on average, {mean * MONTH_SECONDS:.1e} a month"
        lines.append(f"- **{name}**, {month}: {result}.")
    return "\n".join(lines)


def _units(rate: float, part: Part) -> int:
    return math.ceil(rate / part.capacity)


def _space(costs: Costs) -> str:
    """What a month of each load leaves on disk, and how long reading it takes one core."""
    rows = []
    for name, rate in (("10⁹ a month", MONTHLY), ("10⁵ a second", FAST)):
        month = rate * MONTH_SECONDS
        archived = costs.compacted_bytes
        rows.append(
            (
                name,
                f"{month:.1e}",
                f"{_number(month * costs.database_bytes / TERABYTE)} TB",
                "" if archived is None else f"{_number(month * archived / TERABYTE)} TB",
                f"{_number(EVENTS * month / costs.read_per_s / 3600)} h",
                f"{_number(month / costs.export_per_s / 3600)} h",
            )
        )
    head = ("load", "decisions in a month", "in PostgreSQL", "in the archive")
    return table((*head, "reading all of it anew", "exporting it"), rows)


def _scaling() -> str:
    head = ("store", "servers", "bandits", "decides/s", "factor", "p50 ms", "p99 ms")
    head += ("server µs", "database µs", "cores")
    names = ("store", "servers", "bandits")
    numbers = ("decides_per_s", "scaling", "p50_ms", "p99_ms", "server_cpu_us", "postgres_cpu_us")
    with FILE.open(encoding="utf-8", newline="") as file:
        body = [
            (
                *(row[name] for name in names),
                *(_number(float(row[name])) for name in numbers),
                row["cores"],
            )
            for row in csv.DictReader(file)
        ]
    return table(head, body)


def _services() -> str:
    head = ("service", "a second", "p50 ms", "p99 ms", "µs of a core", "durable", "propensity")
    names = ("p50_ms", "p99_ms", "cpu_us", "durable", "propensity", "learns")
    with SERVICES.open(encoding="utf-8", newline="") as file:
        body = [
            (row["name"], _number(float(row["rate"])), *(row[name] for name in names))
            for row in csv.DictReader(file)
        ]
    return table((*head, "learns"), body)


def _partitions() -> str:
    """The share of the best reward that is lost, by the number of parts."""
    lost: dict[tuple[str, str], dict[str, str]] = {}
    with PARTITIONS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            share, error = float(row["lost_percent"]), float(row["standard_error"])
            text = f"{share:.1f} ± {error:.1f}"
            problem = row["environment"], f"{int(row['decisions']):,}"
            lost.setdefault(problem, {})[row["parts"]] = text
    parts = list(next(iter(lost.values())))
    head = (
        "problem",
        "decisions",
        *("1 part" if part == "1" else f"{part} parts" for part in parts),
    )
    return table(head, [(*problem, *shares.values()) for problem, shares in lost.items()])


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        shutil.copy(name, RESULTS / Path(name).name)
    if FILE.is_file():
        PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
