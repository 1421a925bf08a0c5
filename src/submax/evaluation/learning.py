"""Learns a policy from a log: one, the best of several, or the best parameters."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from submax.core.errors import InputError
from submax.core.policy import Policy
from submax.core.rewards import Binary
from submax.evaluation.comparison import compare
from submax.evaluation.estimators import make_off_policy, tuned
from submax.evaluation.evaluator import Evaluator, Progress
from submax.evaluation.log import By, DividedLog, Log, data_frame, divided
from submax.evaluation.policies import candidate_of, learn_one, named, variant_of
from submax.evaluation.propensities import randomly_thinned
from submax.evaluation.report import Comparison
from submax.policies.specification import Search, Specification, parsed_variant, variants
from submax.schema.trained_policy import MOST_ROWS, TrainedPolicy
from submax.statistics.sums import Terms, TermSums, Units

DEFAULT = "rcp-adaptive"
"""The policy that is learned if a log has too few rows for a choice."""
NETWORK = ("rcp-softmax-converged", "rcp-softmax-converged@greedy")
TREES = ("boosted-greedy", "forest-greedy", "trees-greedy")
MOST_ACTIONS_OF_TREES = 200
"""Up to this many joint actions, each has trees of its own: more would take long to fit."""


def standard_candidates(log: Log) -> tuple[Specification, ...]:
    """Return the policies that suit a log and whose libraries are installed.

    With a context these are the default and its greedy variant, a softmax network that is trained
    to convergence with its greedy variant (needs JAX), and the highest predicted reward of boosted
    trees, of random trees, of both and of a regression for each action (needs scikit-learn). The
    action with the highest mean reward is always a candidate.
    """
    found: list[Specification] = [DEFAULT, f"{DEFAULT}@greedy"]
    if not log.schema.context.width:
        found += ["rcp-submax", "mean-per-arm"]
    else:
        few = log.problem.space.size <= MOST_ACTIONS_OF_TREES
        models = few and find_spec("sklearn") is not None
        network = all(find_spec(one) for one in ("jax", "equinox", "optax"))
        linear = "logistic-greedy" if log.problem.scale == Binary() else "ridge-greedy"
        found += [*NETWORK * network, *TREES * models, "mean-per-arm", *[linear] * models]
    return tuple(one for one in found if _suits(one, log))


def _suits(candidate: Specification, log: Log) -> bool:
    try:
        candidate_of(candidate, log, "")
    except InputError:
        return False
    return True


CLEAR_ERRORS = 2.0
"""A difference is clear if it is more than this many standard errors. Between two equal policies
that happens about 5 times in 100."""


class Race(NamedTuple):
    """The ``folds`` of a log on which candidates were compared so far.

    A fold has the terms of the candidates that were evaluated on its rows, by name, and which of
    these rows are independent. Candidates that are clearly worse than the best one are left out of
    later folds. The value of a candidate is V = Σ_f n_f V_f / Σ_f n_f over its folds f of n_f
    decisions. A difference is d = Σ_f n_f d_f / Σ_f n_f over the folds in which both took part. It
    has the standard error √(Σ_f n_f² e_f²) / Σ_f n_f, where d_f is paired, from the same rows.

    Reference: Maron and Moore (1994), Hoeffding races: accelerating model selection search.
    *Departs from the paper:* the bound is that of a normal mean, and folds are those of a
    cross-validation.
    """

    folds: tuple[tuple[Mapping[str, Terms], Units], ...] = ()

    def value(self, name: str) -> float:
        """Return the mean value of a candidate over the rows on which it was evaluated."""
        folds = [terms[name] for terms, _ in self.folds if name in terms]
        return sum(terms.decisions * terms.value for terms in folds) / self.rows(name)

    def rows(self, name: str) -> float:
        """Return the number of decisions on which a candidate was evaluated."""
        return sum(terms[name].decisions for terms, _ in self.folds if name in terms)

    def lead(self, first: str, second: str) -> tuple[float, float]:
        """Return how much more the first candidate earns than the second one, and the error."""
        total = value = variance = 0.0
        for terms, units in self.folds:
            if first in terms and second in terms:
                count, centre = terms[first].decisions, terms[first].value
                lead = TermSums.of(terms[first], terms[second], centre, units).difference()
                total += count
                value += count * lead.value
                variance += (count * lead.error) ** 2
        return value / total, float(np.sqrt(variance)) / total

    def best(self) -> str:
        """Return the candidate with the highest value among those that were not left out."""
        values = {name: self.value(name) for name in self.folds[-1][0]}
        return max(values, key=lambda name: np.nan_to_num(values[name], nan=-np.inf))

    def contenders(self) -> list[str]:
        """Return the best candidate, and those that more rows could show to be better.

        Candidates that are clearly worse are left out, and those that decide as the best one does.
        """
        best = self.best()
        leads = {name: self.lead(best, name) for name in self.folds[-1][0] if name != best}
        clear = {name for name, (gap, e) in leads.items() if e == 0 or gap > CLEAR_ERRORS * e}
        return [name for name in self.folds[-1][0] if name not in clear]


CHOOSING_SHARE = 0.8
"""Candidates are chosen by this share of the rows; the rest reports the value of each."""
QUARTERS = 4
"""Parts of the rows by which the best candidate is chosen. Candidates learn from three parts and
are evaluated on the fourth; those that are not clearly worse, also in the other three ways."""
CHOOSING_ESTIMATOR = "dr"
"""The estimator by whose value the best candidate is chosen."""
FEWEST_ROWS = 1000
"""With fewer rows nothing is chosen: 200 rows or fewer would decide, which is mostly chance."""
MOST_CHOOSING_ROWS = 200_000
"""The choice uses at most about this many rows, spread evenly over the log."""


class BestPolicy(NamedTuple):
    """The ``winner`` among candidates, ``learned`` from all rows.

    ``race`` compares the candidates on the selection rows, and ``report`` on held-out rows; both
    are None if the log has too few rows. ``notes`` are sentences about the choice.
    """

    winner: str
    learned: TrainedPolicy
    race: Race | None
    report: Comparison | None
    notes: list[str]

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each candidate: its value by which it was chosen, and the report.

        ``behind`` is how much more the winner earns on the selection rows.
        """
        rows = []
        for estimate in () if self.report is None else self.report.recommended()[1:]:
            assert self.race is not None
            policy = estimate.policy
            behind, error = self.race.lead(self.winner, policy)
            rows.append(
                {
                    "policy": policy,
                    "winner": policy == self.winner,
                    "choosing_value": self.race.value(policy),
                    "choosing_rows": round(self.race.rows(policy)),
                    "behind": behind,
                    "behind_error": error,
                    "estimator": estimate.estimator,
                    "value": estimate.value,
                    **estimate.interval._asdict(),
                    "warnings": " | ".join(estimate.cautions),
                }
            )
        return rows

    def to_pandas(self) -> Any:
        """Return a data frame with a row for each candidate."""
        return data_frame(self.rows())


