"""The published results: ``python docs/generators/results.py [RESULTS]``, also by ``make docs``.

With RESULTS, the ``--out`` of `submax reproduce`, tables, settings, figures and the final values of
every replica are first copied to docs/results, one folder for each experiment. Then the blocks of
the pages there are written anew from these files: what is between ``<!-- results: BLOCK ... -->``
and ``<!-- /results -->``, where BLOCK is one of the functions in `BLOCKS`. All else on the pages is
written by hand and has no numbers of the results.
"""

import csv
import json
import math
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from markdown_tables import table

from submax.core.arrays import Floats
from submax.research.paper.claims import PAPER_REWARDS
from submax.research.paper.figures import (
    draw_figure,
    draw_illustration,
    draw_offline,
    figures_of,
)
from submax.research.paper.statements import LEVEL
from submax.simulation.compare import Finals, TTest, holm, t_test
from submax.simulation.experiment import GROUPS, experiment_groups, load_named, policy_name
from submax.simulation.results import FINAL_TABLE, ResultTable, read_manifest

RESULTS = Path(__file__).parents[1] / "results"
TABLES = ("summary.csv", "statements.csv", "calibration.csv")
DEFAULT, RANDOM = "rcp-adaptive", "random"
RECOMMENDED = {"bump": "fourier-thompson", "pricing": "fourier-thompson"}
RECOMMENDED["pricing-rivals"] = "fourier-thompson"
"""The recommended policy of an experiment if the default does not take its actions."""
HELD_OUT = ("letter", "marketing", "ring", "spambase", "splice", "texture", "twonorm")
"""Tables on which no setting of the default or of a peer was chosen."""
FIGURES = {
    "illustration": {"illustration": "illustration"},
    "bernoulli": {
        **{f"paper-varying-{key}": f"varying-{key}" for key in ("arms", "beta", "delay")},
        "paper-varying-arms-500": "varying-arms-500",
        "paper-all-configurations": "all-configurations",
    },
    "contextual": {"paper-varying-shift": "varying-shift", "paired": "paired"},
    "contextual-wide": {"paper-varying-shift": "varying-shift"},
    "contextual-disjoint": {"paper-varying-shift": "varying-shift", "paired": "paired"},
    "combinatorial": {"paper-panel": "reward", "paired": "paired"},
    "rates": {"growth": "growth"},
    **{name: {"paired": "figure"} for name in experiment_groups()["beyond"] if name != "offline"},
    "offline": {"offline": "figure"},
}
"""The figures that are published of each experiment, with their new names."""
SECTIONS = {
    "illustration": "3.3",
    "bernoulli": "4.1",
    "contextual": "4.2",
    "contextual-wide": "4.2, 100 units",
    "contextual-disjoint": "4.2, context matters",
    "combinatorial": "4.3",
    "ablations": "4.3, footnote; contexts",
    "joint-ablations": "4.3, footnote; joint choices",
}
"""The section of the paper whose statements an experiment tests."""
REPEATED = ("contextual-wide", "contextual-disjoint")
"""Experiments that test the statements of another one in worlds that the paper does not have."""

Rows = list[dict[str, str]]

# Publishing -----------------------------------------------------------------------------------


def folder_of(name: str) -> Path:
    """The folder of an experiment's published results."""
    group = next(GROUPS[one] for one, names in experiment_groups().items() if name in names)
    return RESULTS / group / name


def publish(results: Path, name: str) -> None:
    """Copy tables, settings, final values and figures of a finished experiment, if it was run."""
    source, folder = results / name, folder_of(name)
    if not (source / "summary.csv").is_file():
        return
    folder.mkdir(parents=True, exist_ok=True)
    for file in TABLES:
        if (source / file).is_file():
            shutil.copy(source / file, folder / file)
    if ResultTable.path(source, FINAL_TABLE).is_file():
        write_finals(source, folder)
    manifest = read_manifest(source)
    settings = {
        "version": manifest["versions"]["submax"],
        "run": {
            "date": str(manifest.get("finished", ""))[:10],
            "machine": manifest.get("machine", ""),
        },
        "specification": manifest["specification"],
    }
    text = json.dumps(settings, indent=1, ensure_ascii=False)
    (folder / "settings.json").write_text(f"{text}\n", encoding="utf-8")
    draw = {"illustration": draw_illustration, "offline": draw_offline}.get(name)
    known = {} if draw else {one.name: one for one in figures_of(source)}
    for drawn, target in FIGURES.get(name, {}).items():
        if draw is None:
            draw_figure(source, known[drawn])
        else:
            draw(source)
        shutil.copy(source / "figures" / f"{drawn}.png", folder / f"{target}.png")


