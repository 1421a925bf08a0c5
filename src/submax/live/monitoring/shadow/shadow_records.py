"""The bodies of the events of a shadow, which have a stream of their own."""

from typing import Any

import msgspec

from submax.schema.actions import EncodedAction

STARTED, FITTED, OPINIONS, STOPPED = "started", "fitted", "opinions", "stopped"
ENDED = "ended"
"""The kinds of events in the stream of a shadow. The body of ``fitted`` is a ``Fitted``. After
``ended``, which has no body, a shadow begins anew."""


class ShadowStarted(msgspec.Struct, frozen=True):
    """A shadow begins: decisions after the position ``after`` of the log are its own to judge.

    ``policy`` is the specification of the shadow, ``beside`` that of the policy that decides.
    """

    policy: str | dict[str, Any]
    beside: str | dict[str, Any]
    after: int


class Opinions(msgspec.Struct, frozen=True, array_like=True):
    """What a version of the shadow would have done in decisions at ``positions`` of the log.

    ``chances`` are its probabilities of the actions that were taken, ``propensities`` those with
    which these were drawn. ``choices`` are actions that the shadow drew itself. ``clipped`` are the
    parts Σ max(q − C p, 0) of the shadow's probability q that weights of at most C leave out, over
    all eligible actions with the probabilities p; -1 if these were not listed.
    """

    version: int
    positions: list[int]
    chances: list[float]
    propensities: list[float]
    choices: list[EncodedAction]
    clipped: list[float]
    units: list[str | None]


class ShadowStopped(msgspec.Struct, frozen=True):
    """The shadow was switched off because it failed too often; ``reason`` is one sentence."""

    reason: str