SLOW_SECONDS = 0.03
"""A policy is slow if a decision takes longer: a user who waits notices it."""


def decision_seconds(learned: TrainedPolicy, log: Log) -> float:
    """Return the seconds of a decision, the least of three in the first context of the log."""
    model, rng, times = learned.model, np.random.default_rng(0), list[float]()
    encoded = log.schema.context.encode_rows(log.context[:1]).astype(np.float64)
    for _ in range(3):
        begin = perf_counter()
        learned.policy.act(model.state, model.standardization.apply(encoded)[None], rng)
        times.append(perf_counter() - begin)
    return min(times)


def learn_best(
    log: Log,
    candidates: Sequence[Specification] | None = None,
    *,
    share: float = 1.0,
    by: By = "time",
    seed: int = 0,
    keep_rows: int = MOST_ROWS,
    level: float = 0.95,
    progress: Progress | None = None,
) -> BestPolicy:
    """Return the best of several policies, by default of the ``standard_candidates`` of a log.

    Candidates learn from 60 % of the rows (the first by time, or random ones), and are compared by
    ``dr`` on the next 20 %. Those that are not clearly worse than the best one are also compared on
    the other three quarters of these 80 %, each time after learning from the rest, until one is
    left. The highest value wins. All candidates are then evaluated on the last 20 %, because the
    winner's value is too high on the rows that chose it. Finally the winner learns again from all
    rows, or from a ``share`` of them.
    """
    part = log if share == 1.0 else log.split(share, by, seed)[0]
    few = part.decisions < FEWEST_ROWS
    if candidates is None:
        candidates = [DEFAULT] if few else standard_candidates(part)
    given: dict[str, Any] = named(candidates)
    if not given:
        raise InputError("the list of policies is empty: name a policy, or leave the list out")
    race = report = None
    winner, notes = next(iter(given)), list[str]()
    if few:
        notes.append(
            f"{part.decisions} rows are too few to choose among policies ({FEWEST_ROWS} are "
            f"needed): {winner} was learned"
        )
    elif len(given) > 1:
        thinned = randomly_thinned(part, MOST_CHOOSING_ROWS, seed)
        choosing, reporting = thinned.split(CHOOSING_SHARE, by, seed)
        quarters = divided(choosing, [1 / QUARTERS] * QUARTERS, by, seed)
        race, learned = raced(quarters, given, seed, progress)
        report = compare(reporting, learned, level=level, seed=seed, trained_elsewhere=True)
        winner = race.best()
        notes.append(
            f"{winner} was chosen among {len(given)} policies by {CHOOSING_ESTIMATOR} on "
            f"{race.rows(winner):.0f} rows from which it had not learned; the values are from "
            f"{len(reporting)} other rows"
        )
        leads = {name: race.lead(winner, name) for name in race.contenders() if name != winner}
        if leads:
            rivals = [f"{name} (behind by {gap:.2g} ± {e:.2g})" for name, (gap, e) in leads.items()]
            notes.append(f"these rows cannot tell {winner} from {', '.join(rivals)}")
        if len(thinned) < len(part):
            notes.append(f"the choice used {len(thinned)} random rows of the log")
    best = learn_one(log, given[winner], share=share, by=by, seed=seed, keep_rows=keep_rows)
    spent = decision_seconds(best, log)
    if spent > SLOW_SECONDS:
        notes.append(
            f"{winner} is slow: a decision takes about {spent:.2g} s; name faster policies, such "
            f"as {DEFAULT}, if users wait for it"
        )
    return BestPolicy(winner, best, race, report, notes)


