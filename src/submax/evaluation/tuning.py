"""Parameters of a policy, chosen on a log."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from submax.core.checks import whole_number
from submax.core.errors import InputError
from submax.core.running.extras import require_extra
from submax.evaluation.learning import learn
from submax.evaluation.logs.log import By, Log
from submax.evaluation.off_policy import make_off_policy
from submax.evaluation.report.comparison import Comparison, compare
from submax.evaluation.report.witness import Witness
from submax.policies import make_policy
from submax.policies.policy_table import read_value, table_of, with_values

LEARNING, CHOOSING = 0.5, 0.5
"""Shares of the log that learn, and of the rest that choose."""
LOGARITHMIC = ":log"
Progress = Callable[[int, dict[str, Any], float], None]


class Range(NamedTuple):
    """Numbers from ``low`` to ``high``, whole ones where both ends are."""

    low: float
    high: float
    logarithmic: bool = False


Search = Mapping[str, Range | list[Any]]
"""What to try for each parameter, ``estimator.hidden`` for that of a part: a range or a list."""


class Tuned(NamedTuple):
    """The best ``policy`` of ``trials``, its value where it was chosen, and on untouched rows."""

    policy: dict[str, Any]
    chosen_value: float
    held_out: Comparison
    trials: list[tuple[dict[str, Any], float]]


def tune(
    log: Log,
    policy: str | Mapping[str, Any],
    search: Search,
    *,
    estimator: str | Mapping[str, Any] = "dr",
    trials: int = 20,
    by: By = "time",
    seed: int = 0,
    progress: Progress = lambda number, values, value: None,
) -> Tuned:
    """Try tables of parameters by Optuna, and keep the one of the highest off-policy value.

    Half of the rows are learned from, a quarter chooses, and a quarter tells what the choice is
    worth: the best of many is lucky where it was chosen.
    """
    require_extra("tune", "tuning", "optuna")
    import optuna

    whole_number("trials", trials, at_least=1)
    judge = make_off_policy(estimator)
    base = table_of(make_policy(policy))
    _check(base, search)
    learning, rest = log.split(LEARNING, by, seed)
    choosing, telling = rest.split(CHOOSING, by, seed)
    witness = Witness(choosing.with_estimated_propensities(seed), seed)
    study = _study(optuna, seed)
    found: list[tuple[dict[str, Any], float]] = []
    for number in range(1, trials + 1):
        trial = study.ask()
        values = {key: _suggested(trial, key, one) for key, one in search.items()}
        learned = learn(learning, with_values(base, values), seed=seed, keep_rows=0)
        value = judge.terms(witness.of(learned).evidence).value
        if math.isnan(value):
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            study.tell(trial, value)
        found.append((values, value))
        progress(number, values, value)
    values, value = max(found, key=lambda one: -math.inf if math.isnan(one[1]) else one[1])
    best = with_values(base, values)
    learned = learn(learning, best, seed=seed, keep_rows=0)
    told = compare(telling, {str(best["kind"]): learned}, seed=seed, apart=True)
    return Tuned(best, value, told, found)


def _study(optuna: Any, seed: int) -> Any:
    """A new study, which is not worth the line that Optuna prints about it."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        sampler = optuna.samplers.TPESampler(seed=seed)
        return optuna.create_study(direction="maximize", sampler=sampler)
    finally:
        optuna.logging.set_verbosity(before)


def parse_search(text: str) -> tuple[str, Range | list[Any]]:
    """A parameter and what to try.

    >>> parse_search("estimator.hidden=16,32")
    ('estimator.hidden', [16, 32])
    >>> parse_search("estimator.smoothing=0.01..10:log")
    ('estimator.smoothing', Range(low=0.01, high=10, logarithmic=True))
    """
    key, sign, given = text.partition("=")
    if not sign or not key or not given:
        raise InputError(f"--search has the form KEY=16,32 or KEY=0.1..10, not {text!r}")
    logarithmic = given.endswith(LOGARITHMIC)
    plain = given.removesuffix(LOGARITHMIC)
    if ".." not in plain:
        return key, [read_value(one) for one in plain.split(",")]
    low, high = map(read_value, plain.split("..", 1))
    numbers = isinstance(low, (int, float)) and isinstance(high, (int, float))
    if not numbers or not low < high or (logarithmic and not low > 0):
        raise InputError(f"{text!r} is no range: LOW..HIGH, above 0 on a log scale")
    return key, Range(low, high, logarithmic)


def _check(base: Mapping[str, Any], search: Search) -> None:
    if not search:
        raise InputError("there is nothing to search: name at least one parameter")
    for path, wanted in search.items():
        for value in [wanted.low, wanted.high] if isinstance(wanted, Range) else wanted:
            make_policy(with_values(base, {path: value}))


def _suggested(trial: Any, key: str, wanted: Range | list[Any]) -> Any:
    if not isinstance(wanted, Range):
        return trial.suggest_categorical(key, wanted)
    whole = isinstance(wanted.low, int) and isinstance(wanted.high, int)
    suggest = trial.suggest_int if whole else trial.suggest_float
    return suggest(key, wanted.low, wanted.high, log=wanted.logarithmic)