def write_finals(source: Path, folder: Path) -> None:
    """Write the final values of all replicas in single precision, of which 17 bits are kept.

    So the largest table stays below a megabyte; means and errors change by less than 1e-4 of them.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(ResultTable.path(source, FINAL_TABLE))
    columns, floats = {}, []
    for name in table.column_names:
        columns[name] = table[name]
        if str(table[name].type) == "double" and name in ("regret", "reward", "late_slope"):
            bits = table[name].to_numpy().astype(np.float32).view(np.int32)
            columns[name] = pa.array(((bits + 0x20) & ~0x3F).view(np.float32))
            floats.append(name)
    pq.write_table(
        pa.table(columns),
        ResultTable.path(folder, FINAL_TABLE),
        compression="zstd",
        compression_level=19,
        use_dictionary=[name for name in columns if name not in floats],
        column_encoding=dict.fromkeys(floats, "BYTE_STREAM_SPLIT"),
    )


# Reading --------------------------------------------------------------------------------------


def rows_of(name: str, table: str = "summary") -> Rows:
    """The rows of a published table; none if the experiment has no such table."""
    return read_csv(folder_of(name) / f"{table}.csv")


def read_csv(path: Path) -> Rows:
    """The rows of a file; none if there is no such file."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def settings_of(name: str) -> dict[str, Any]:
    """The version of submax and the specification that the published results were made with."""
    found: dict[str, Any] = json.loads((folder_of(name) / "settings.json").read_text("utf-8"))
    return found


def recommended(name: str) -> str:
    """The policy that an experiment's others are compared with."""
    return RECOMMENDED.get(name, DEFAULT)


class Gap(NamedTuple):
    """A policy minus the recommended one in a configuration: ``where``, in words.

    ``own`` and ``base`` are the final regrets of both in every replica. ``corrected`` is the
    p-value after correction for all comparisons of the experiment.
    """

    where: str
    policy: str
    own: Floats
    base: Floats
    corrected: float

    @property
    def paired(self) -> TTest:
        return t_test(self.own - self.base)

    @property
    def share(self) -> float:
        """The difference as a share of the recommended policy's mean."""
        return abs(self.paired.mean / float(self.base.mean()))

    @property
    def verdict(self) -> str:
        if self.corrected >= LEVEL:
            return "undecided"
        return "**less**" if self.paired.mean < 0 else "more"


def gaps(name: str) -> list[Gap]:
    """Each policy minus the recommended one in each configuration, by the published replicas."""
    finals, base = Finals.read(folder_of(name)), recommended(name)
    configurations = finals.configurations()
    keys = [key for key in configurations[0] if len({str(one[key]) for one in configurations}) > 1]
    found = []
    for labels in configurations:
        where = in_words({key: labels[key] for key in keys})
        reference = finals.final(base, **labels)
        for policy in finals.policies():
            side = finals.final(policy, **labels)
            if side and reference and policy not in (base, RANDOM):
                found.append(Gap(where, policy, side.values, reference.values, 1.0))
    p_values = holm([one.paired.p_value for one in found])
    return [one._replace(corrected=p) for one, p in zip(found, p_values, strict=True)]


# Tables ---------------------------------------------------------------------------------------


def number(value: float) -> str:
    """A number with three or more digits."""
    return f"{value:.1f}" if abs(value) < 100 else f"{value:.0f}"


def plus_minus(mean: TTest) -> str:
    """A mean with its standard error."""
    return f"{number(mean.mean)} ± {number(mean.error)}"


