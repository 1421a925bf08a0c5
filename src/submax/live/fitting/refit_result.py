"""The result of a call of ``refit``."""

import msgspec

from submax.live.log.records import Fitted


class RefitResult(msgspec.Struct, frozen=True):
    """What ``Bandit.refit`` did; it is true in a condition if something was ``learned``.

    ``version`` is the version that decides now, ``rows`` the number of new rows that were learned
    from. ``reason`` is one sentence: what was learned, or why nothing was. ``fitted`` is the record
    of the new version, for bandits with a store.
    """

    learned: bool
    version: int
    rows: int
    reason: str
    fitted: Fitted | None = None

    def __bool__(self) -> bool:
        return self.learned
