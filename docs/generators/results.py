"""The published results: ``python docs/generators/results.py [RESULTS]``, also by ``make docs``.

With RESULTS, the ``--out`` of `submax reproduce`, tables, settings, figures and the final values of
every replica are first copied to docs/results. Then the blocks of the pages there are written anew
from these files: what is between ``<!-- results: BLOCK ... -->`` and ``<!-- /results -->``, where
BLOCK is one of the functions in `BLOCKS`. All else on the pages is written by hand.
"""

import json
import math
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from markdown_tables import table

from submax.research.paper.claims import LEVEL, paper_rewards
from submax.simulation.compare import TTest, holm, t_test
from submax.simulation.experiment import GROUPS, experiment_groups, load_named, policy_name
from submax.simulation.results import FINAL_TABLE, ResultTable, read_manifest

RESULTS = Path(__file__).parents[1] / "results"
DEFAULT, RANDOM = "rcp-adaptive", "random"
RECOMMENDED = dict.fromkeys(("bump", "pricing"), "fourier-thompson")
"""The recommended policy of an experiment if the default does not take its actions."""
HELD_OUT = ("letter", "marketing", "ring", "spambase", "splice", "texture", "twonorm")
"""Tables on which no parameter of a peer was chosen with dense rewards."""
REGIMES = {f"bake-off, {one}": one for one in ("dense", "rare", "repeated")}
"""The parts of bakeoff/scores.csv, which is compared like an experiment."""
SECTIONS = {
    "illustration": "3.3",
    "bernoulli": "4.1",
    "contextual": "4.2",
    "combinatorial": "4.3",
    "ablations": "4.3, footnote; contexts",
    "joint-ablations": "4.3, footnote; joint choices",
    "contextual-wide": "",
    "contextual-disjoint": "",
}
"""Experiments that test statements of the paper, with its section; the last two repeat others."""

GROUP_OF = {name: GROUPS[group] for group, names in experiment_groups().items() for name in names}
"""The folder of each experiment's group."""


def folder_of(name: str) -> Path:
    """The folder of an experiment's published results."""
    return RESULTS / GROUP_OF[name] / name


# Publishing -----------------------------------------------------------------------------------


def publish(results: Path, name: str) -> None:
    """Copy the files of an experiment that was run, and the figures that are published of it."""
    source, folder = results / name, folder_of(name)
    if not (source / "summary.csv").is_file():
        return
    folder.mkdir(parents=True, exist_ok=True)
    for file in source.glob("*.csv"):
        if file.stem in ("summary", "statements", "calibration"):
            shutil.copy(file, folder)
    if ResultTable.path(source, FINAL_TABLE).is_file():
        write_finals(source, folder)
    manifest = read_manifest(source)
    settings = {
        "version": manifest["versions"]["submax"],
        "run": {"date": manifest["finished"][:10], "machine": manifest["machine"]},
        "specification": manifest["specification"],
    }
    text = json.dumps(settings, indent=1, ensure_ascii=False)
    (folder / "settings.json").write_text(f"{text}\n", encoding="utf-8")
    for published in folder.glob("*.png"):
        shutil.copy(source / "figures" / published.name, folder)