def signed(mean: TTest) -> str:
    """A difference with its sign and standard error."""
    sign = "−" if mean.mean < 0 else "+"
    return f"{sign}{number(abs(mean.mean))} ± {number(mean.error)}"


def with_error(row: Mapping[str, str], measure: str, best: float = math.nan) -> str:
    """A mean with its standard error, in bold if it is the best."""
    mean, error = float(row[f"{measure}_mean"]), float(row[f"{measure}_standard_error"])
    text = f"**{number(mean)}**" if mean == best else number(mean)
    return f"{text} ± {error:.1f}"


def folded(title: str, content: str) -> str:
    """A part that opens on request."""
    return f"<details><summary>{title}</summary>\n\n{content}\n\n</details>"


def ratio(logarithms: Sequence[float]) -> str:
    """A geometric mean over a few tables with its 95 % interval by t."""
    one = t_test(np.array(logarithms))
    low, middle, high = (f"{math.exp(end):.2f}" for end in (one.low, one.mean, one.high))
    return f"{middle} ({low} to {high})"


def labels_of(rows: Rows) -> list[str]:
    """The columns before the policy that differ between rows."""
    keys = list(rows[0])
    return [key for key in keys[: keys.index("policy")] if len({row[key] for row in rows}) > 1]


def in_words(labels: Mapping[str, Any]) -> str:
    """Labels in words."""
    text = ", ".join(f"{key} = {value}" for key, value in labels.items())
    return text.replace("-", "−").replace("keel:", "").replace("file = ", "") or "all"


# Blocks of pages ------------------------------------------------------------------------------


def provenance(name: str) -> str:
    """A sentence with the command, the size, the version, the date and the machine of a run."""
    settings = settings_of(name)
    given, run = settings["specification"], settings["run"]
    files = f"[summary]({_path(name)}/summary.csv)"
    if ResultTable.path(folder_of(name), FINAL_TABLE).is_file():
        files += f", [replicas]({_path(name)}/finals.parquet)"
    return (
        f"`submax reproduce {name}{_every(name)}`: seed {given['seed']}, {given['replicas']} "
        f"replicas, {given['observations']} decisions, submax {settings['version']}, "
        f"{run['date']}, {run['machine']} ({files})."
    )


def _path(name: str) -> str:
    return folder_of(name).relative_to(RESULTS).as_posix()


def _every(name: str) -> str:
    """``--all`` if the published run has policies that only this option runs."""
    more = {policy_name(one) for one in settings_of(name)["specification"]["more_policies"]}
    return " --all" if any(row["policy"] in more for row in rows_of(name)) else ""


class Tested(NamedTuple):
    """A statement with all its comparisons, as rows of statements.csv."""

    experiment: str
    text: str
    comparisons: Rows

    @property
    def verdict(self) -> str:
        return self.comparisons[0]["verdict"]

    @property
    def closest(self) -> str:
        """The comparison that supports the statement least, with the error of the difference."""
        row = next(row for row in self.comparisons if row["closest"] == "True")
        left, right = float(row["left_mean"]), float(row["right_mean"])
        error = float(row["standard_error_of_difference"])
        spread = "" if math.isnan(error) else f", difference {right - left:+.3g} ± {error:.2g}"
        left_name, right_name = (row[key].replace(" | ", " or ") for key in ("left", "right"))
        return f"{left_name} {left:.4g}, {right_name} {right:.4g}{spread} ({row['where']})"

    @property
    def smoothing(self) -> str:
        """The verdicts with other constants, by verdict."""
        verdicts: dict[str, list[str]] = {}
        for part in filter(None, self.comparisons[0].get("by_smoothing", "").split("; ")):
            constant, _, verdict = part.partition(": ")
            verdicts.setdefault(verdict, []).append(constant.replace("preset", "c = 0.1"))
        if not verdicts:
            return ""
        if len(verdicts) == 1:
            return "the same for every c"
        return "; ".join(f"{verdict}: {', '.join(named)}" for verdict, named in verdicts.items())


def tested(experiment: str, source: str) -> list[Tested]:
    """The statements of this source that the experiment tests, in order."""
    by_text: dict[str, Rows] = {}
    for row in rows_of(experiment, "statements"):
        if row["source"] == source:
            by_text.setdefault(row["statement"], []).append(row)
    return [Tested(experiment, text, rows) for text, rows in by_text.items()]


