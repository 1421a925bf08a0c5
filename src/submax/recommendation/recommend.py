"""Recommends a policy, given answers, a log or a store."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from submax.core.errors import InputError
from submax.recommendation.answers import Answers
from submax.recommendation.recommendation import Recommendation
from submax.recommendation.rule_table import rule_table
from submax.recommendation.snippets import python_call, server_commands, settings_of
from submax.recommendation.unused_options import ANSWERS_ALONE, refuse_unused

if TYPE_CHECKING:
    from submax.evaluation.logs.log import Log

DEFAULTS = {
    "context": (False, "there is no context"),
    "batch": (100, "rewards are learned from in batches of 100 decisions"),
    "goal": ("earn", "the goal is to earn, in a world that stays as it is"),
}
"""Answers that need not be given, and the sentence that says what was assumed."""
EXAMPLES = {
    "actions": "actions=20 (--actions 20)",
    "rewards": "rewards='rare' (--rewards rare)",
}
"""Answers that must be given, because every assumption would be a guess, and how they are given."""


def recommend(
    source: "str | Path | Log | None" = None,
    *,
    actions: int | str | Sequence[int] | None = None,
    context: bool | None = None,
    rewards: str | None = None,
    batch: int | None = None,
    goal: str | None = None,
    bandit: str | None = None,
    columns: Mapping[str, Any] | None = None,
    declare: str | Path | None = None,
) -> Recommendation:
    """Return the policy for a problem, with its settings, the reason, and what was measured.

    ``source`` is a log or a store, of which ``bandit`` is read; what it shows need not be given. A
    log is a ``Log`` or its file, which is read with ``columns`` as in ``Log.read`` and with the
    TOML file ``declare``, which declares its values. ``actions`` is a number of arms, the sizes of
    slots (``[2, 4, 8]`` or "2x4x8"), or "number" for a price.
    ``rewards`` is often, seldom or rare for rewards 0 and 1, or ratings, numbers, counts or
    sparse-counts. ``batch`` is how many decisions are made before their rewards are learned from.
    ``goal`` is earn, adapt, explain or identify.

    >>> found = recommend(actions=20, context=True, rewards="rare")
    >>> found.policy, found.runner_up
    ('rcp-adaptive', 'neural-ucb')
    """
    given = {
        "actions": actions,
        "context": context,
        "rewards": rewards,
        "batch": batch,
        "goal": goal,
    }
    if source is None:
        refuse_unused(ANSWERS_ALONE, bandit=bandit, columns=columns, declare=declare)
        return _from_answers(given)
    from submax.recommendation.sources import opened_source

    seen = opened_source(source, bandit, columns or {}, None if declare is None else Path(declare))
    known = {key: seen.answer(key) if one is None else one for key, one in given.items()}
    return seen.with_its_code(_from_answers(known))


def _from_answers(given: dict[str, Any]) -> Recommendation:
    missing = [key for key in EXAMPLES if given[key] is None]
    if missing:
        raise InputError(
            f"no answer was given for {' and '.join(missing)}, and nothing else tells it: give "
            f"{' and '.join(EXAMPLES[key] for key in missing)}, or a log",
            code="missing-answer",
        )
    assumed = tuple(text for key, (_, text) in DEFAULTS.items() if given[key] is None)
    filled = {key: value for key, (value, _) in DEFAULTS.items() if given[key] is None}
    answers = Answers.of(**{**given, **filled})
    table = rule_table()
    rule = table.rule_for(answers)
    settings = settings_of(answers, rule.policy, rule.deterministic)
    return Recommendation(
        answers,
        rule,
        settings,
        python=f"import submax\n\n{python_call(answers, settings)}",
        commands=server_commands(answers, settings),
        evidence=tuple(table.evidence[name] for name in rule.evidence),
        untested=(*rule.untested, *table.caveats_for(answers)),
        assumed=assumed,
    )
