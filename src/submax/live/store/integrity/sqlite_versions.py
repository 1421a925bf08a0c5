"""Versions of SQLite that are known to damage databases."""

WAL_RESET_FIXED = (3, 51, 3)
"""The first version without the WAL-reset bug, which all versions from 3.7.0 have: if two
connections write or checkpoint at the same moment, committed pages can be lost
(https://sqlite.org/wal.html#walresetbug, https://sqlite.org/releaselog/3_51_3.html)."""
WAL_RESET_BACKPORTS = {(3, 44): 6, (3, 50): 7}
"""Older series whose patch releases have the fix as well, from this patch number on (same page)."""


def caution(version: str) -> str | None:
    """Why a version of SQLite needs care; None if no bug that damages databases is known.

    >>> caution("3.51.3") is None, caution("3.50.7") is None
    (True, True)
    """
    major, minor, patch = (int(part) for part in [*version.split("."), "0", "0"][:3])
    backport = WAL_RESET_BACKPORTS.get((major, minor))
    if (major, minor, patch) >= WAL_RESET_FIXED or (backport is not None and patch >= backport):
        return None
    return (
        f"SQLite {version} has the WAL-reset bug, which can damage a file that two connections "
        "write or checkpoint at the same moment (sqlite.org/wal.html#walresetbug): submax writes "
        "with one connection, so let no other program (Litestream, the sqlite3 shell) write to "
        "the file, or install SQLite 3.51.3 or newer"
    )