def verdicts() -> str:
    """How many statements of the paper have each verdict, and the statements."""
    every = {name: tested(name, "paper") for name in SECTIONS}
    lines = []
    for names, what in (
        ([name for name in SECTIONS if name not in REPEATED], "in the worlds of the paper"),
        (list(REPEATED), "repeated in contextual worlds that the paper does not have"),
    ):
        found = [one.verdict for name in names for one in every[name]]
        kinds = ("holds", "does not hold", "depends on the smoothing", "undecided")
        counts = [f"{found.count(kind)} {kind}" for kind in kinds if found.count(kind)]
        counts = [one.replace("holds", "hold").replace("does not", "do not") for one in counts]
        counts = [one.replace("depends", "depend") for one in counts]
        lines.append(f"- {len(found)} statements {what}: {', '.join(counts)}.")
    body = (
        (SECTIONS[name], one.text, f"**{one.verdict}**")
        for name in SECTIONS
        if name not in REPEATED
        for one in every[name]
    )
    return "\n".join(lines) + "\n\n" + table(("section", "statement", "verdict"), body)


def claims(name: str, source: str = "paper") -> str:
    """The statements of an experiment: each sentence of the paper with the tables that test it."""
    by_quote: dict[str, list[Tested]] = {}
    for one in tested(name, source):
        by_quote.setdefault(one.comparisons[0]["quote"], []).append(one)
    parts = []
    for quote, found in by_quote.items():
        smoothed = any(one.smoothing for one in found)
        head = ["statement", "verdict", "closest comparison", *["by smoothing"][: int(smoothed)]]
        body = [
            [one.text, one.comparisons[0]["summary"], one.closest, one.smoothing][: len(head)]
            for one in found
        ]
        parts += [*([f"> {quote}"] if quote else []), table(head, body)]
    title = "The sentences of the paper, and what decides"
    return folded(title if source == "paper" else "Our own statements", "\n\n".join(parts))


def calibration(name: str) -> str:
    """The mean reward of random choice, here and in the paper."""
    body = [
        (row["where"].replace("-", "−"), f"{float(row['mean']):.4f}",
         f"{float(row['paper']):.4f}", f"{float(row['distance']):+.1f}")
        for row in rows_of(name, "calibration")
    ]  # fmt: skip
    return table(("mean reward of random choice", "here", "paper", "standard errors apart"), body)


def by_policy(name: str, measure: str = "final", *where: str) -> str:
    """Policies against configurations; of these only the ones with KEY=VALUE."""
    wanted = dict(one.split("=") for one in where)
    rows = [row for row in rows_of(name) if wanted.items() <= row.items()]
    keys = labels_of(rows)
    columns = list(dict.fromkeys(tuple(row[key] for key in keys) for row in rows))
    by_name: dict[str, dict[tuple[str, ...], dict[str, str]]] = {}
    for row in rows:
        by_name.setdefault(row["policy"], {})[tuple(row[key] for key in keys)] = row
    pick = min if measure == "final" else max
    best = {
        column: pick(float(each[column][f"{measure}_mean"]) for each in by_name.values())
        for column in columns
    }
    body = [
        (f"`{policy}`", *(with_error(each[column], measure, best[column]) for column in columns))
        for policy, each in by_name.items()
    ]
    heads = [in_words(dict(zip(keys, column, strict=True))) for column in columns]
    what = "final regret" if measure == "final" else "final reward"
    return table((what, *(head.replace("all", "mean") for head in heads)), body)


def illustration() -> str:
    """Expected rewards, ours over many environments and the paper's in one."""
    body = (
        (f"`{row['policy']}`", f"{float(row['expected_reward']):.4f}",
         f"{float(row['standard_error']):.4f}", f"{PAPER_REWARDS[row['policy']]:g}")
        for row in rows_of("illustration")
    )  # fmt: skip
    return table(("policy", "expected reward", "standard error", "paper, one environment"), body)


