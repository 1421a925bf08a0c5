"""Counts different units in little memory."""

import hashlib

import msgspec

MAX_UNITS = 4096
"""Units that are remembered: if more come, half of them are forgotten, and of further units only
half as many are counted. 4096 numbers take about 40 kB."""
HASH_BITS = 64


class UnitSample(msgspec.Struct):
    """A sample of the units that came, each of which was counted once.

    A unit belongs to the sample if its hash is below 2^(64 − ``halvings``), so that it is known for
    certain whether a unit of the sample was counted before, and the sample does not depend on what
    the units did. ``known`` has the hashes in the order in which they came, so that the same log
    gives the same bytes.
    """

    known: dict[int, None] = {}
    halvings: int = 0

    def is_new(self, unit: str) -> bool:
        """Whether a unit belongs to the sample and comes for the first time."""
        hashed = _hash(unit)
        if hashed >> (HASH_BITS - self.halvings) or hashed in self.known:
            return False
        self.known[hashed] = None
        while len(self.known) > MAX_UNITS:
            self.halvings += 1
            limit = HASH_BITS - self.halvings
            self.known = {one: None for one in self.known if not one >> limit}
        return True


def _hash(unit: str) -> int:
    text = f"sample {unit}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
