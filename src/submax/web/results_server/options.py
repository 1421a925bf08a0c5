"""The options of ``submax dashboard``."""

from submax.web.server.running.serve_options import read_port
from submax.web.server.running.server_option import ServerOption

OPTIONS = (
    ServerOption(
        "host", "127.0.0.1", str, "an address of this machine", "127.0.0.1",
        "Address to listen on, of this machine only.", "TEXT", plural="dashboard_host",
    ),
    ServerOption(
        "port", 8010, read_port, "a whole number from 0 to 65535", "8010",
        "Port to listen on; 0 for any free port.", "INTEGER", plural="dashboard_port",
    ),
)  # fmt: skip
"""Every option, in the order of the help; variables have names of their own, so that a server for
bandits can run in the same environment."""
