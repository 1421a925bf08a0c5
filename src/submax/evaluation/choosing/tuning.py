"""Chooses the parameters of a policy by their off-policy value on a log."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from submax.core.checks import whole_number
from submax.core.errors import InputError
from submax.core.optional import require_extra
from submax.evaluation.choosing.one_policy import learn_one
from submax.evaluation.frames import data_frame
from submax.evaluation.logs.log import By, Log
from submax.evaluation.off_policy import make_off_policy
from submax.evaluation.report.comparisons.comparison import Comparison, compare
from submax.evaluation.report.evidence.logged_evidence import LoggedEvidence
from submax.policies import make_policy
from submax.policies.specification import read_value, table_of, with_values

LEARNING_SHARE = 0.5
"""Share of the log from which every trial learns."""
CHOOSING_SHARE = 0.5
"""Share of the other rows by which the best trial is chosen; the last rows evaluate the choice."""
LOGARITHMIC = ":log"
"""The ending of a range that is searched on a logarithmic scale."""
Progress = Callable[[int, dict[str, Any], float], None]
"""Called after each trial with its number, its parameters and its value."""


class Range(NamedTuple):
    """The numbers from ``low`` to ``high``; only whole numbers if both ends are integers."""

    low: float
    high: float
    logarithmic: bool = False


Search = Mapping[str, Range | list[Any]]
"""A range or a list of values to try for each parameter, such as ``estimator.hidden``."""


class Tuned(NamedTuple):
    """The result of a search.

    ``policy`` is the best table of parameters and ``chosen_value`` its value on the rows by which
    it was chosen. ``held_out`` evaluates it on rows that took no part in the choice. ``trials``
    are all tables of parameters with their values.
    """

    policy: dict[str, Any]
    chosen_value: float
    held_out: Comparison
    trials: list[tuple[dict[str, Any], float]]

    def to_pandas(self) -> Any:
        """Return a data frame with a row for each trial: its parameters and its value."""
        return data_frame([{**values, "value": value} for values, value in self.trials])


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
    """Search with Optuna for the parameters of a policy that have the highest off-policy value.

    Every trial learns from half of the rows, and a quarter of the rows chooses the best trial. The
    last quarter evaluates the chosen one, because the best of many trials is overestimated on the
    rows by which it was chosen.
    """
    require_extra("tune", "tuning", "optuna")
    import optuna

    whole_number("trials", trials, at_least=1)
    value_estimator = make_off_policy(estimator)
    base = table_of(make_policy(policy))
    _check(base, search)
    learning, rest = log.split(LEARNING_SHARE, by, seed)
    choosing, held_out = rest.split(CHOOSING_SHARE, by, seed)
    logged = LoggedEvidence(choosing.with_estimated_propensities(seed), seed)
    study = _study(optuna, seed)
    tried: list[tuple[dict[str, Any], float]] = []
    for number in range(1, trials + 1):
        trial = study.ask()
        values = {key: _suggested(trial, key, one) for key, one in search.items()}
        learned = learn_one(learning, with_values(base, values), seed=seed, keep_rows=0)
        value = logged.about(learned).terms(value_estimator).value
        if math.isnan(value):
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            study.tell(trial, value)
        tried.append((values, value))
        progress(number, values, value)
    values, value = max(tried, key=lambda one: -math.inf if math.isnan(one[1]) else one[1])
    best = with_values(base, values)
    learned = learn_one(learning, best, seed=seed, keep_rows=0)
    evaluated = compare(held_out, {str(best["kind"]): learned}, seed=seed, apart=True)
    return Tuned(best, value, evaluated, tried)


def _study(optuna: Any, seed: int) -> Any:
    """Return a new study, without the line that Optuna logs about it."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        sampler = optuna.samplers.TPESampler(seed=seed)
        return optuna.create_study(direction="maximize", sampler=sampler)
    finally:
        optuna.logging.set_verbosity(before)


def parse_search(text: str) -> tuple[str, Range | list[Any]]:
    """Return the parameter that a ``--search`` option names, and the values to try.

    >>> parse_search("estimator.hidden=16,32")
    ('estimator.hidden', [16, 32])
    >>> parse_search("estimator.smoothing=0.01..10:log")
    ('estimator.smoothing', Range(low=0.01, high=10, logarithmic=True))
    """
    key, sign, given = text.partition("=")
    if not sign or not key or not given:
        raise InputError(
            f"--search is {text!r}, and must have the form KEY=16,32 or KEY=0.1..10: name a "
            "parameter and the values to try",
            parameter="search",
        )
    logarithmic = given.endswith(LOGARITHMIC)
    plain = given.removesuffix(LOGARITHMIC)
    if ".." not in plain:
        return key, [read_value(one) for one in plain.split(",")]
    low, high = map(read_value, plain.split("..", 1))
    numbers = isinstance(low, (int, float)) and isinstance(high, (int, float))
    if not numbers or not low < high or (logarithmic and not low > 0):
        raise InputError(
            f"--search {text!r} is not a range: give two numbers LOW..HIGH with LOW below HIGH, "
            "and LOW above 0 if it ends in :log",
            parameter="search",
        )
    return key, Range(low, high, logarithmic)


def _check(base: Mapping[str, Any], search: Search) -> None:
    if not search:
        raise InputError(
            "search is empty: name at least one parameter with a range or a list of values to try",
            parameter="search",
        )
    for path, wanted in search.items():
        for value in [wanted.low, wanted.high] if isinstance(wanted, Range) else wanted:
            make_policy(with_values(base, {path: value}))


def _suggested(trial: Any, key: str, wanted: Range | list[Any]) -> Any:
    if not isinstance(wanted, Range):
        return trial.suggest_categorical(key, wanted)
    whole = isinstance(wanted.low, int) and isinstance(wanted.high, int)
    suggest = trial.suggest_int if whole else trial.suggest_float
    return suggest(key, wanted.low, wanted.high, log=wanted.logarithmic)