def write_finals(source: Path, folder: Path) -> None:
    """Write the final values of all replicas in single precision, of which 17 bits are kept.

    So the largest table stays below a megabyte; means and errors change by less than 1e-4 of them.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    table, floats = pq.read_table(ResultTable.path(source, FINAL_TABLE)), []
    for place, name in enumerate(table.column_names):
        if name in ("regret", "reward", "late_slope") and str(table[name].type) == "double":
            bits = table[name].to_numpy().astype(np.float32).view(np.int32)
            rounded = pa.array(((bits + 0x20) & ~0x3F).view(np.float32))
            table = table.set_column(place, name, rounded)
            floats.append(name)
    pq.write_table(
        table,
        ResultTable.path(folder, FINAL_TABLE),
        compression="zstd",
        compression_level=19,
        use_dictionary=[name for name in table.column_names if name not in floats],
        column_encoding=dict.fromkeys(floats, "BYTE_STREAM_SPLIT"),
    )


# Reading --------------------------------------------------------------------------------------


def rows_of(name: str, file: str = "summary.csv") -> pd.DataFrame:
    """A published table, in which labels are words."""
    nothing = {"keep_default_na": False, "na_values": {"left_mean": [""]}}
    return pd.read_csv(folder_of(name) / file, **nothing)


def finals_of(name: str) -> pd.DataFrame:
    """The published final values of every replica."""
    return pd.read_parquet(folder_of(name) / "finals.parquet")


def settings_of(name: str) -> dict[str, Any]:
    """The version of submax and the specification that the published results were made with."""
    found: dict[str, Any] = json.loads((folder_of(name) / "settings.json").read_text("utf-8"))
    return found


def configurations(frame: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The rows of each configuration with its name: the labels that vary."""
    labels = list(frame)[: list(frame).index("policy")]
    keys = [key for key in labels if frame[key].nunique() > 1]
    if not keys:
        return [("all", frame)]

    def title(values: Any) -> str:
        text = ", ".join(f"{key} = {one}" for key, one in zip(keys, values, strict=True))
        return re.sub("sklearn:|keel:|file = ", "", text.replace("-", "−"))

    return [(title(values), rows) for values, rows in frame.groupby(keys, sort=False)]


class Gap(NamedTuple):
    """A policy minus the recommended one in a configuration, replica by replica.

    ``corrected`` is the p-value after Holm's correction for all comparisons of the experiment.
    """

    where: str
    policy: str
    mean: TTest
    base: TTest
    paired: TTest
    corrected: float

    @property
    def share(self) -> float:
        """The difference as a share of the recommended policy's mean."""
        return abs(self.paired.mean / self.base.mean)

    @property
    def verdict(self) -> str:
        if self.corrected >= LEVEL:
            return "undecided"
        return "**less**" if self.paired.mean < 0 else "more"


