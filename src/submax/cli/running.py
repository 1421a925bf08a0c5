"""Runs experiments, then draws their figures and prints their results."""

import csv
import math
import os
import signal
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, TimeElapsedColumn, track
from rich.table import Table

from submax.cli.main import INTERRUPTED
from submax.core.checks import one_of, whole_number
from submax.core.errors import InputError
from submax.core.numerics import standard_error
from submax.core.optional import missing_extra, require_extra
from submax.core.summary import counted
from submax.research.paper.claims import Statement, illustration_statements, statements_of
from submax.research.paper.reproduce import RUNS
from submax.simulation.compare import POWER, Finals, PairedDifference, Side
from submax.simulation.experiment import Cell, Labels, Specification, cells
from submax.simulation.results import (
    SUMMARY,
    check_directory,
    read_csv,
    read_specification,
    varying_labels,
)
from submax.simulation.runner import (
    available_cores,
    dask_executor,
    dry_run,
    local_executor,
    unfinished,
)

WIDTH, LONG_LINE = 80, 100
"""Characters of a line, and of one with long columns, if the terminal is narrower or unknown."""
MAX_FULL_CONFIGURATIONS = 4
"""If there are more configurations than this, only the best policy of each is printed."""
SIGNIFICANT = 0.05
"""Corrected p-values below this are marked."""


# Running


def _prepare(options: SimpleNamespace) -> None:
    """Refuse options that exclude each other, and set where networks are trained."""
    if options.jobs is not None:
        whole_number("--jobs", options.jobs, at_least=1)
    for option, value in (("--jobs", options.jobs), ("--device", options.device)):
        if options.scheduler is not None and value is not None:
            raise InputError(
                f"{option} has no effect on the workers of a cluster (--scheduler): leave "
                f"{option} out"
            )
    if options.device == "cpu":
        os.environ["JAX_PLATFORMS"] = "cpu"
    if options.device == "gpu":
        require_extra("neural", "--device gpu", "jax")
        # Workers share the GPU with this process, which must not reserve its memory.
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        from submax.models.nn.training import check_gpu

        check_gpu()


def run_experiments(
    specifications: Sequence[Specification], *, own_file: bool = False, **given: Any
) -> None:
    """Check all experiments, then run one after the other, then draw and print the results."""
    options = SimpleNamespace(own_file=own_file, **given)
    _prepare(options)
    console = Console()
    plans = _plans(specifications, options, console)
    jobs = available_cores() if options.jobs is None else options.jobs
    with _interruptible(), local_executor(jobs) as local:
        cluster = (
            nullcontext(local) if options.scheduler is None else dask_executor(options.scheduler)
        )
        with cluster as executor:
            for specification, chosen, directory in plans:
                _run(specification, chosen, directory, executor, console)
        undrawable = missing_extra("plots", "drawing", "matplotlib")
        drawn = options.figures and not undrawable
        for specification, _, directory in plans:
            if drawn:
                _draw_figures(directory, specification, local, console)
            _print(directory, specification, console, drawn=drawn)
    if options.figures and undrawable:
        say(console, f"No figures: {undrawable}")


def redraw(directory: Path, policies: Sequence[str] = ()) -> None:
    """Draw the figures of a result directory again, and print its results.

    If ``policies`` are given, only these are drawn.
    """
    console, specification = Console(), read_specification(directory)
    known = {row["policy"] for row in read_csv(directory / SUMMARY)}
    for name in policies:
        one_of("policy", name, known, listed_by=f"see {directory / SUMMARY}")
    with local_executor(available_cores()) as executor:
        _draw_figures(directory, specification, executor, console, policies)
    _print(directory, specification, console, drawn=True)


def say(console: Console, sentence: str) -> None:
    """Print a sentence as it is, however long."""
    console.print(sentence, soft_wrap=True, markup=False)


def _plans(
    specifications: Sequence[Specification], options: SimpleNamespace, console: Console
) -> list[tuple[Specification, list[Cell], Path]]:
    """The checked experiments of which ``--only`` selects some cells; refuse if there are none."""
    plans, refusals = [], []
    for specification in specifications:
        small = specification.quickly(options.replicas) if options.quick else specification
        changed = small.changed(replicas=options.replicas, seed=options.seed)
        try:
            chosen = cells(changed, options.only, more=options.all)
        except InputError as error:
            refusals.append((changed.name, error))
            continue
        if changed.experiment == "offline":
            require_extra("logs", f"{changed.name}, an experiment on logs,", "pyarrow")
        ignoring = dry_run(chosen)
        if ignoring and options.own_file:
            names = ", ".join(ignoring)
            say(
                console,
                f"{changed.name}: {names} {'ignore' if len(ignoring) > 1 else 'ignores'} the "
                "context; the default, rcp-adaptive, uses it.",
            )
        directory = options.out / changed.name
        check_directory(directory, changed)
        plans.append((changed, chosen, directory))
    if not plans:
        raise refusals[0][1]
    for name, reason in refusals:
        say(console, f"{name} is left out: {reason}")
    return plans