CLASSIC = re.compile(r"epsilon-greedy-.*|ucb1|thompson-1-\d+")
STRONG = re.compile(r"(?!random|rcp-|thompson-(fitted|sharpened)).*")
"""Names of the classic policies of the paper, and of all classic policies."""


def _ratios(policy: str, rivals: re.Pattern[str]) -> list[float]:
    """The regret in each configuration over that of the best rival, chosen in hindsight."""
    groups: dict[tuple[str, ...], dict[str, float]] = {}
    for row in rows_of("bernoulli"):
        where = row["arms"], row["beta"], row["delay"]
        groups.setdefault(where, {})[row["policy"]] = float(row["final_mean"])
    return [
        found[policy] / min(mean for name, mean in found.items() if rivals.fullmatch(name))
        for found in groups.values()
    ]


def smoothing() -> str:
    """Mean ratios to the best classic policy, by the constant that counts are smoothed with."""
    body = []
    for constant in ("0", "0.01", "0.1", "0.3", "1", "fitted"):
        name = "rcp-submax" if constant == "0.1" else f"rcp-submax, c = {constant}"
        found = _ratios(name, CLASSIC)
        ahead = sum(one < 1 for one in found)
        body.append((constant, f"{np.mean(found):.3f}", f"{max(found):.2f}", f"{ahead} of 27"))
    return table(("c", "mean ratio", "worst", "below 1"), body)


def against_classics() -> str:
    """The default and SubMax over the best of all classic policies, averaged."""
    body = []
    for policy in (DEFAULT, "rcp-submax", "thompson-fitted", "thompson-sharpened"):
        cells = []
        for rivals in (CLASSIC, STRONG):
            found = _ratios(policy, rivals)
            cells += [f"{np.mean(found):.3f}", f"{max(found):.2f}", f"{sum(r < 1 for r in found)}"]
        body.append((f"`{policy}`", *cells))
    head = [f"{what}, {who}" for who in ("paper's", "all") for what in ("mean", "worst", "below 1")]
    return table(("ratio to the best classic", *head), body)


def rates() -> str:
    """The exponent with which regret grows in the last tenth of the decisions, by jackknife.

    If R_t = a t^b, then 1 − R_0.9T / R_T = 1 − 0.9^b.
    """
    finals, spec = Finals.read(folder_of("rates")), load_named("rates")
    body = []
    for labels in finals.configurations():
        best, second = (float(one) for one in str(labels["means"]).split("x"))
        for policy in finals.policies():
            regret, late = (finals.side(m, policy, labels) for m in ("regret", "late_slope"))
            if regret is None or late is None:
                continue
            added = late.values * spec.observations / 10
            count = len(added)
            leave_out = _exponent(
                (added.sum() - added) / (count - 1),
                (regret.values.sum() - regret.values) / (count - 1),
            )
            error = math.sqrt((count - 1) * np.var(leave_out))
            slope = abs(float(_exponent(added.mean(), regret.values.mean())))
            theory = f"{second / best:.2f}" if policy == "rcp-optimistic" else ""
            theory = "1" if policy == RANDOM else theory
            spread = (number(float(one)) for one in (np.median(regret.values), max(regret.values)))
            mean = plus_minus(t_test(regret.values))
            exponent = f"{slope:.2f} ± {error:.2f}"
            body.append((f"{best:g}, {second:g}", f"`{policy}`", mean, *spread, exponent, theory))
    head = ("p₁, p₂", "policy", "mean regret", "median", "largest", "exponent", "theory")
    return table(head, body)


def _exponent(added: Any, regret: Any) -> Any:
    return np.log(np.maximum(1 - added / regret, 1e-9)) / np.log(0.9)