def raced(
    log: DividedLog, given: Mapping[str, Any], seed: int, progress: Progress | None = None
) -> tuple[Race, dict[str, TrainedPolicy]]:
    """Return the comparison of the candidates, and what they learned for its first fold.

    The last part of the log is the first one on which they are compared.
    """
    estimator = make_off_policy(CHOOSING_ESTIMATOR)
    race, first, contenders = Race(), dict[str, TrainedPolicy](), list(given)
    for held_out in reversed(range(int(log.part.max()) + 1)):
        others, learned = log.log.rows(log.part != held_out), dict[str, TrainedPolicy]()
        for place, name in enumerate(contenders):
            if progress is not None:
                progress(name, place, len(contenders))
            text = given[name] if isinstance(given[name], str) else ""
            base, temperature = parsed_variant(text)
            if temperature is not None and base in learned:
                # A variant of a candidate need not learn again.
                learned[name] = variant_of(learned[base], temperature)
            else:
                learned[name] = learn_one(others, given[name], seed=seed, keep_rows=0)
        rows, terms = Evaluator(log.log.rows(log.part == held_out), seed=seed).sample, {}
        for name, policy in learned.items():
            evidence = rows.about(policy)
            terms[name] = tuned(estimator, evidence)(evidence)
        race = Race((*race.folds, (terms, rows.units)))
        first, contenders = first or learned, race.contenders()
        if len(contenders) == 1:
            break
    return race, first


def learn(
    log: Log,
    policy: Specification | Sequence[Specification] | None = None,
    *,
    share: float = 1.0,
    by: By = "time",
    seed: int = 0,
    keep_rows: int = MOST_ROWS,
) -> TrainedPolicy:
    """Return the policy learned from a log, or from a ``share`` of its rows.

    Without a ``policy`` the best of a small set is learned, and of a list of policies the best;
    ``learn_best`` returns the same with the table of all candidates. ``linucb@greedy`` is the
    variant of a policy that takes its most likely action.

    The share is the first rows (``by="time"``) or random ones (``by="random"``). If the policy
    needs propensities and the log has none, they are estimated; reward-conditioned policies need
    none. The last ``keep_rows`` rows are stored with the learned policy, so a live bandit
    that starts from the policy continues to learn from these rows. A row that stands for several
    decisions is learned from as often.

    >>> log = Log.read({"action": ["A", "B"] * 50, "reward": [1, 0] * 50})
    >>> learned = learn(log, "rcp-submax")
    >>> learned.probabilities(log.parts[0].context[:1]).round(2).tolist()
    [[1.0, 0.0]]
    """
    single = isinstance(policy, (str, Mapping, Policy))
    candidates: Any = [policy] if single else policy
    best = learn_best(log, candidates, share=share, by=by, seed=seed, keep_rows=keep_rows)
    return best.learned


def tune(
    log: Log,
    policy: Specification,
    search: Search,
    *,
    trials: int = 20,
    by: By = "time",
    seed: int = 0,
    progress: Progress | None = None,
) -> BestPolicy:
    """Return the best of a policy's ``variants`` with other parameters, as ``learn_best`` does."""
    wanted = variants(policy, search, trials, seed)
    return learn_best(log, wanted, by=by, seed=seed, progress=progress)