def _run(
    specification: Specification,
    chosen: list[Cell],
    directory: Path,
    executor: Executor,
    console: Console,
) -> None:
    name, count, todo = specification.name, len(chosen), list[Cell]()
    if specification.experiment != "illustration":
        todo = unfinished(directory, chosen)
        if len(todo) < count:
            say(console, f"{name}: {count - len(todo)} of {count} cells are already finished.")
    decisions, keys = {cell.key: cell.decisions for cell in todo}, list[str]()
    columns = [*Progress.get_default_columns(), TimeElapsedColumn()]
    with Progress(*columns, console=console, disable=not todo) as bar:
        task = bar.add_task(f"{name}: {len(todo)} cells", total=sum(decisions.values()))

        def finished(key: str, result: Any) -> None:
            bar.update(task, advance=decisions[key])
            keys.append(key)
            tenths = [10 * number // len(todo) for number in (len(keys) - 1, len(keys))]
            # A file shows no bar.
            if tenths[0] < tenths[1] < 10 and not console.is_terminal:
                say(console, f"{name}: {len(keys)} of {len(todo)} cells are finished.")

        RUNS[specification.experiment](specification, chosen, directory, executor, finished)


def _draw_figures(
    directory: Path,
    specification: Specification,
    executor: Executor,
    console: Console,
    policies: Sequence[str] = (),
) -> None:
    from submax.research.paper.figures import (
        draw_figure,
        draw_illustration,
        draw_offline,
        figures_of,
    )

    if specification.experiment != "sweep":
        draw = draw_offline if specification.experiment == "offline" else draw_illustration
        draw(directory)
        return
    figures, label = figures_of(directory), f"{specification.name}: figures"
    drawn = executor.map(partial(draw_figure, directory, policies=policies), reversed(figures))
    deque(track(drawn, label, total=len(figures), console=console), maxlen=0)


def _print(directory: Path, specification: Specification, console: Console, *, drawn: bool) -> None:
    show = print_sweep if specification.experiment == "sweep" else print_summary
    show(specification, directory, console)
    figures = f", figures in {directory / 'figures'}"
    later = f"; to draw the figures: submax plot {directory}"
    say(console, f"Results are in {directory}{figures if drawn else later}")


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM stop a run after the current cells, and a second signal at once."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def stop(number: int, frame: FrameType | None) -> None:
        for each in before:
            signal.signal(each, lambda number, frame: os._exit(INTERRUPTED))
        print(
            "Stopping after the current cells; press Ctrl-C again to stop at once.", file=sys.stderr
        )
        raise KeyboardInterrupt

    for number in before:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# Printing


def _wide(console: Console, width: int = WIDTH) -> Console:
    return Console(file=console.file, width=max(console.width, width))


def _table(
    title: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    caption: str | None = None,
    *,
    texts: Iterable[int] = (0,),
) -> Table:
    """A table whose columns are aligned right, but for those with ``texts``; cells are no markup.

    The first column is not broken into lines.
    """
    table = Table(title=escape(title), caption=caption)
    for number, heading in enumerate(headings):
        justify: Any = "left" if number in texts else "right"
        table.add_column(escape(heading), justify=justify, no_wrap=not number)
    for row in rows:
        table.add_row(*map(escape, row))
    return table


# Results


def print_summary(specification: Specification, directory: Path, console: Console) -> None:
    """Print the summary of an illustration or of estimates, and the statements of section 3.3."""
    rows, wide = read_csv(directory / SUMMARY), _wide(console, LONG_LINE)
    names = [name for name in rows[0] if name == "policy" or len({row[name] for row in rows}) > 1]
    texts = [number for number, name in enumerate(names) if not rows[0][name][:1].isdigit()]
    headings = [name.replace("_", " ") for name in names]
    cells = ([_rounded(row[name]) for name in names] for row in rows)
    title = specification.title or specification.name
    wide.print(_table(title, headings, cells, texts=texts))
    if specification.experiment == "illustration":
        wide.print(_statement_table("section 3.3", illustration_statements(directory)))


def _rounded(text: str) -> str:
    try:
        return f"{float(text):.4g}"
    except ValueError:
        return text


def print_sweep(specification: Specification, directory: Path, console: Console) -> None:
    """Print the final values of all policies in all configurations, and the paper's statements."""
    wide = _wide(console)
    finals, section = Finals.read(directory), specification.statements
    wide.print(specification.title or specification.name, markup=False)
    for measure in ["regret"] if specification.measure == "regret" else ["reward", "regret"]:
        wide.print(_final_table(finals, measure))
    rows = read_csv(directory / SUMMARY)
    for policy in dict.fromkeys(row["policy"] for row in rows):
        own = [row for row in rows if row["policy"] == policy]
        decisions = sum(int(row["observations"]) * int(row["replicas"]) for row in own)
        if fallbacks := sum(int(row["fallbacks"]) for row in own):
            say(
                wide,
                f"{policy}: {fallbacks} of {decisions} decisions fell back to a simpler rule, "
                "because the configured one could not be computed (column fallbacks of "
                "summary.csv)",
            )
    if section:
        wide.print(_statement_table(section, statements_of(section, finals)))


def _sides(finals: Finals, measure: str, labels: Labels) -> tuple[dict[str, Side], str]:
    found = {name: finals.side(measure, name, labels) for name in finals.policies()}
    sides = {name: side for name, side in found.items() if side is not None}
    best_of = min if measure == "regret" else max
    return sides, best_of(sides, key=lambda name: float(sides[name].values.mean()))


def _final_table(finals: Finals, measure: str) -> Table:
    """All policies in a column for each configuration; of many, the best policy of each."""
    configurations = finals.configurations()
    varying = varying_labels(configurations)
    found = [(labels, *_sides(finals, measure, labels)) for labels in configurations]
    title = f"Final {measure} ± standard error"
    if len(configurations) > MAX_FULL_CONFIGURATIONS:
        bests = [
            [*("" if labels[key] is None else str(labels[key]) for key in varying), best,
             _with_error(sides[best])]
            for labels, sides, best in found
        ]  # fmt: skip
        headings = [*varying, "best", measure]
        return _table(title, headings, bests, "All policies: summary.csv", texts=[len(varying)])
    names = [", ".join(f"{key}={labels[key]}" for key in varying) for labels, _, _ in found]
    columns = [
        {name: _with_error(side) + " *"[name == best] for name, side in sides.items()}
        for _, sides, best in found
    ]
    rows = ([name, *(column.get(name, "-") for column in columns)] for name in finals.policies())
    return _table(title, ["policy", *(name or measure for name in names)], rows, "*: the best")


def _with_error(side: Side) -> str:
    mean, error = float(side.values.mean()), standard_error(side.values)
    texts = [f"{one:.1f}" if abs(one) < 100 else f"{one:.0f}" for one in (mean, error)]
    return texts[0] if math.isnan(error) else " ± ".join(texts)


def _statement_table(section: str, statements: Sequence[Statement]) -> Table | str:
    rows = []
    for statement in statements:
        if statement.comparisons:
            one = statement.closest
            error = "" if math.isnan(one.error) else f"± {one.error:.2g}; "
            means = f"{one.left} {one.left_mean:.4g}, {one.right} {one.right_mean:.4g}"
            closest = f"{means} ({error}{one.where})"
            rows.append([statement.source, statement.text, statement.summary, closest])
    caption = "verdicts: paired t-tests, Holm-corrected within each statement; see statements.csv"
    if len(rows) < len(statements):
        left = f"{len(statements) - len(rows)} statements of the paper need cells that were not run"
        if not rows:
            return left
        caption = f"{caption}; {left}"
    return _table(
        f"Statements tested by {section}",
        ("by", "statement", "verdict", "closest comparison"),
        rows,
        caption,
        texts=range(4),
    )


def print_comparison(
    found: Sequence[PairedDifference], measure: str, confidence: float, form: str
) -> None:
    """Print the differences; ``form`` is "table" or "csv"."""
    if form == "csv":
        rows = [one.configuration | one._asdict() for one in found]
        names = [name for name in rows[0] if name != "configuration"]
        writer = csv.DictWriter(sys.stdout, names, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return
    varying = varying_labels([one.configuration for one in found])
    interval = f"{confidence:.0%} interval"
    cells = [
        [
            *(str(one.configuration[key]) for key in varying),
            f"{one.left} − {one.right}",
            f"{one.difference:.4g} ± {one.error:.2g}",
            f"{one.low:.4g} … {one.high:.4g}",
            ("< 0.0001" if one.corrected < 0.0001 else f"{one.corrected:.4f}")
            + ("*" if one.corrected < SIGNIFICANT else " "),
            f"{one.replicas:,}",
            "-" if one.replicas_needed is None else f"{one.replicas_needed:,}",
        ]
        for one in found
    ]
    table = _table(
        f"Paired differences of the final {measure.replace('_', ' ')}",
        [*varying, "left − right", "difference", interval, "p (Holm)", "replicas", "needed"],
        cells,
        f"p: paired t-test, Holm-corrected for {counted(len(found), 'comparison')}; * below "
        f"{SIGNIFICANT}. "
        f"Needed: replicas for {POWER:.0%} power to detect a difference of this size in a single "
        "comparison.",
        texts=[len(varying)],
    )
    _wide(Console(), LONG_LINE).print(table)
