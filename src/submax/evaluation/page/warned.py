"""The warnings of a comparison, each once, with the estimates that they concern."""

from collections.abc import Sequence
from typing import NamedTuple

from submax.evaluation.report.estimate import Estimate


class Warned(NamedTuple):
    """A ``sentence``, and the estimates that it ``concerns``, in words.

    ``serious`` says that a recommended estimate is among them.
    """

    sentence: str
    concerns: str
    serious: bool


def warnings_of(estimates: Sequence[Estimate]) -> list[Warned]:
    """Return all warnings, those of recommended estimates first."""
    by_sentence: dict[str, list[Estimate]] = {}
    for one in estimates:
        for sentence in one.cautions:
            by_sentence.setdefault(sentence, []).append(one)
    found = [
        Warned(sentence, _words(concerned, estimates), any(one.recommended for one in concerned))
        for sentence, concerned in by_sentence.items()
    ]
    return sorted(found, key=lambda one: not one.serious)


def _words(concerned: Sequence[Estimate], estimates: Sequence[Estimate]) -> str:
    """Return the policies, each with its estimators unless all of them are concerned."""
    words = []
    for policy in dict.fromkeys(one.policy for one in concerned):
        mine = [one.estimator for one in concerned if one.policy == policy]
        every = [one.estimator for one in estimates if one.policy == policy]
        words.append(policy if len(mine) == len(every) else f"{policy} ({', '.join(mine)})")
    return "; ".join(words)