def probes(*wanted: str) -> str:
    """What benchmarks/policies/cvae_probes.py measured: variants against shifts."""
    rows = [row for row in read_csv(RESULTS / "paper/probes.csv") if row["probe"] in wanted]
    groups: dict[tuple[str, str], dict[str, list[float]]] = {}
    for row in rows:
        by_shift = groups.setdefault((row["variant"], row["measure"]), {})
        by_shift.setdefault(row["shift"], []).append(float(row["value"]))
    first: dict[str, dict[str, list[float]]] = {}
    body = []
    for (variant, measure), found in groups.items():
        base = first.setdefault(measure, found)
        cells = []
        for shift, values in found.items():
            mean = t_test(np.array(values))
            text = f"{mean.mean:.3f} ± {mean.error:.3f}"
            if "mechanism" in wanted and base is not found:
                gap = t_test(np.array(values) - np.array(base[shift]))
                text += f" ({gap.mean:+.3f} ± {gap.error:.3f})"
            cells.append(text)
        body.append((measure, variant, *cells))
    shifts = next(iter(groups.values()))
    heads = [f"s = {float(shift):g}".replace("-", "−") for shift in shifts]
    return table(("measure", "variant", *heads), sorted(body, key=lambda row: row[0]))


def by_difference(name: str) -> str:
    """Each policy minus the recommended one, in every configuration, with its verdict."""
    parts, found = [], gaps(name)
    for where in dict.fromkeys(one.where for one in found):
        here = [one for one in found if one.where == where]
        body = [(f"`{recommended(name)}`", plus_minus(t_test(here[0].base)), "", "")]
        for one in sorted(here, key=lambda one: one.paired.mean):
            mean = plus_minus(t_test(one.own))
            body.append((f"`{one.policy}`", mean, signed(one.paired), one.verdict))
        title = "policy" if where == "all" else where
        parts.append(table((title, "regret", "difference", ""), body))
    return "\n\n".join(parts)


COMPARED = (
    *("bernoulli", "rates", "contextual", "contextual-wide", "contextual-disjoint"),
    "combinatorial",
    *("ratings", "gaussian", "poisson", "drifting", "continual", "classification"),
    *("bakeoff-dense-rivals", "bakeoff-rare-rivals", "contextual-rivals", "combinatorial-rivals"),
    *("bump", "pricing", "pricing-rivals"),
)
"""The experiments in which the default, or what is recommended in its place, meets others."""


def ahead_of_default(name: str) -> list[Gap]:
    """What is ahead of the default by an uncorrected test at 5 %, the largest share first.

    Correction for many comparisons would hide losses; which ones it leaves is said beside them.
    """
    found = [one for one in gaps(name) if one.paired.mean < 0 and one.paired.p_value < LEVEL]
    return sorted(found, key=lambda one: -one.share)


def losses() -> str:
    """Who is ahead of the default, where, by how much, and whether this is decided."""
    totals, detail = [], []
    for name in COMPARED:
        found, ahead = gaps(name), ahead_of_default(name)
        lower = sum(one.paired.mean < 0 for one in found)
        decided = sum(one.verdict == "**less**" for one in found)
        behind = sum(one.verdict == "more" for one in found)
        totals.append((f"`{name}`", *map(str, (len(found), behind, decided, len(ahead), lower))))
        for one in ahead:
            cells = f"`{name}`", one.where, f"`{one.policy}`", signed(one.paired)
            decision = "decided" if one.corrected < LEVEL else "undecided"
            detail.append((*cells, f"{one.share:.0%}", decision))
    head = (
        *("experiment", "comparisons", "default ahead, decided", "other ahead, decided"),
        *("other ahead, uncorrected", "other has the lower mean"),
    )
    rows = table(("experiment", "where", "policy", "difference", "share", ""), detail)
    title = f"All {len(detail)} places where a policy is ahead by an uncorrected test"
    return f"{table(head, totals)}\n\n{folded(title, rows)}"


def losses_in_short() -> str:
    """How many experiments another policy wins somewhere, and by how much at most."""
    ahead = [(name, found) for name in COMPARED if (found := ahead_of_default(name))]
    decided = sum(any(one.corrected < LEVEL for one in found) for _, found in ahead)
    name, most = max(((name, found[0]) for name, found in ahead), key=lambda one: one[1].share)
    return (
        f"It is not always ahead: in {len(ahead)} of {len(COMPARED)} published experiments some "
        "policy has less regret in at least one setting (paired tests at 5 %; in "
        f"{decided} also after correction for all comparisons). The largest gap is "
        f"{most.share * 100:.0f} %, of `{most.policy}` in `{name}`."
    )


