"""Modules of SciPy that policies import when they first decide or learn, since that takes long."""


def import_slow_modules() -> None:
    """Import them now, so that no decision waits for it."""
    import scipy.linalg
    import scipy.sparse
    import scipy.special  # noqa: F401 - imported for later
