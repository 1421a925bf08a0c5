"""Keys of events in fewer bytes."""

from collections.abc import Iterator, Sequence

import numpy as np

StoredKey = bytes | None
"""A key as it is in a file, or nothing."""
UUID_CHARACTERS, UUID_BYTES = 36, 16
END = 2 + UUID_CHARACTERS
"""Where the id ends in a key, after a letter and a space."""
PACKED_BYTES = 1 + UUID_BYTES
"""The bytes of a packed key that is a letter and a UUID."""
LETTERS = {"d": 0x80, "r": 0x81, "a": 0x82}
"""The letters of the keys that are packed, and the first bytes of packed keys. No text in UTF-8
begins with such a byte, so that packed keys differ from all texts."""
LETTER_OF = {number: letter for letter, number in LETTERS.items()}
GROUPS = ((2, 10, 2), (11, 15, 10), (16, 20, 14), (21, 25, 18), (26, 38, 22))
"""Groups of digits: where each begins and ends in the key, and where it begins in its digits."""
MANY = 50
"""From this number of keys on, unpacking them together by numpy is faster."""


def packed(key: str | None) -> StoredKey:
    """Return a key as it is stored; ``unpacked`` returns the key again.

    If the key is one of ``LETTERS``, a space and a UUID as ``new_identifier`` makes it, perhaps
    followed by more text, it is packed into a byte for the letter, 16 bytes and the rest. All other
    keys are stored as text.

    >>> len(packed("d 01890a5d-ac96-774b-bcce-b302099a8057"))
    17
    >>> packed("d visit-1")
    b'd visit-1'
    """
    if key is None:
        return None
    if len(key) < END or key[1] != " " or key[0] not in LETTERS:
        return key.encode()
    first, second, third, fourth, last = key[2:10], key[11:15], key[16:20], key[21:25], key[26:END]
    digits = first + second + third + fourth + last
    try:
        data = bytes.fromhex(digits)
    except ValueError:
        return key.encode()
    # Capital letters, spaces or other separators would not come back as they were.
    same = data.hex() == digits and key[10] == key[15] == key[20] == key[25] == "-"
    return b"%c%b%b" % (LETTERS[key[0]], data, key[END:].encode()) if same else key.encode()


def is_packed(stored: bytes) -> bool:
    """Whether these bytes are a packed key, and not a text."""
    return len(stored) >= PACKED_BYTES and stored[0] in LETTER_OF


def unpacked(stored: StoredKey) -> str | None:
    """Return the key; bytes that are no UTF-8 come from a damaged file, and stop nothing here."""
    if stored is None:
        return None
    if not is_packed(stored):
        return stored.decode("utf-8", "surrogateescape")
    digits = stored[1:PACKED_BYTES].hex()
    groups = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    rest = stored[PACKED_BYTES:].decode("utf-8", "surrogateescape")
    return f"{LETTER_OF[stored[0]]} {'-'.join(groups)}{rest}"


def unpacked_many(stored: Sequence[StoredKey]) -> list[str | None]:
    """Return many keys."""
    keys = [one for one in stored if one is not None and is_packed(one)]
    if len(keys) < MANY:
        return [unpacked(one) for one in stored]
    texts = iter(_texts(keys))
    if len(keys) == len(stored):
        return list(texts)
    return [next(texts) if one is not None and is_packed(one) else unpacked(one) for one in stored]


def decision_of(key: str | None) -> str | None:
    """Return the key of the decision whose id is the second word of a key; None if there is none.

    >>> decision_of("r visit-1 reward")
    'd visit-1'
    """
    words = key.split(" ", 2) if key is not None else ()
    return f"d {words[1]}" if len(words) > 1 else None


def _texts(keys: Sequence[bytes]) -> Iterator[str]:
    """Yield the text of each packed key."""
    heads = b"".join([key[:PACKED_BYTES] for key in keys])
    digits = np.frombuffer(heads.hex().encode(), np.uint8).reshape(len(keys), 2 * PACKED_BYTES)
    texts = np.full((len(keys), END), ord("-"), np.uint8)
    letters = np.frombuffer("".join(LETTERS).encode(), np.uint8)
    texts[:, 0] = letters[np.frombuffer(heads, np.uint8)[::PACKED_BYTES] - min(LETTER_OF)]
    texts[:, 1] = ord(" ")
    for begin, end, start in GROUPS:
        texts[:, begin:end] = digits[:, start : start + end - begin]
    joined = texts.tobytes().decode("latin-1")
    rests = [key[PACKED_BYTES:] for key in keys]
    for number, rest in enumerate(rests):
        text = joined[number * END : number * END + END]
        yield text + rest.decode("utf-8", "surrogateescape") if rest else text