# The bake-off ---------------------------------------------------------------------------------


def _scores(regime: str) -> dict[str, dict[str, tuple[float, float]]]:
    """Lost reward, or with rare rewards the share of random's regret, by table and method.

    Both are lower if better; methods of other libraries are those of peers.csv.
    """
    found: dict[str, dict[str, tuple[float, float]]] = {}
    rows = rows_of(f"bakeoff-{regime}")
    uniform = {row["file"]: float(row["final_mean"]) for row in rows if row["policy"] == RANDOM}
    for row in rows:
        if regime == "dense":
            count = int(row["observations"])
            mean = 1 - float(row["final_reward_mean"]) / count
            error = float(row["final_reward_standard_error"]) / count
        else:
            mean = float(row["final_mean"]) / uniform[row["file"]]
            error = float(row["final_standard_error"]) / uniform[row["file"]]
        found.setdefault(row["file"].partition(":")[2], {})[row["policy"]] = mean, error
    for row in read_csv(RESULTS / "bakeoff/peers.csv"):
        if row["regime"] == regime and row["table"] in found:
            score = 1 - float(row["score_mean"]), float(row["score_standard_error"])
            found[row["table"]][f"{row['method']} (peer)"] = score
    return found


def bakeoff(regime: str, group: str = "all") -> str:
    """One row for each table: the policies of submax, the best peer, and the ratio to it."""
    scores, body = _scores(regime), []
    for name, found in scores.items():
        if group != "all" and (name in HELD_OUT) != (group == "held-out"):
            continue
        peers = {one: score for one, score in found.items() if one.endswith("(peer)")}
        best = min(peers, key=lambda one: peers[one][0])
        own = [one for one in found if one not in peers and one != RANDOM]
        lowest = min(found[one][0] for one in [*own, best])
        cells = [_percent(found[one], lowest) for one in own]
        ratio = found[DEFAULT][0] / peers[best][0]
        body.append((name, *cells, f"{_percent(peers[best], lowest)} {best[:-7]}", f"{ratio:.2f}"))
    first = next(iter(scores.values()))
    own = [one for one in first if not one.endswith("(peer)") and one != RANDOM]
    return table(("table", *own, "best peer", "default / best peer"), body)


def _percent(score: tuple[float, float], lowest: float) -> str:
    mean, error = (100 * one for one in score)
    text = f"**{mean:.1f}**" if score[0] == lowest else f"{mean:.1f}"
    return text if math.isnan(error) else f"{text} ± {error:.1f}"


def bakeoff_overall(regime: str, group: str = "all") -> str:
    """Geometric means over tables of each method over the default, with intervals by t."""
    scores = {
        name: found
        for name, found in _scores(regime).items()
        if group == "all" or (name in HELD_OUT) == (group == "held-out")
    }
    every = list(dict.fromkeys(one for found in scores.values() for one in found))
    body = []
    for method in every:
        logs = [
            math.log(found[method][0] / found[DEFAULT][0])
            for found in scores.values()
            if method in found and found[DEFAULT][0] > 0 and found[method][0] > 0
        ]
        if method not in (RANDOM, DEFAULT) and len(logs) > 1:
            body.append((method, ratio(logs), str(len(logs))))
    body.sort(key=lambda row: float(row[1].split()[0]))
    best = [
        math.log(found[DEFAULT][0] / min(one[0] for name, one in found.items() if "(peer)" in name))
        for found in scores.values()
    ]
    mean = f"The default over the best peer of each table, in hindsight: {ratio(best)}."
    return f"{mean}\n\n{table(('method', 'over the default', 'tables'), body)}"


