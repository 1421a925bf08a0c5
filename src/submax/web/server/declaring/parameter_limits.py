"""The largest numbers that a policy may be given over HTTP.

Python callers may give any number: who runs their own code can wait for it. Over HTTP one number
must not occupy the server for ever.
"""

from collections.abc import Iterator, Mapping

from submax.core.errors import InputError

WEIGHT = 1e6
"""The limit of parameters that only weigh or scale something, and cost neither time nor memory."""
COUNT = 10**9
"""The limit of parameters that are compared with counts, and cost neither time nor memory."""
CLASSIFIER = 10_000.0
"""The limit of the parameters of classifiers of other libraries, such as trees or iterations."""
OTHERS = 10_000.0
"""The limit of parameters that are not listed, such as those of policies of installed packages."""
LIMITS: dict[str, float] = {
    # Repetitions, each of which takes time in every decision or update.
    "alternatives": 100,
    "candidates": 1000,
    "climbs": 100,
    "depth": 100,
    "noise_steps": 100,
    "restarts": 100,
    "steps": 20_000,
    "sweeps": 100,
    # Sizes, on which memory and time depend.
    "asked": 100,
    "batch": 8192,
    "bin_edges": 100,
    "components": 64,
    "draws": 2000,
    "effects": 5000,
    "features": 2000,
    "hidden": 1024,
    "latent": 128,
    "levels": 100,
    "max_enumerated_actions": 2**17,
    "masks": 1000,
    "points": 1000,
    "reservoir": 10**7,
    "rows": 20_000,
    "window": 10**7,
    # Numbers that are compared with counts.
    "horizon": COUNT,
    "minimum_rows": COUNT,
    # Weights and scales.
    "alpha": WEIGHT,
    "beta": WEIGHT,
    "confidence_scale": WEIGHT,
    "context_length": WEIGHT,
    "discount": 1,
    "distribution": 1,
    "dropout": 1,
    "epsilon": 1,
    "exploration": WEIGHT,
    "failure": 1,
    "guidance": WEIGHT,
    "kl_weight": WEIGHT,
    "largest_weight": WEIGHT,
    "learning_rate": WEIGHT,
    "leader": 1,
    "length": WEIGHT,
    "prior_deviation": WEIGHT,
    "prior_variance": WEIGHT,
    "prior_weight": WEIGHT,
    "quantile": 1,
    "quantiles": 1,
    "regularization": WEIGHT,
    "ridge": WEIGHT,
    "scale": WEIGHT,
    "sharpness": WEIGHT,
    "smoothing": WEIGHT,
    "spread": WEIGHT,
    "step": WEIGHT,
    "strength": WEIGHT,
    "temperature": WEIGHT,
    "weight": WEIGHT,
    "weight_decay": WEIGHT,
    "width": WEIGHT,
}
"""The largest size of each parameter of policies, estimators, strategies and scales of rewards, by
name; a test asserts that no parameter is missing."""
FREE = ("low", "high", "values")
"""Numbers that say which rewards are possible, and cost nothing: the scale checks them itself. So
do the weights of named rewards, which are checked with the declaration."""
PARAMETERS = "parameters"
"""The table with the parameters of a classifier of another library."""


def check_parameters(declaration: Mapping[str, object]) -> None:
    """Refuse a declaration in which a parameter of the policy or of the rewards is too large.

    >>> check_parameters({"policy": {"kind": "thompson", "beta": 9}})
    """
    for word in ("policy", "rewards"):
        for path, value in _numbers((word,), declaration.get(word)):
            limit = _limit(path)
            if limit is not None and abs(value) > limit:
                raise InputError(
                    f"{'.'.join(path)} is {value}, and over HTTP it may be at most {limit:,.10g}: "
                    "give a smaller number, or declare the bandit on the server's machine, by "
                    "submax.open"
                )


def _numbers(path: tuple[str, ...], value: object) -> Iterator[tuple[tuple[str, ...], float]]:
    """All numbers in a table, each with the names that lead to it."""
    if isinstance(value, Mapping):
        for name, one in value.items():
            yield from _numbers((*path, str(name)), one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _numbers(path, one)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path, value


def _limit(path: tuple[str, ...]) -> float | None:
    """The limit of the number at a path; None if it may have any size."""
    if PARAMETERS in path:
        return CLASSIFIER
    if path[0] == "rewards" and (path[-1] in FREE or (len(path) == 2 and path[1] not in LIMITS)):
        return None
    if path[:2] == ("rewards", "weights"):
        return None
    return LIMITS.get(path[-1], OTHERS)
