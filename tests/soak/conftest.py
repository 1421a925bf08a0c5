import sys
from pathlib import Path

# The parts of the simulated year import each other by name.
sys.path.insert(0, str(Path(__file__).parent))
