"""Keys of events in fewer bytes."""

from collections.abc import Iterator, Sequence

import numpy as np

StoredKey = str | bytes | None
"""A key as it is in a row: its text, or packed bytes, or nothing."""
UUID_CHARACTERS, UUID_BYTES = 36, 16
END = 2 + UUID_CHARACTERS
"""Where the id ends in a key, after a letter and a space."""
GROUPS = ((2, 10, 2), (11, 15, 10), (16, 20, 14), (21, 25, 18), (26, 38, 22))
"""Groups of digits: where each begins and ends in the key, and where it begins in its digits."""
MANY = 50
"""From this number of keys on, unpacking them together by numpy is faster."""


def packed(key: str | None) -> StoredKey:
    """Return a key as it is stored; ``unpacked`` returns the key again.

    If the key is a character, a space and a UUID as ``new_identifier`` makes it, perhaps followed
    by more text, it is packed into the character, 16 bytes and the rest. All other keys are stored
    as they are.

    >>> len(packed("d 01890a5d-ac96-774b-bcce-b302099a8057"))
    17
    >>> packed("d visit-1")
    'd visit-1'
    """
    if key is None or len(key) < END or key[1] != " " or key[0] > "\x7f":
        return key
    first, second, third, fourth, last = key[2:10], key[11:15], key[16:20], key[21:25], key[26:END]
    digits = first + second + third + fourth + last
    try:
        data = bytes.fromhex(digits)
    except ValueError:
        return key
    # Capital letters, spaces or other separators would not come back as they were.
    same = data.hex() == digits and key[10] == key[15] == key[20] == key[25] == "-"
    return key[0].encode() + data + key[END:].encode() if same else key


def unpacked(stored: StoredKey) -> str | None:
    """Return the key; bytes that no key was packed into are returned as they are."""
    if not isinstance(stored, bytes) or len(stored) <= UUID_BYTES:
        return stored  # type: ignore[return-value]  # bytes come from a damaged row
    digits = stored[1 : 1 + UUID_BYTES].hex()
    groups = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    rest = stored[1 + UUID_BYTES :].decode("utf-8", "surrogateescape")
    return f"{chr(stored[0])} {'-'.join(groups)}{rest}"


def unpacked_many(stored: Sequence[StoredKey]) -> list[str | None]:
    """Return many keys."""
    keys = [one for one in stored if type(one) is bytes]
    if len(keys) < MANY or min(map(len, keys)) <= UUID_BYTES:
        return [unpacked(one) for one in stored]
    texts = iter(_texts(keys))
    if len(keys) == len(stored):
        return list(texts)
    return [next(texts) if type(one) is bytes else one for one in stored]  # type: ignore[misc]  # each is a text now


def decision_of(key: StoredKey) -> str | None:
    """Return the key of the decision whose id is the second word of a key; None if there is none.

    >>> decision_of("r visit-1 reward")
    'd visit-1'
    """
    words = key.split(" ", 2) if isinstance(key, str) else ()
    return f"d {words[1]}" if len(words) > 1 else None


def _texts(keys: Sequence[bytes]) -> Iterator[str]:
    """Yield the text of each packed key."""
    heads = b"".join([key[: 1 + UUID_BYTES] for key in keys])
    digits = np.frombuffer(heads.hex().encode(), np.uint8).reshape(len(keys), 2 + 2 * UUID_BYTES)
    texts = np.full((len(keys), END), ord("-"), np.uint8)
    texts[:, 0] = np.frombuffer(heads, np.uint8)[:: 1 + UUID_BYTES]
    texts[:, 1] = ord(" ")
    for begin, end, start in GROUPS:
        texts[:, begin:end] = digits[:, start : start + end - begin]
    joined = texts.tobytes().decode("latin-1")
    rests = [key[1 + UUID_BYTES :] for key in keys]
    for number, rest in enumerate(rests):
        text = joined[number * END : number * END + END]
        yield text + rest.decode("utf-8", "surrogateescape") if rest else text