def rivals_tables(name: str) -> str:
    """Policies over all tables: geometric mean ratios to the default, with intervals by t."""
    rows, body = rows_of(name), []
    by_file: dict[str, dict[str, dict[str, str]]] = {}
    for row in rows:
        by_file.setdefault(row["file"].partition(":")[2], {})[row["policy"]] = row
    found = gaps(name)
    for policy in next(iter(by_file.values())):
        if policy == DEFAULT:
            continue
        logs = {
            file: math.log(float(each[policy]["final_mean"]) / float(each[DEFAULT]["final_mean"]))
            for file, each in by_file.items()
        }
        cells = [ratio(list(logs.values()))]
        fair = [log for file, log in logs.items() if file in HELD_OUT]
        cells += [ratio(fair)] if fair else []
        verdicts_of = [one.verdict for one in found if one.policy == policy]
        # Random choice is a row of the table, and not compared.
        less, more = (
            str(verdicts_of.count(one)) if verdicts_of else "" for one in ("**less**", "more")
        )
        seconds = sum(
            float(each[policy]["deciding_seconds"]) + float(each[policy]["training_seconds"])
            for each in by_file.values()
        )
        body.append((f"`{policy}`", *cells, less, more, f"{seconds:.0f}"))
    body.sort(key=lambda row: float(row[1].split()[0]))
    fair_head = ["held out"] if any(file in HELD_OUT for file in by_file) else []
    return table(
        (
            "policy",
            "over the default",
            *fair_head,
            "less",
            "more",
            "seconds of deciding and training",
        ),
        body,
    )


def offline() -> str:
    """Errors of the estimators and coverage of their intervals."""
    groups: dict[tuple[str, str], Rows] = {}
    for row in rows_of("offline"):
        groups.setdefault((row["file"].partition(":")[2], row["policy"]), []).append(row)
    body = [
        (
            *where,
            *(f"{float(group[0][key]):.3f}" for key in ("logged", "truth")),
            *(f"{float(row['root_mean_squared_error']):.3f} ({float(row['coverage']):.0%})"
              for row in group),
        )
        for where, group in groups.items()
    ]  # fmt: skip
    estimators = [row["estimator"] for row in next(iter(groups.values()))]
    return table(("set", "policy", "log", "worth", *estimators), body)


def experiments() -> str:
    """Every experiment with its command, size, date and machine."""
    pages = {"paper": "README.md", "beyond": "beyond.md", "bakeoff": "bakeoff.md"}
    pages["rivals"] = "rivals.md"
    body = []
    for group, names in experiment_groups().items():
        for name in names:
            settings, rows = settings_of(name), rows_of(name)
            given, run = settings["specification"], settings["run"]
            spent = sum(float(row.get("seconds", 0)) for row in rows) / 60
            page = pages[GROUPS[group]]
            body.append((f"[{page}]({page})", f"`submax reproduce {name}{_every(name)}`",
                         f"{given['replicas']} × {given['observations']}",
                         f"{spent:.0f}" if spent else "", settings["version"], run["date"],
                         run["machine"]))  # fmt: skip
    head = ("page", "command", "replicas × decisions", "minutes", "version", "date", "machine")
    return table(head, body)


BLOCKS: dict[str, Callable[..., str]] = {
    one.__name__.replace("_", "-"): one
    for one in (
        *(provenance, verdicts, claims, calibration, by_policy, illustration, smoothing),
        *(against_classics, rates, probes, by_difference, losses, losses_in_short, bakeoff),
        *(bakeoff_overall, rivals_tables, offline, experiments),
    )
}
BLOCK = re.compile(r"<!-- results: (.*?) -->\n.*?<!-- /results -->", flags=re.DOTALL)


def with_blocks(text: str) -> str:
    """The page with its blocks written anew."""

    def written(match: re.Match[str]) -> str:
        name, *arguments = match[1].split()
        return f"<!-- results: {match[1]} -->\n\n{BLOCKS[name](*arguments)}\n\n<!-- /results -->"

    return BLOCK.sub(written, text)


def pages() -> Iterator[Path]:
    """The pages with blocks."""
    every = [*sorted(RESULTS.glob("*.md")), RESULTS.parents[1] / "README.md"]
    yield from (page for page in every if BLOCK.search(page.read_text("utf-8")))


def main() -> None:
    """Copy results, then write the blocks of all pages."""
    for results in map(Path, sys.argv[1:]):
        for names in experiment_groups().values():
            for name in names:
                publish(results, name)
    for page in pages():
        page.write_text(with_blocks(page.read_text("utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
