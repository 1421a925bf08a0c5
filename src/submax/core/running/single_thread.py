"""Environment variables that limit linear algebra to one thread.

The cells of a sweep already run in parallel processes. If every small matrix product also used all
cores, the processes would wait for one another: measured ten times slower with six threads.
"""

import os

SINGLE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
}


def prefer_single_thread() -> None:
    """Limit this process to one thread, unless the user has set the variables.

    This works only before numpy is imported.
    """
    for name, value in SINGLE_THREAD.items():
        os.environ.setdefault(name, value)
