"""The commands on logs: learn, evaluate and tune."""

from submax.cli.logs import evaluate_command as evaluate_command
from submax.cli.logs import learn_command as learn_command
from submax.cli.logs import tune_command as tune_command
