"""One thread for each linear algebra call.

Cells of a sweep run side by side already; where each call of a small matrix product also asks for
every core, they wait for one another: ten times slower in six threads.
"""

import os

SINGLE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
}


def prefer_single_thread() -> None:
    """Ask for it in this process, unless the user asked for something; before numpy is loaded."""
    for name, value in SINGLE_THREAD.items():
        os.environ.setdefault(name, value)
