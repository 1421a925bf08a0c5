"""A process in which declarations are tried that begins with the library imported."""

import multiprocessing

from forked_command import fork_context

from submax.web.server.declaring.trial_process import TrialProcess


class ForkedTrial(TrialProcess):
    """A trial process that starts in a tenth of the time."""

    if "forkserver" in multiprocessing.get_all_start_methods():
        start_method = "forkserver"

    def _connected(self):
        # The library must be known to be imported before the first process is forked.
        fork_context()
        return super()._connected()
