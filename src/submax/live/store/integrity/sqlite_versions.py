"""Versions of SQLite that are known to damage databases."""

WAL_RESET_FIXED = (3, 51, 3)
"""The release that fixed the WAL-reset bug, which versions from 3.7.0 on have: if two connections
write or checkpoint at the same moment, committed pages can be lost
(https://sqlite.org/wal.html#walresetbug, https://sqlite.org/releaselog/3_51_3.html)."""


def caution(version: str) -> str | None:
    """Why a version of SQLite needs care; None if it has the fix of the WAL-reset bug.

    >>> caution("3.51.3") is None, caution("3.51.2") is None
    (True, False)
    """
    if tuple(int(part) for part in version.split(".")) >= WAL_RESET_FIXED:
        return None
    return (
        f"SQLite {version} is older than {'.'.join(map(str, WAL_RESET_FIXED))}, which fixed the "
        "WAL-reset bug: a file can be damaged if two connections write or checkpoint at the same "
        "moment (https://sqlite.org/wal.html#walresetbug); submax writes with one connection, so "
        "let no other program (Litestream, the sqlite3 shell) write to the file, or install a "
        "newer SQLite; some systems add the fix to an older version"
    )
