"""A compact set of positions of a log."""

FORGOTTEN_AT_ONCE = 8192
"""Positions are forgotten in multiples of this number, to save time."""


class PositionSet:
    """A set of positions in a log, with one bit for each position.

    Positions up to ``base`` were forgotten by ``forget_up_to``: they count as members and take no
    memory.

    >>> closed = PositionSet()
    >>> closed.add(3)
    >>> [position for position in range(5) if position in closed]
    [3]
    """

    def __init__(self, base: int = 0, bits: bytes = b"") -> None:
        self.base = base
        self._bits = bytearray(bits)

    @property
    def bits(self) -> bytes:
        """The members above ``base`` as bits, from which an equal set can be made."""
        return bytes(self._bits).rstrip(b"\0")

    def add(self, position: int) -> None:
        """Make a position a member."""
        byte, bit = divmod(position - self.base, 8)
        if byte >= len(self._bits):
            # The size doubles: adding positions one by one must not copy all bits each time.
            self._bits.extend(bytes(max(byte + 1 - len(self._bits), len(self._bits))))
        if byte >= 0:
            self._bits[byte] |= 1 << bit

    def __contains__(self, position: int) -> bool:
        byte, bit = divmod(position - self.base, 8)
        if byte < 0:
            return True
        return byte < len(self._bits) and bool(self._bits[byte] >> bit & 1)

    def forget_up_to(self, position: int) -> None:
        """Forget positions up to this one, some thousands at a time."""
        forgotten = (position - self.base) // FORGOTTEN_AT_ONCE * FORGOTTEN_AT_ONCE
        if forgotten > 0:
            del self._bits[: forgotten // 8]
            self.base += forgotten
