"""Vowpal Wabbit's own daemon, started from its Python package: ``vw --daemon``.

The package has no program ``vw``, but its library has the daemon, and ``run_parser`` runs it as the
program does. A process of the daemon serves one connection at a time, so that there are as many
processes as connections; their weights are in shared memory, so that one learns for all.
"""

import sys

from vowpalwabbit import Workspace

if __name__ == "__main__":
    port, children = sys.argv[1:]
    workspace = Workspace(
        "--cb_explore_adf --epsilon 0.1 --interactions sa --quiet --daemon --foreground "
        f"--port {port} --num_children {children}"
    )
    print("ready", flush=True)
    workspace.run_parser()