def regrets(name: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """Each configuration with its regret, or lost reward in %: replicas by policies."""
    if name not in REGIMES:
        for where, rows in configurations(finals_of(name)):
            values = rows.pivot(index="replica", columns="policy", values="regret").astype(float)
            yield where, values[rows["policy"].unique()]
        return
    for where, rows in scores_of(REGIMES[name]).groupby("table"):
        yield str(where), 100 * rows.pivot(index="seed", columns="method", values="lost")


def scores_of(regime: str) -> pd.DataFrame:
    """The runs of a regime of the bake-off, and what each lost of the reward that is possible."""
    rows = pd.read_csv(RESULTS / "bakeoff/scores.csv").query(f"regime == '{regime}'")
    return rows.assign(lost=1 - rows["score"])


def gaps(name: str) -> list[Gap]:
    """Each policy minus the recommended one in each configuration, by the published replicas."""
    reference, found = RECOMMENDED.get(name, DEFAULT), []
    for where, values in regrets(name):
        base = values[reference]
        for policy in values:
            if policy not in (reference, RANDOM):
                own = values[policy]
                tests = (t_test(one.to_numpy()) for one in (own, base, own - base))
                found.append(Gap(where, policy, *tests, 1.0))
    corrected = holm([one.paired.p_value for one in found])
    return [one._replace(corrected=p) for one, p in zip(found, corrected, strict=True)]


# Cells of tables ------------------------------------------------------------------------------


def number(value: float) -> str:
    """A number with three or more digits."""
    return f"{value:.1f}" if abs(value) < 100 else f"{value:.0f}"


def plus_minus(mean: float, error: float, bold: bool = False) -> str:
    """A mean with its standard error."""
    return f"**{number(mean)}** ± {number(error)}" if bold else f"{number(mean)} ± {number(error)}"


def signed(mean: TTest) -> str:
    """A difference with its sign and standard error."""
    return f"{'−' if mean.mean < 0 else '+'}{plus_minus(abs(mean.mean), mean.error)}"


def folded(title: str, content: str) -> str:
    """A part that opens on request."""
    return f"<details><summary>{title}</summary>\n\n{content}\n\n</details>"


def ratio(logarithms: Iterable[float]) -> str:
    """A geometric mean over tables with its 95 % interval by t."""
    one = t_test(np.array(list(logarithms)))
    return "{1:.2f} ({0:.2f} to {2:.2f})".format(*map(math.exp, (one.low, one.mean, one.high)))


# Blocks: where numbers come from --------------------------------------------------------------


def provenance(name: str) -> str:
    """The command, the size, the version, the date and the machine of an experiment."""
    settings, path = settings_of(name), folder_of(name).relative_to(RESULTS).as_posix()
    given, run = settings["specification"], settings["run"]
    more = {policy_name(one) for one in given["more_policies"]}
    every = " --all" if more & set(rows_of(name)["policy"]) else ""
    files = f"[summary]({path}/summary.csv)"
    if (folder_of(name) / "finals.parquet").is_file():
        files += f", [replicas]({path}/finals.parquet)"
    again = ""
    if once_more := run.get("again"):
        names = " and ".join(f"`{one}`" for one in once_more["policies"])
        again = f"; {names} again on {once_more['date']}, {once_more['machine']}"
    return (
        f"`submax reproduce {name}{every}`: seed {given['seed']}, {given['replicas']} replicas, "
        f"{given['observations']} decisions, submax {settings['version']}, {run['date']}, "
        f"{run['machine']}{again} ({files})."
    )


def run(path: str) -> str:
    """The command, the version, the date and the machine of a file of results."""
    one = json.loads((RESULTS / path).with_suffix(".run.json").read_text("utf-8"))
    return (
        f"`{one['command']}`: submax {one['version']}, {one['date']}, {one['machine']} "
        f"([all runs]({path}))."
    )


# Blocks: the paper ----------------------------------------------------------------------------


def verdicts() -> str:
    """How many statements of the paper have each verdict, and the statements."""
    parts = [rows_of(name, "statements.csv").assign(name=name) for name in SECTIONS]
    rows = pd.concat(parts).query("source == 'paper'").drop_duplicates(["name", "statement"])
    sections = rows["name"].map(SECTIONS)
    words = {
        "holds": "hold",
        "does not hold": "do not hold",
        "depends on the smoothing": "depend on the smoothing",
        "undecided": "undecided",
    }
    lines = []
    for mine, what in (
        (rows[sections != ""], "in the worlds of the paper"),
        (rows[sections == ""], "repeated in contextual worlds that the paper does not have"),
    ):
        counts = mine["verdict"].value_counts()
        told = ", ".join(f"{counts[kind]} {word}" for kind, word in words.items() if kind in counts)
        lines.append(f"- {len(mine)} statements {what}: {told}.")
    body = [
        (SECTIONS[one.name], one.statement, f"**{one.verdict}**")
        for one in rows[sections != ""].itertuples(index=False)
    ]
    return "\n".join(lines) + "\n\n" + table(("section", "statement", "verdict"), body)


def claims(name: str, source: str = "paper") -> str:
    """The statements of an experiment: each sentence of the paper with the tables that test it."""
    rows = rows_of(name, "statements.csv")
    rows = rows[(rows["source"] == source) & (rows["closest"].astype(str) == "True")]
    parts = []
    for quote, group in rows.groupby("quote", sort=False):
        head = ["statement", "verdict", "closest comparison"]
        body = [[one["statement"], one["summary"], closest(one)] for _, one in group.iterrows()]
        if any(group["by_smoothing"]):
            head.append("by smoothing")
            for line, text in zip(body, group["by_smoothing"], strict=True):
                line.append(by_smoothing(text))
        parts += [*([f"> {quote}"] if quote else []), table(head, body)]
    title = "The sentences of the paper, and what decides"
    title = title if source == "paper" else "Our own statements"
    return folded(title, "\n\n".join(parts))


def closest(row: Mapping[str, Any]) -> str:
    """The comparison that supports a statement least, with the error of the difference."""
    left, right = float(row["left_mean"]), float(row["right_mean"])
    error = pd.to_numeric(row["standard_error_of_difference"])
    spread = "" if math.isnan(error) else f", difference {right - left:+.3g} ± {error:.2g}"
    names = [str(row[key]).replace(" | ", " or ") for key in ("left", "right")]
    return f"{names[0]} {left:.4g}, {names[1]} {right:.4g}{spread} ({row['where']})"


def by_smoothing(text: str) -> str:
    """The verdicts with other constants, by verdict."""
    verdicts: dict[str, list[str]] = {}
    for part in filter(None, text.split("; ")):
        constant, _, verdict = part.partition(": ")
        verdicts.setdefault(verdict, []).append(constant.replace("preset", "c = 0.1"))
    if len(verdicts) < 2:
        return "the same for every c" if verdicts else ""
    return "; ".join(f"{verdict}: {', '.join(named)}" for verdict, named in verdicts.items())


def calibration(name: str) -> str:
    """The mean reward of random choice, here and in the paper."""
    body = [
        (str(one.where).replace("-", "−"), f"{one.mean:.4f}", f"{one.paper:.4f}",
         f"{one.distance:+.1f}")
        for one in rows_of(name, "calibration.csv").itertuples()
    ]  # fmt: skip
    return table(("mean reward of random choice", "here", "paper", "standard errors apart"), body)


def by_policy(name: str, measure: str = "final") -> str:
    """Policies against configurations; the best mean of each is bold."""
    columns, mean, error = [], {}, {}
    for where, rows in configurations(rows_of(name)):
        columns.append(where.replace("all", "mean"))
        by_name = rows.set_index("policy")
        mean[columns[-1]] = by_name[f"{measure}_mean"].astype(float)
        error[columns[-1]] = by_name[f"{measure}_standard_error"].astype(float)
    best = {one: mean[one].min() if measure == "final" else mean[one].max() for one in columns}
    body = [
        (f"`{policy}`", *(plus_minus(mean[one][policy], error[one][policy],
                                     mean[one][policy] == best[one]) for one in columns))
        for policy in mean[columns[0]].index
    ]  # fmt: skip
    return table(("final regret" if measure == "final" else "final reward", *columns), body)


def illustration() -> str:
    """Expected rewards, ours over many environments and the paper's in one."""
    body = [
        (f"`{one.policy}`", f"{one.expected_reward:.4f}", f"{one.standard_error:.4f}",
         f"{paper_rewards()[str(one.policy)]:g}")
        for one in rows_of("illustration").itertuples()
    ]  # fmt: skip
    return table(("policy", "expected reward", "standard error", "paper, one environment"), body)


CLASSIC = r"epsilon-greedy-.*|ucb1|thompson-1-\d+"
STRONG = r"(?!random|rcp-|thompson-(fitted|sharpened)).*"
"""Names of the classic policies of the paper, and of all classic policies."""


def ratios(policy: str, rivals: str) -> "pd.Series[float]":
    """The regret in each configuration over that of the best rival, chosen in hindsight."""
    rows = rows_of("bernoulli")
    means = rows.pivot(index=["arms", "beta", "delay"], columns="policy", values="final_mean")
    return means[policy] / means[[one for one in means if re.fullmatch(rivals, one)]].min(axis=1)


def smoothing() -> str:
    """Mean ratios to the best classic policy, by the constant that counts are smoothed with."""
    body = []
    for constant in ("0", "0.01", "0.1", "0.3", "1", "fitted"):
        found = ratios("rcp-submax" + f", c = {constant}" * (constant != "0.1"), CLASSIC)
        ahead = f"{(found < 1).sum()} of 27"
        body.append((constant, f"{found.mean():.3f}", f"{found.max():.2f}", ahead))
    return table(("c", "mean ratio", "worst", "below 1"), body)


def against_classics() -> str:
    """The default and SubMax over the best of all classic policies, averaged."""
    body = []
    for policy in (DEFAULT, "rcp-submax", "thompson-fitted", "thompson-sharpened"):
        found = [ratios(policy, rivals) for rivals in (CLASSIC, STRONG)]
        cells = ((f"{r.mean():.3f}", f"{r.max():.2f}", str((r < 1).sum())) for r in found)
        body.append((f"`{policy}`", *(cell for three in cells for cell in three)))
    head = [f"{what}, {who}" for who in ("paper's", "all") for what in ("mean", "worst", "below 1")]
    return table(("ratio to the best classic", *head), body)


def sweeps() -> str:
    """How much ε and the prior matter, and Thompson sampling with the true prior against SubMax.

    Best and worst of a family are those of the other half of the replicas.
    """
    lines, arms = [], list(regrets("bernoulli"))
    for what, family in (("ε", "epsilon-greedy-"), ("priors", "thompson-1-")):
        tests, spread = [], []
        for _, values in arms:
            mine = values[[one for one in values if re.fullmatch(family + r"[\d.]+", str(one))]]
            halves = mine.iloc[: len(mine) // 2], mine.iloc[len(mine) // 2 :]
            apart = [
                own[other.mean().idxmax()] - own[other.mean().idxmin()]
                for own, other in (halves, halves[::-1])
            ]
            tests.append(t_test(pd.concat(apart).to_numpy()))
            spread.append(mine.mean().max() / mine.mean().min())
        pairs = zip(tests, holm([one.p_value for one in tests]), strict=True)
        decided = sum(one.mean > 0 and p < LEVEL for one, p in pairs)
        lines.append(
            f"- The worst of {mine.shape[1]} {what} has {min(spread):.2f} to {max(spread):.1f} "
            f"times the regret of the best (median {np.median(spread):.1f}); the difference is "
            f"decided in {decided} of {len(arms)} configurations."
        )
    finals = finals_of("bernoulli").query("arms == 100 and delay == 100")
    body = []
    for beta, rows in finals.groupby("beta"):
        values = rows.pivot(index="replica", columns="policy", values="regret").astype(float)
        thompson, own = values[f"thompson-1-{beta:g}"], values["rcp-submax"]
        cells = (plus_minus(*t_test(one.to_numpy())[:2]) for one in (thompson, own))
        body.append((f"Beta(1, {beta:g})", *cells, signed(t_test((own - thompson).to_numpy()))))
    head = ("K = 100, N_b = 100", "Thompson, true prior", "`rcp-submax`", "difference")
    return "\n".join(lines) + "\n\n" + table(head, body)


def rates() -> str:
    """The exponent with which regret grows in the last tenth of the decisions, by jackknife.

    If R_t = a t^b, then 1 − R_0.9T / R_T = 1 − 0.9^b.
    """

    def exponent(added: Any, regret: Any) -> Any:
        return np.log(np.maximum(1 - added / regret, 1e-9)) / np.log(0.9)

    body, last = [], load_named("rates").observations / 10
    for (means, policy), rows in finals_of("rates").groupby(["means", "policy"], sort=False):
        best, second = (float(one) for one in str(means).split("x"))
        regret = rows["regret"].to_numpy(float)
        added, count = rows["late_slope"].to_numpy(float) * last, len(rows)
        leave_out = exponent(added.sum() - added, regret.sum() - regret)
        error = math.sqrt((count - 1) * np.var(leave_out))
        slope = abs(float(exponent(added.mean(), regret.mean())))
        theory = {"rcp-optimistic": f"{second / best:.2f}", RANDOM: "1"}.get(str(policy), "")
        mean = t_test(regret)
        spread = number(float(np.median(regret))), number(regret.max())
        body.append((f"{best:g}, {second:g}", f"`{policy}`", plus_minus(mean.mean, mean.error),
                     *spread, f"{slope:.2f} ± {error:.2f}", theory))  # fmt: skip
    head = ("p₁, p₂", "policy", "mean regret", "median", "largest", "exponent", "theory")
    return table(head, body)


def probes(wanted: str) -> str:
    """What benchmarks/policies/cvae_probes.py measured: variants against shifts."""
    rows = pd.read_csv(RESULTS / "paper/probes.csv").query(f"probe == '{wanted}'")
    body, shifts = [], rows["shift"].unique()
    for measure, every in rows.groupby("measure"):
        values = every.pivot(index="replica", columns=["variant", "shift"], values="value")
        first, *_ = variants = every["variant"].unique()
        for variant in variants:
            cells = [str(measure), str(variant)]
            for shift in shifts:
                own, base = values[variant, shift].to_numpy(), values[first, shift].to_numpy()
                mean, gap = t_test(own), t_test(own - base)
                cells.append(f"{mean.mean:.3f} ± {mean.error:.3f}")
                if wanted == "mechanism" and gap.mean:
                    cells[-1] += f" ({gap.mean:+.3f} ± {gap.error:.3f})"
            body.append(cells)
    names = (f"s = {shift:g}".replace("-", "−") for shift in shifts)
    return table(("measure", "variant", *names), body)


# Blocks: the default and others ---------------------------------------------------------------


def by_difference(name: str) -> str:
    """Each policy minus the recommended one, in every configuration, with its verdict."""
    parts, found = [], gaps(name)
    for where in dict.fromkeys(one.where for one in found):
        here = sorted((one for one in found if one.where == where), key=lambda one: one.paired.mean)
        base = f"`{RECOMMENDED.get(name, DEFAULT)}`"
        body = [(base, plus_minus(*here[0].base[:2]), "", "")]
        for one in here:
            mean = plus_minus(*one.mean[:2])
            body.append((f"`{one.policy}`", mean, signed(one.paired), one.verdict))
        title = "policy" if where == "all" else where
        parts.append(table((title, "regret", "difference", ""), body))
    return "\n\n".join(parts)


def over_tables(name: str) -> str:
    """Policies over all tables: geometric mean ratios to the default, with intervals by t."""
    rows = rows_of(name)
    means = rows.pivot(index="file", columns="policy", values="final_mean").astype(float)
    logs = np.log(means.div(means[DEFAULT], axis=0))
    held = [one for one in logs.index if one.partition(":")[2] in HELD_OUT]
    seconds = (rows["deciding_seconds"] + rows["training_seconds"]).groupby(rows["policy"]).sum()
    found, body = gaps(name), []
    for policy in logs.mean().sort_values().index.drop(DEFAULT):
        cells = [f"`{policy}`", ratio(logs[policy]), *([ratio(logs[policy][held])] if held else [])]
        mine = [one.verdict for one in found if one.policy == policy]
        counts = [str(mine.count(one)) if mine else "" for one in ("**less**", "more")]
        body.append((*cells, *counts, f"{seconds[policy]:.0f}"))
    head = ["policy", "over the default", *["held out"][: len(held)], "less", "more", "seconds"]
    return table(head, body)


COMPARED = (
    *("bernoulli", "rates", "contextual", "contextual-wide", "contextual-disjoint"),
    *("combinatorial", "ratings", "gaussian", "poisson", "drifting", "continual"),
    *("classification", "bakeoff-dense-rivals", "bakeoff-rare-rivals", "contextual-rivals"),
    *("combinatorial-rivals", "bump", "pricing", "bakeoff-dense", "bakeoff-rare", *REGIMES),
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
        verdicts = [one.verdict for one in found]
        counts = len(found), verdicts.count("more"), verdicts.count("**less**"), len(ahead)
        lower = sum(one.paired.mean < 0 for one in found)
        totals.append((f"`{name}`", *map(str, (*counts, lower))))
        for one in ahead:
            decision = "decided" if one.corrected < LEVEL else "undecided"
            detail.append((f"`{name}`", one.where, f"`{one.policy}`", signed(one.paired),
                           f"{one.share:.0%}", decision))  # fmt: skip
    sides = ("default ahead, decided", "other ahead, decided", "other ahead, uncorrected")
    head = ("experiment", "comparisons", *sides, "other has the lower mean")
    rows = table(("experiment", "where", "policy", "difference", "share", ""), detail)
    title = f"All {len(detail)} places where a policy is ahead by an uncorrected test"
    return f"{table(head, totals)}\n\n{folded(title, rows)}"


def losses_in_short() -> str:
    """How many experiments another policy wins somewhere, and by how much at most."""
    ahead = [(name, found) for name in COMPARED if (found := ahead_of_default(name))]
    decided = sum(any(one.corrected < LEVEL for one in found) for _, found in ahead)
    name, most = max(((name, found[0]) for name, found in ahead), key=lambda one: one[1].share)
    return (
        "The default (or, for real-valued actions, `fourier-thompson`) does not always win: in "
        f"{len(ahead)} of {len(COMPARED)} published experiments, some policy has less regret in at "
        f"least one setting (paired tests at the 5 % level; {decided} of them also after "
        "correcting for all comparisons). The largest gap is "
        f"{most.share * 100:.0f} %: `{most.policy}` in `{name}`."
    )


def in_short() -> str:
    """The default over the best rival of each problem: its mean and its worst."""
    body = []
    for what, rivals in (("of the paper", CLASSIC), ("that we know", STRONG)):
        found, who = ratios(DEFAULT, rivals), "all " if rivals == STRONG else "the "
        problem = f"the paper's 27 problems, {who}classic policies {what}"
        body.append((problem, f"{found.mean():.3f}", f"{found.max():.2f}"))
    for what, *which in (
        ("seven tables with contexts", "dense", "held-out"),
        ("eight tables, rare rewards", "rare"),
        ("twelve new tables, rows met several times", "repeated"),
    ):
        lost = lost_rewards(*which)
        others = lost.drop(columns=[DEFAULT, RANDOM])
        logs = np.log(lost[DEFAULT] / others.min(axis=1))
        problem = f"{what}, {others.shape[1]} other methods"
        body.append((problem, ratio(logs), f"{np.exp(logs.max()):.2f}"))
    return table(("", "mean", "worst"), body)


def weak_spots() -> str:
    """The default against the best other policy of each problem, in the same worlds."""
    rows, body = pd.read_csv(RESULTS / "default/weak-spots.csv"), []
    for (problem, measure), mine in rows.groupby(["problem", "measure"], sort=False):
        values = mine.pivot(index=["seed", "replica"], columns="policy", values="value")
        sign = -1 if measure in ("mean reward", "share of the better arm") else 1
        others = values.drop(columns=[DEFAULT, RANDOM], errors="ignore")
        best = (sign * others.mean()).idxmin()
        own, gap = t_test(values[DEFAULT].to_numpy()), values[DEFAULT] - values[best]
        paired, other = t_test(gap.to_numpy()), t_test(values[best].to_numpy())
        far = "behind" if sign * paired.mean > 0 else "ahead"
        far = "level" if paired.p_value >= LEVEL else far
        worst = sign * (sign * values[DEFAULT]).max()
        mean = f"{own.mean:.4g} ± {own.error:.2g}"
        body.append((str(problem), str(measure), mean, f"{worst:.4g}", f"`{best}`",
                     f"{other.mean:.4g} ± {other.error:.2g}",
                     f"{paired.mean:+.3g} ± {paired.error:.2g}", far))  # fmt: skip
    head = ("problem", "measure", "default", "its worst replica", "best other", "its mean")
    return table((*head, "difference", ""), sorted(body))


# Blocks: the bake-off -------------------------------------------------------------------------


def lost_rewards(regime: str, group: str = "all") -> pd.DataFrame:
    """What each method loses, the mean over seeds: tables by methods."""
    lost = scores_of(regime).groupby(["table", "method"], sort=False)["lost"].mean().unstack()
    return lost if group == "all" else lost[lost.index.isin(HELD_OUT) == (group == "held-out")]


def bakeoff(regime: str, group: str = "all") -> str:
    """Every method over the default, and the default and the best other on each table."""
    lost = lost_rewards(regime, group)
    values = scores_of(regime).set_index(["table", "method"])["lost"].sort_index()
    others = lost.drop(columns=[DEFAULT, RANDOM])
    best, logs = others.idxmin(axis=1), np.log(lost.div(lost[DEFAULT], axis=0))
    tables = []
    for name in lost.index:
        own, rival = values[name, DEFAULT].to_numpy(), values[name, best[name]].to_numpy()
        one, other, paired = (t_test(100 * v) for v in (own, rival, own - rival))
        tables.append((name, plus_minus(*one[:2]), best[name], plus_minus(*other[:2]),
                       f"{math.exp(-logs[best[name]][name]):.2f}", signed(paired)))  # fmt: skip
    lead = ratio(-logs[others.columns].min(axis=1))
    mean = f"The default over the best other of each table, in hindsight: {lead}."
    tuned = pd.read_csv(RESULTS / "bakeoff/tuning.csv").query(f"regime == '{regime}'")
    counts = tuned["method"].drop_duplicates().str.partition(" ")[0].value_counts()
    body = [
        (one, ratio(logs[one]), str((lost[one] < lost[DEFAULT]).sum()), str(counts.get(one, "")))
        for one in logs.mean().sort_values().index
        if one != DEFAULT
    ]
    methods = table(("method", "over the default", "tables ahead of it", "candidates"), body)
    head = ("table", DEFAULT, "best other", "its loss", "ratio", "difference")
    return f"{mean}\n\n{methods}\n\n{folded('Table by table', table(head, tables))}"


def tuning(problem: str) -> str:
    """The best candidate of each method, and the one that the experiments use."""
    rows = pd.read_csv(RESULTS / f"tuning/{problem}.csv").query("method != 'random'")
    body = []
    for method, mine in rows.groupby("method", sort=False):
        mine = mine.sort_values("score", kind="stable")
        used = mine[mine["used"]].iloc[0]
        place = (mine["score"] < used["score"]).sum() + 1
        body.append((f"`{method}`", str(len(mine)), f"{mine['score'].iloc[0]:.3f}",
                     used["parameters"], f"{used['score']:.3f}", str(place),
                     f"{mine['score'].mean():.3f}"))  # fmt: skip
    body.sort(key=lambda row: row[4])
    head = ("method", "candidates", "best score", "in use", "its score", "its rank", "mean of all")
    return table(head, body)


def soak() -> str:
    """What the simulated year reached."""
    rows = pd.read_csv(RESULTS / "soak.csv", dtype=str)
    return table(("", ""), [(one.what, f"{int(one.value):,}") for one in rows.itertuples()])


def offline() -> str:
    """Errors of the estimators and coverage of their intervals."""
    rows, body = rows_of("offline"), []
    for (file, policy), group in rows.groupby(["file", "policy"], sort=False):
        logged, truth = (f"{group[key].iloc[0]:.3f}" for key in ("logged", "truth"))
        errors = zip(group["root_mean_squared_error"], group["coverage"], strict=True)
        cells = (f"{error:.3f} ({coverage:.0%})" for error, coverage in errors)
        body.append((str(file).partition(":")[2], str(policy), logged, truth, *cells))
    return table(("set", "policy", "log", "worth", *rows["estimator"].unique()), body)


BLOCKS: dict[str, Callable[..., str]] = {
    one.__name__.replace("_", "-"): one
    for one in (
        *(provenance, run, verdicts, claims, calibration, by_policy, illustration, smoothing),
        *(against_classics, sweeps, rates, probes, by_difference, over_tables, losses),
        *(losses_in_short, in_short, weak_spots, bakeoff, tuning, soak, offline),
    )
}
BLOCK = re.compile(r"<!-- results: (.*?) -->\n.*?<!-- /results -->", flags=re.DOTALL)


def with_blocks(text: str) -> str:
    """The page with its blocks written anew."""

    def written(match: re.Match[str]) -> str:
        name, *arguments = match[1].split()
        return f"<!-- results: {match[1]} -->\n\n{BLOCKS[name](*arguments)}\n\n<!-- /results -->"

    return BLOCK.sub(written, text)


def pages() -> list[Path]:
    """The pages with blocks."""
    every = [*sorted(RESULTS.glob("*.md")), RESULTS.parents[1] / "README.md"]
    return [page for page in every if BLOCK.search(page.read_text("utf-8"))]


def main() -> None:
    """Copy results, then write the blocks of all pages."""
    for results in map(Path, sys.argv[1:]):
        for name in sorted(GROUP_OF):
            publish(results, name)
    for page in pages():
        page.write_text(with_blocks(page.read_text("utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
